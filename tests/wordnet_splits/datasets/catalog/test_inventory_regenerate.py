"""The shipped tables are what the converter makes of the published facts and the publishers' pixels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tests.raising import raises
from tools.facts.inventories import Inventory, inventory_table, unique, write_digits, write_inventories
from tools.facts.lists import openood_source, write_lists
from tools.facts.published import Published
from wordnet_splits.base.digests import digest_pixels
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import read_table
from wordnet_splits.datasets.catalog.inventory import DATA, load_inventory
from wordnet_splits.datasets.sources import digits
from wordnet_splits.datasets.sources.digits import load_digits_pixels


def tables(root: Path) -> list[str]:
    """Return the names of all inventories and lists below a data folder."""
    files = [*(root / "inventories").rglob("*.parquet"), *(root / "lists").rglob("*.parquet")]
    return sorted(path.relative_to(root).as_posix() for path in files)


@pytest.mark.oracle
def test_regenerating_gives_the_shipped_rows(facts: Path, real_data: Path, tmp_path: Path) -> None:
    write_digits(tmp_path)
    write_inventories(facts, real_data, tmp_path)
    write_lists(facts, tmp_path)
    assert tables(tmp_path) == tables(DATA)
    for name in tables(DATA):
        shipped, made = read_table(DATA / name), read_table(tmp_path / name)
        assert shipped.equals(made), name
        assert shipped.schema.metadata == made.schema.metadata, name


def test_the_package_carries_at_most_twelve_megabytes_of_inventories_and_lists() -> None:
    assert sum((DATA / name).stat().st_size for name in tables(DATA)) <= 12_000_000


def test_digits_equal_those_of_scikit_learn() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    bunch = datasets.load_digits()
    images, labels = load_digits_pixels()
    assert images.dtype == labels.dtype == np.uint8
    assert np.array_equal(labels, bunch.target)
    assert np.array_equal(images, (bunch.images.astype(int) * 255 + 8) // 16)
    assert (images.min(), images.max()) == (0, 255)
    held = load_inventory("digits", "all")
    assert held is not None
    for row in held.to_pylist():
        index = int(row["image_id"])
        assert row["class_id"] == str(bunch.target[index])
        assert row["digest"] == digest_pixels(np.repeat(images[index][:, :, None], 3, axis=2))


def test_digits_name_their_licence_and_checksum() -> None:
    text = digits.PATH.with_name("LICENSE.txt").read_text(encoding="utf-8")
    assert digits.RAW_SHA256 in text
    assert "BSD 3-Clause License" in text
    assert "Attribution 4.0" in text


def test_damaged_digits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits, "PATH", tmp_path / "digits.xz")
    with raises(DataError, where="digits.xz"):
        load_digits_pixels.__wrapped__()
    write_digits(tmp_path)
    whole = (tmp_path / "digits" / "digits.xz").read_bytes()
    (tmp_path / "digits.xz").write_bytes(whole[:5000])
    with raises(DataError, where="digits.xz"):
        load_digits_pixels.__wrapped__()
    monkeypatch.setattr(digits, "RAW_SHA256", hashlib.sha256(b"other").hexdigest())
    (tmp_path / "digits.xz").write_bytes(whole)
    with raises(DataError, where="digits.xz"):
        load_digits_pixels.__wrapped__()


def test_the_converter_refuses_what_is_not_whole() -> None:
    some = Inventory({"b": "x", "a": "y"}, "origin")
    assert inventory_table(some, "all", 2)["image_id"].to_pylist() == ["a", "b"]
    with pytest.raises(ValueError, match="2 images, not 3"):
        inventory_table(some, "all", 3)
    with pytest.raises(ValueError, match="1 images are in the facts or the pixels alone, the first is b"):
        inventory_table(Inventory(some.classes, "origin", {"a": bytes(32)}), "all", 2)
    with pytest.raises(ValueError, match="1 image ids occur twice, the first is a"):
        unique([("a", "x"), ("a", "y")])
    with pytest.raises(ValueError, match="is of no set whose names are known"):
        openood_source("cifar10c/04972_8.png")


def test_published_bodies_leave_out_only_our_header(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"# source: a/b:c@1\n# note\n# source: d/e:f@2\nid\tclass\n1\tx\n")
    published = Published(path)
    assert published.body == b"id\tclass\n1\tx\n"
    assert published.sha256 == hashlib.sha256(b"id\tclass\n1\tx\n").hexdigest()
    assert published.origin == "a/b:c@1; d/e:f@2"
    assert list(published.records()) == [{"id": "1", "class": "x"}]
