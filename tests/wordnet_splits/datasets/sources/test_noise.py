from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.datasets.sources import Source, noise, open_source
from wordnet_splits.datasets.sources.noise import NoiseSource

from .cifar_copies import digests, scan


def opened(name: str, **params: object) -> NoiseSource:
    source = open_source(name, **params)
    assert isinstance(source, NoiseSource)
    return source


@pytest.mark.parametrize("name", ["gaussian", "uniform"])
def test_ids_name_images_that_reading_computes(name: str) -> None:
    source = opened(name, shape=[8, 8, 1], seed=3)
    ids = source.ids(500)
    assert (ids[0], ids[-1], len(set(ids))) == ("8x8x1/s3/00000", "8x8x1/s3/00499", 500)
    raws = source.read(ids[:5])
    for index, raw in enumerate(raws):
        assert isinstance(raw, np.ndarray)
        grey = noise.generate(name, 3, index, (8, 8, 1))
        assert np.array_equal(raw, np.repeat(grey, 3, axis=2))
    assert source.decode(raws[0]).size == (8, 8)
    assert len(set(digests(source, ids))) == 500


def test_three_channels_are_three_streams() -> None:
    (raw,) = open_source("uniform").read(["16x32x3/s0/00007"])
    assert isinstance(raw, np.ndarray)
    assert np.array_equal(raw, noise.generate("uniform", 0, 7, (16, 32, 3)))
    assert not np.array_equal(raw[:, :, 0], raw[:, :, 1])


def test_a_generator_holds_no_images() -> None:
    source = opened("gaussian", shape=[8, 8, 1])
    assert scan(source) == []
    assert source.count() == {"all": 0}


def test_bad_requests() -> None:
    source = opened("gaussian")
    for image_id in ("8x8x1/s0/5", "8x8x2/s0/00005", "9999x8x1/s0/00005", "x", "", "8x8x1/s0/" + "1" * 5000):
        with raises(MissingImageError, where="gaussian"):
            source.read([image_id])
    with pytest.raises(SourceError):
        source.ids(3)
    with raises(SourceError, naming="-1"):
        opened("gaussian", shape=[8, 8, 1]).ids(-1)
    for params in ({"shape": [8, 8]}, {"shape": 8}, {"shape": ["8", 8, 1]}, {"shape": [8, 8, 1], "seed": -1}):
        with pytest.raises(SourceError):
            opened("uniform", **params)
    with raises(SourceError, naming="sd"):
        opened("gaussian", sd=2)
    with raises(SourceError, where="."):
        open_source("gaussian", ".")


def worker(job: tuple[Source, list[str]]) -> list[bytes]:
    return digests(*job)


def test_workers_compute_the_same() -> None:
    source = opened("gaussian", shape=[8, 8, 1], seed=0)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(worker, [(source, source.ids(20))])) == [digests(source, source.ids(20))]
    assert pickle.loads(pickle.dumps(source)).ids(2) == source.ids(2)
