"""Noise: ids, thresholds, and pixels that every machine must reproduce."""

from __future__ import annotations

import hashlib
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.noise_thresholds import exact_thresholds
from tests.wordnet_splits.datasets.sources.trees import digests, scan
from wordnet_splits.base.errors import MissingImageError, SourceError, UnknownNameError
from wordnet_splits.datasets.sources import Source, open_source
from wordnet_splits.datasets.sources import built_in as noise
from wordnet_splits.datasets.sources.built_in import NoiseSource


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


def words(source: str, seed: int, index: int, shape: str, count: int) -> list[int]:
    """The stream, read one word at a time as DEFINITIONS says it."""
    name = source + "\x1f" + str(seed) + "\x1f" + str(index) + "\x1f" + shape
    stream = hashlib.shake_128(name.encode()).digest(8 * count)
    return [int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(count)]


def test_shipped_thresholds_are_the_exact_ones() -> None:
    assert noise.thresholds().tolist() == exact_thresholds()


def test_thresholds_agree_with_an_independent_normal_distribution() -> None:
    phi = NormalDist(0.5, 1).cdf
    expected = [phi((k - 0.5) / 255) for k in range(1, 256)]
    np.testing.assert_allclose(noise.thresholds() / 2.0**64, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("seed", "index", "shape"), [(0, 0, (8, 8, 1)), (7, 499, (5, 3, 3)), (0, 12, (32, 32, 3))]
)
def test_gaussian_counts_the_thresholds_not_above_each_word(
    seed: int, index: int, shape: tuple[int, int, int]
) -> None:
    table = exact_thresholds()
    stream = words("gaussian", seed, index, "x".join(map(str, shape)), int(np.prod(shape)))
    expected = [sum(t <= word for t in table) for word in stream]
    image = noise.generate("gaussian", seed, index, shape)
    assert image.dtype == np.uint8
    assert image.tolist() == np.array(expected).reshape(shape).tolist()


def test_uniform_is_the_top_byte_of_each_word() -> None:
    image = noise.generate("uniform", 3, 4, (6, 5, 3))
    assert (
        image.tolist()
        == np.array([w >> 56 for w in words("uniform", 3, 4, "6x5x3", 90)]).reshape(6, 5, 3).tolist()
    )


def test_values_at_and_beside_every_threshold() -> None:
    table = noise.thresholds()
    gaussian = noise.VALUES["gaussian"]
    assert gaussian(table).tolist() == list(range(1, 256))
    assert gaussian(table - np.uint64(1)).tolist() == list(range(255))
    assert gaussian(np.array([0, 2**64 - 1], dtype=np.uint64)).tolist() == [0, 255]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_the_table_of_buckets_equals_a_binary_search(drawn: list[int]) -> None:
    stream = np.array(drawn, dtype=np.uint64)
    expected = np.searchsorted(noise.thresholds(), stream, side="right")
    assert noise.VALUES["gaussian"](stream).tolist() == expected.tolist()


def test_images_that_every_machine_must_reproduce() -> None:
    def sha(source: str) -> str:
        images = b"".join(noise.generate(source, 0, i, (32, 32, 3)).tobytes() for i in range(20))
        return hashlib.sha256(images).hexdigest()

    assert sha("gaussian") == "0f1619935613e4dc2e5423c6ea48c313b3f10a04a57f726e7fa97864cf679601"
    assert sha("uniform") == "3369fbbca0e0164d35f22097633fe2606e7218b258db5e875e88dbd53ed50b0f"


def test_shares_of_black_and_white_follow_the_clipped_normal() -> None:
    image = noise.generate("gaussian", 1, 0, (512, 512, 1))
    tail = NormalDist(0.5, 1).cdf(0.5 / 255)
    assert abs(np.mean(image == 0) - tail) < 5e-3
    assert abs(np.mean(image == 255) - tail) < 5e-3
    assert abs(image.mean() - 127.5) < 1


def test_seed_index_shape_and_source_each_give_another_image() -> None:
    images = [
        noise.generate("gaussian", 0, 0, (4, 4, 3)),
        noise.generate("gaussian", 1, 0, (4, 4, 3)),
        noise.generate("gaussian", 0, 1, (4, 4, 3)),
        noise.generate("uniform", 0, 0, (4, 4, 3)),
        noise.generate("gaussian", 0, 0, (8, 2, 3)),
        noise.generate("gaussian", 0, 0, (4, 12, 1)),
    ]
    assert len({image.tobytes() for image in images}) == 6


def test_wrong_requests_are_refused() -> None:
    with raises(UnknownNameError, near="gaussian"):
        noise.generate("gausian", 0, 0, (8, 8, 1))
    for shape in [(8, 8), (0, 8, 1), (8, 8, 2), (8, 9999, 3), (8, 8, 1, 1), (True, 8, 1)]:
        with pytest.raises(SourceError):
            noise.generate("uniform", 0, 0, shape)
    with pytest.raises(SourceError):
        noise.generate("uniform", -1, 0, (8, 8, 1))


@given(
    st.integers(1, 999),
    st.integers(1, 999),
    st.sampled_from([1, 3]),
    st.integers(0, 10**9),
    st.integers(0, 10**6),
)
def test_ids_are_read_back(height: int, width: int, channels: int, seed: int, index: int) -> None:
    named = noise.NoiseId((height, width, channels), seed, index)
    assert noise.NoiseId.parse(str(named)) == named


def test_only_the_canonical_spelling_is_an_id() -> None:
    assert str(noise.NoiseId((8, 8, 1), 0, 42)) == "8x8x1/s0/00042"
    for text in [
        "8x8x1/s0/42",
        "08x8x1/s0/00042",
        "8x8x1/s0/000042",
        "8x8x1/s-1/00042",
        "8x8/s0/00042",
        "",
        "8x8x1/s0/٠٠٠٤٢",
    ]:
        assert noise.NoiseId.parse(text) is None
