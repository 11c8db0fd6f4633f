"""Every layout of every source kept in files: found, scanned, read, in any order and any process."""

from __future__ import annotations

import hashlib
import pickle
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.layout_table import DTD, LAYOUTS, Layout, label
from tests.wordnet_splits.datasets.sources.trees import (
    IMAGENET_VAL,
    hash_of,
    in_class_folders,
    jpeg,
    shuffled,
    some,
    write_images,
)
from wordnet_splits.base import errors
from wordnet_splits.datasets.sources import SCAN_SCHEMA, Source, open_source
from wordnet_splits.datasets.sources.image_set import stamps


def rows(source: Source, splits: tuple[str, ...] | None = None) -> list[tuple[str, str, str]]:
    batches = list(source.scan(splits))
    assert all(batch.schema == SCAN_SCHEMA for batch in batches)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("layout", LAYOUTS, ids=label)
def test_a_layout_is_found_scanned_and_read(layout: Layout, tmp_path: Path) -> None:
    layout.write(tmp_path)
    source = open_source(layout.source, tmp_path)
    assert source.layout == layout.layout
    assert source.order == "published"

    found = rows(source)
    assert set(found) == layout.rows
    assert len(found) == len(layout.rows)  # every image once
    assert source.unexpected == {}
    assert source.count() == {s: sum(r[2] == s for r in layout.rows) for s in source.splits}
    for split in source.splits:
        assert set(rows(source, (split,))) == {row for row in layout.rows if row[2] == split}

    ids = shuffled(row[0] for row in layout.rows)
    raws = source.read([*ids, ids[0]])
    assert raws[-1] == raws[0]
    assert len(set(raws)) == len(ids)  # no two ids read one image
    assert source.read([ids[3], ids[1]]) == [raws[3], raws[1]]
    assert source.check_image(raws[0]) is None
    image = source.decode(raws[0], ids[0])
    pixels = struct.pack("<2I", image.height, image.width) + image.tobytes()
    assert source.digest(raws[0]) == hashlib.sha256(pixels if source.lossless else raws[0]).digest()
    assert (image.mode, image.size) == ("RGB", (12, 10))

    copy = pickle.loads(pickle.dumps(source))
    assert copy.read(ids) == raws[:-1]
    assert set(rows(copy)) == layout.rows


@pytest.mark.parametrize(
    "layout", [one for one in LAYOUTS if "parquet" in one.layout or "tars" in one.layout], ids=label
)
def test_archives_hold_the_named_image_under_its_name(layout: Layout, tmp_path: Path) -> None:
    layout.write(tmp_path)
    source = open_source(layout.source, tmp_path)
    archived = shuffled(r[0] for r in layout.rows if r[2] == "val" or "folders" not in layout.layout)
    assert source.read(archived) == [jpeg(hash_of(i)) for i in archived]


def test_a_missing_image_is_named_with_its_root(tmp_path: Path) -> None:
    write_images(tmp_path, in_class_folders(DTD, "images", extension="jpg"))
    source = open_source("dtd", tmp_path)
    absent = next(row[0] for row in some("dtd", "all", classes=3, each=9) if row not in DTD)
    elsewhere = "zigzagged/zigzagged_0001"  # a class without a folder under this root
    for image_id in (absent, elsewhere, "dotted/../../../secret_0001", "/etc/hostname", "banded", ""):
        with pytest.raises(errors.MissingImageError) as caught:
            source.read([image_id])
        assert repr(image_id) in str(caught.value)
        assert str(tmp_path) in str(caught.value)


def test_names_that_are_no_ids_are_counted_and_hidden_ones_passed_over(tmp_path: Path) -> None:
    write_images(tmp_path, in_class_folders(DTD, "images", extension="jpg"))
    extra = (
        "images/banded/banded_9999.jpg",  # the form of an id, but none
        "images/banded/dotted_0161.jpg",  # of another class
        "images/banded/copy of banded_0002.jpg",
        "images/banded/Thumbs.db",
        "images/plaid/plaid_0001.jpg",  # no such texture
        "images/banded_0002.jpg",
        "images/.DS_Store",
        "images/banded/.banded_0004.jpg",
        "imdb/imdb.mat",
    )
    write_images(tmp_path, extra)
    source = open_source("dtd", tmp_path)
    assert set(rows(source)) == DTD
    assert source.unexpected == {
        "banded/banded_9999.jpg": 1,
        "banded/dotted_0161.jpg": 1,
        "banded/copy of banded_0002.jpg": 1,
        "banded/Thumbs.db": 1,
        "images/plaid": 1,
        "images/banded_0002.jpg": 1,
    }
    source.count()
    assert sum(source.unexpected.values()) == 6  # of the last scan, not of all


def test_unexpected_names_stay_few_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordnet_splits.datasets.sources.source.UNEXPECTED_NAMES", 3)
    write_images(tmp_path, in_class_folders(DTD, "images", extension="jpg"))
    write_images(tmp_path, (f"images/banded/{n}.jpg" for n in range(8)))
    source = open_source("dtd", tmp_path)
    source.count()
    assert len(source.unexpected) == 4
    assert source.unexpected["(other names)"] == 5


def test_validation_folders_are_held_to_the_known_labels(tmp_path: Path) -> None:
    write_images(tmp_path, in_class_folders(IMAGENET_VAL, "val"))
    image_id, wnid, _ = min(IMAGENET_VAL)
    (tmp_path / f"val/{wnid}/{image_id}.JPEG").unlink()
    write_images(tmp_path, [f"val/n15075141/{image_id}.JPEG"])
    source = open_source("imagenet1k", tmp_path)
    assert set(rows(source)) == IMAGENET_VAL - {(image_id, wnid, "val")}
    assert source.unexpected == {f"n15075141/{image_id}.JPEG": 1}


def test_links_inside_the_root_are_followed(tmp_path: Path) -> None:
    write_images(tmp_path, in_class_folders(DTD, "store", extension="jpg"))
    (tmp_path / "images").symlink_to("store")
    image_id, class_id, _ = min(DTD)
    stored = tmp_path / "store" / f"{image_id}.jpg"
    moved = tmp_path / "elsewhere.jpg"
    stored.rename(moved)
    stored.symlink_to(moved)
    source = open_source("dtd", tmp_path)
    assert set(rows(source)) == DTD
    assert source.read([image_id]) == [moved.read_bytes()]
    moved.unlink()  # now it leads nowhere: the image is missing, the others are not
    assert set(rows(source)) == DTD - {(image_id, class_id, "all")}
    with raises(errors.MissingImageError, where=tmp_path, naming=image_id):
        source.read([image_id])


def test_an_unknown_split_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    write_images(tmp_path, in_class_folders(DTD, "images", extension="jpg"))
    with raises(errors.UnknownNameError, where="dtd", naming="test"):
        list(open_source("dtd", tmp_path).scan(["test"]))


REAL = [
    ("dtd", "dtd", {"all": 60}, {}),
    ("food101", "food-101", {"train": 45, "test": 15}, {}),
    ("tiny-imagenet", "tiny-imagenet-200", {"train": 0, "val": 10_000}, {}),
    ("imagenet1k", "imagenet", {"train": 0, "val": 0}, 200),  # its file names are not the publisher's
]


@pytest.mark.parametrize(("name", "folder", "held", "unexpected"), REAL, ids=[row[0] for row in REAL])
def test_real_datasets(
    name: str, folder: str, held: dict[str, int], unexpected: int, real_data: Path
) -> None:
    source = open_source(name, real_data / folder)
    assert source.count() == held
    assert len(source.unexpected) == (unexpected or 0)
    ids = sorted(row[0] for row in rows(source))[:40]
    for image_id, raw in zip(ids, source.read(ids), strict=True):
        assert source.check_image(raw) is None
        assert source.decode(raw, image_id).mode == "RGB"


def test_an_image_hangs_on_its_file_or_on_every_file_that_is_no_image(tmp_path: Path) -> None:
    ids = pa.array(["a/1", "b/2", "c/3.png"])
    files = ("x/1.jpg", "2.JPEG", "deep/er/3.png", "0.tar", "1.mdb", "other.jpg", ".hidden.tar")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    before = stamps(tmp_path, ids)
    moved = {"x/1.jpg": [0], "2.JPEG": [1], "deep/er/3.png": [2], "0.tar": [0, 1, 2], "1.mdb": [0, 1, 2]}
    for name in files:
        (tmp_path / name).write_bytes(b"yy")
        after = stamps(tmp_path, ids)
        assert (after != before).nonzero()[0].tolist() == moved.get(name, []), name
        before = after
