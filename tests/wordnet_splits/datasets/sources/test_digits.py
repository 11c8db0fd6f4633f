"""The embedded digits."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import digests, scan
from tools.facts.inventories import write_digits
from wordnet_splits.base.errors import DataError, MissingImageError, SourceError
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import built_in, open_source
from wordnet_splits.datasets.sources.built_in import load_digits_pixels


def test_the_embedded_digits_are_scikit_learns() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    theirs = datasets.load_digits()
    source = open_source("digits")
    assert (source.layout, source.lossless, source.root) == ("embedded", True, None)
    rows = scan(source)
    assert sorted(rows) == sorted((str(i), str(label), "all") for i, label in enumerate(theirs.target))
    counts = {item.class_id: item.counts["all"] for item in load_catalog("digits")}
    assert counts == {str(digit): (theirs.target == digit).sum() for digit in range(10)}
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


def test_digits_name_their_licence_and_checksum() -> None:
    text = built_in.DIGITS.with_name("LICENSE.txt").read_text(encoding="utf-8")
    assert built_in.RAW_SHA256 in text
    assert "BSD 3-Clause License" in text
    assert "Attribution 4.0" in text


def test_damaged_digits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_in, "DIGITS", tmp_path / "digits.xz")
    with raises(DataError, where="digits.xz"):
        load_digits_pixels.__wrapped__()
    write_digits(tmp_path)
    whole = (tmp_path / "digits" / "digits.xz").read_bytes()
    (tmp_path / "digits.xz").write_bytes(whole[:5000])
    with raises(DataError, where="digits.xz"):
        load_digits_pixels.__wrapped__()
    monkeypatch.setattr(built_in, "RAW_SHA256", hashlib.sha256(b"other").hexdigest())
    (tmp_path / "digits.xz").write_bytes(whole)
    with raises(DataError, where="digits.xz"):
        load_digits_pixels.__wrapped__()
