"""LSUN: LMDB files and exported folders."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import digests, scan, webp, write_lmdb
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.datasets.sources import open_source

Images = dict[str, bytes]


@pytest.fixture(scope="module")
def images() -> Images:
    return {hashlib.sha1(bytes([n])).hexdigest(): webp(n) for n in range(12)}


@pytest.fixture
def lmdb_root(tmp_path: Path, images: Images) -> Path:
    keys = sorted(images)
    root = tmp_path / "lmdb"
    write_lmdb(root / "bedroom_val_lmdb", {k: images[k] for k in keys[:4]})
    write_lmdb(root / "bedroom_train_lmdb", {k: images[k] for k in keys[4:9]})
    write_lmdb(root / "church_outdoor_val_lmdb", {k: images[k] for k in keys[9:]})
    return root


@pytest.fixture
def expected(images: Images) -> list[tuple[str, str, str]]:
    keys = sorted(images)
    places = [("val", "bedroom")] * 4 + [("train", "bedroom")] * 5 + [("val", "church_outdoor")] * 3
    return sorted((f"{s}/{c}/{k}", c, s) for k, (s, c) in zip(keys, places, strict=True))


def test_lmdb_files_are_scanned_and_read(
    lmdb_root: Path, images: Images, expected: list[tuple[str, str, str]]
) -> None:
    source = open_source("lsun", lmdb_root)
    assert (source.layout, source.lossless, source.order) == ("lmdb", False, "published")
    assert scan(source) == expected
    assert source.count() == {"train": 5, "val": 7}
    assert source.unexpected == {}
    ids = [row[0] for row in expected]
    assert source.read(ids) == [images[i.rpartition("/")[2]] for i in ids]
    assert digests(source, ids[:1]) == [hashlib.sha256(images[ids[0].rpartition("/")[2]]).digest()]
    assert source.decode(source.read(ids[:1])[0]).mode == "RGB"


@pytest.mark.parametrize("tree", ["{split}/{category}/{key}.webp", "{category}_{split}/{key}.jpg", "nested"])
def test_exported_folders_are_the_same_dataset(
    tmp_path: Path, lmdb_root: Path, images: Images, expected: list[tuple[str, str, str]], tree: str
) -> None:
    root = tmp_path / "folders"
    for image_id, category, split in expected:
        key = image_id.rpartition("/")[2]
        nested = f"{split}/{category}/{'/'.join(key[:6])}/{key}.webp"
        path = root / (nested if tree == "nested" else tree.format(split=split, category=category, key=key))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(images[key])
    source = open_source("lsun", root)
    assert source.layout == "folder"
    assert scan(source) == expected
    assert source.count(["val"]) == {"val": 7}
    ids = [row[0] for row in expected]
    assert digests(source, ids) == digests(open_source("lsun", lmdb_root), ids)


def test_other_names_are_counted(lmdb_root: Path, images: Images) -> None:
    write_lmdb(lmdb_root / "airplane_train_lmdb", {"a": b"x"})
    write_lmdb(lmdb_root / "test_lmdb", {"a": b"x"})
    write_lmdb(lmdb_root / "tower_val_lmdb", {"a/b": b"x", "ü": b"x", "good": b"x", ".hidden": b"x"})
    source = open_source("lsun", lmdb_root)
    found = [row[0] for row in scan(source) if row[1] == "tower"]
    assert found == ["val/tower/good"]
    assert source.unexpected == {
        "airplane_train_lmdb": 1,
        "val/tower/a/b": 1,
        "val/tower/.hidden": 1,
        "val/tower/\\xc3\\xbc": 1,
    }


def test_other_files_in_folders_are_counted(tmp_path: Path, images: Images) -> None:
    folder = tmp_path / "val" / "bedroom"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "strange").mkdir()
    for name in ("good.webp", "list.txt", "a/abcdef.webp", "a/b/abcdef.webp", "a/b/other.webp"):
        (folder / name).write_bytes(next(iter(images.values())))
    source = open_source("lsun", tmp_path)
    assert [row[0] for row in scan(source)] == ["val/bedroom/good"]
    assert sum(source.unexpected.values()) == 5
    (folder / "good.jpg").write_bytes(b"x")
    with raises(SourceError, where="bedroom", naming="good"):
        scan(open_source("lsun", tmp_path))


def test_scene_folders_of_another_dataset_are_not_lsun(tmp_path: Path) -> None:
    for name in ("bedroom", "kitchen", "airfield", "alley", "zoo"):
        (tmp_path / "train" / name).mkdir(parents=True)
    with raises(SourceError, where=tmp_path, naming="lsun"):
        open_source("lsun", tmp_path)


def test_a_root_is_not_written_to(lmdb_root: Path) -> None:
    for lock in lmdb_root.glob("*/lock.mdb"):
        lock.unlink()
    before = sorted((p, p.stat().st_mtime_ns) for p in lmdb_root.rglob("*"))
    source = open_source("lsun", lmdb_root)
    source.read([row[0] for row in scan(source)])
    assert sorted((p, p.stat().st_mtime_ns) for p in lmdb_root.rglob("*")) == before


def test_a_category_that_cannot_be_read_leaves_the_others(lmdb_root: Path) -> None:
    path = lmdb_root / "bedroom_val_lmdb" / "data.mdb"
    path.unlink()
    source = open_source("lsun", lmdb_root)
    with raises(SourceError, where="data.mdb", naming="bedroom_val_lmdb"):
        scan(source)
    assert not path.exists()
    assert len(scan(source, ["train"])) == 5


def test_two_sources_read_one_file(lmdb_root: Path, expected: list[tuple[str, str, str]]) -> None:
    """LMDB itself forbids opening a file twice in a process."""
    ids = [row[0] for row in expected]
    source, second = open_source("lsun", lmdb_root), open_source("lsun", lmdb_root)
    assert digests(source, ids) == digests(second, ids)
    with pytest.raises(MissingImageError):
        source.read(["val/bedroom/" + "x" * 600])  # longer than any key
