from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import open_source

from .cifar_copies import digests, scan


def test_the_embedded_digits_are_scikit_learns() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    theirs = datasets.load_digits()
    source = open_source("digits")
    assert (source.layout, source.lossless, source.root) == ("embedded", True, None)
    rows = scan(source)
    assert sorted(rows) == sorted((str(i), str(label), "all") for i, label in enumerate(theirs.target))
    expected = ((theirs.images.astype(int) * 255 + 8) // 16).astype(np.uint8)
    raws = source.read([str(i) for i in range(1797)])
    for raw, grey in zip(raws, expected, strict=True):
        assert isinstance(raw, np.ndarray)
        assert raw.shape == (8, 8, 3)
        assert all(np.array_equal(raw[:, :, channel], grey) for channel in range(3))


def test_the_inventory_is_the_source() -> None:
    source = open_source("digits")
    table = load_inventory("digits", "all")
    assert table is not None
    assert scan(source) == [(r["image_id"], r["class_id"], r["split"]) for r in table.to_pylist()]
    assert digests(source, table["image_id"].to_pylist()) == table["digest"].to_pylist()


def test_bad_requests() -> None:
    source = open_source("digits")
    for image_id in ("1797", "-1", "007", "", "x", "²"):
        with raises(MissingImageError, where="digits"):
            source.read([image_id])
    with raises(SourceError, where="."):
        open_source("digits", ".")
    with raises(SourceError, naming="seed"):
        open_source("digits", seed=1)


def test_what_is_read_is_the_callers_own() -> None:
    source = pickle.loads(pickle.dumps(open_source("digits")))
    (first,) = source.read(["3"])
    first[:] = 0
    assert source.read(["3"])[0].any()
