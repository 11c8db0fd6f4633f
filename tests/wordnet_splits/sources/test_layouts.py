"""Every layout of every source kept in files: found, scanned, read, in any order and any process."""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import struct
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.wordnet_splits.sources.kin_trees import TREES
from tests.wordnet_splits.sources.trees import (
    IMAGENET_TRAIN,
    IMAGENET_VAL,
    Rows,
    flat,
    hash_of,
    hub_shards,
    in_class_folders,
    jpeg,
    shuffled,
    some,
    tar_bytes,
    train_tar,
    val_tar,
    write_images,
)
from wordnet_splits import errors
from wordnet_splits.sources import SCAN_SCHEMA, Source, open_source

PLACES_TRAIN: Rows = {
    (f"{class_id}/{number:08d}", class_id, "train")
    for class_id in ("airfield", "arena/hockey", "zen_garden")
    for number in (1, 4999)
}
PLACES_VAL = some("places365", "val")
SUN: Rows = {
    (f"{class_id}/sun_{''.join(chr(97 + (7 * n + k) % 26) for k in range(16))}", class_id, "all")
    for at, class_id in enumerate(("abbey", "apse/indoor", "youth_hostel"))
    for n in (2 * at, 2 * at + 1)
}
TINY_TRAIN, TINY_VAL = some("tiny-imagenet", "train"), some("tiny-imagenet", "val")
FOOD = some("food101", "train") | some("food101", "test")
CALTECH = some("caltech256", "all")
DTD = some("dtd", "all")
OPENOOD: dict[str, Rows] = {
    "openood-cifar10": some("openood-cifar10", "train") | some("openood-cifar10", "test"),
    "openood-cifar100": some("openood-cifar100", "train") | some("openood-cifar100", "test"),
    "openood-mnist": some("openood-mnist", "train") | some("openood-mnist", "test"),
    "openood-svhn": some("openood-svhn", "test"),
    "openood-tin597": some("openood-tin597", "test"),
}


@dataclass(frozen=True)
class Layout:
    """A way to keep a source: what its files are called, and what must be found in them."""

    source: str
    label: str
    layout: str
    rows: Rows
    write: Callable[[Path], None]


def files(*paths: str) -> Callable[[Path], None]:
    return lambda root: write_images(root, paths)


def tars(root: Path) -> None:
    (root / "ILSVRC2012_img_train.tar").write_bytes(train_tar(IMAGENET_TRAIN))
    (root / "ILSVRC2012_img_val.tar").write_bytes(val_tar(IMAGENET_VAL))


def sun_tar(root: Path, top: str = "SUN397/") -> None:
    """The publisher's archive, gunzipped: lists beside the class folders."""
    lists = [(f"{top}ClassName.txt", b"/a/abbey\n"), (f"{top}README.txt", b"SUN397\n")]
    images = [(f"{top}{c[0]}/{i}.jpg", jpeg(hash_of(i))) for i, c, _ in sorted(SUN)]
    (root / "SUN397.tar").write_bytes(tar_bytes([*lists, *images]))


def hub(root: Path, form: str = "{id}_{wnid}.JPEG") -> None:
    for split, rows in (("train", IMAGENET_TRAIN), ("validation", IMAGENET_VAL)):
        named = [(form.format(id=i, wnid=wnid), jpeg(hash_of(i))) for i, wnid, _ in sorted(rows)]
        hub_shards(root / "data", split, named)
    hub_shards(root / "data", "test", [("ILSVRC2012_test_00000001.JPEG", jpeg(1))], shards=1)


def mixed(root: Path) -> None:
    write_images(root, in_class_folders(IMAGENET_TRAIN, "train"))
    (root / "ILSVRC2012_img_val.tar").write_bytes(val_tar(IMAGENET_VAL))


def openood(source: str, above: str = "images_classic/") -> Layout:
    """OpenOOD's folder of a dataset it renumbered, below what its download makes."""
    rows, top = OPENOOD[source], above + source.removeprefix("openood-")
    if source == "openood-tin597":
        paths, layout = list(in_class_folders(rows, f"{top}/test", "images")), "folders"
    elif source.startswith("openood-cifar"):
        paths, layout = list(flat(rows, top, "png")), "folders"
    else:
        paths, layout = list(flat(rows, top, "jpg")), "flat"
    return Layout(source, f"in {above or 'its folder'}", layout, rows, files(*paths))


BOTH = IMAGENET_TRAIN | IMAGENET_VAL
KAGGLE = "ILSVRC/Data/CLS-LOC"
LAYOUTS = [
    Layout(
        "imagenet1k",
        "torchvision",
        "folders",
        BOTH,
        files(*in_class_folders(IMAGENET_TRAIN, "train"), *in_class_folders(IMAGENET_VAL, "val")),
    ),
    Layout(
        "imagenet1k",
        "only train",
        "folders",
        IMAGENET_TRAIN,
        files(*in_class_folders(IMAGENET_TRAIN, "train")),
    ),
    Layout("imagenet1k", "only val", "folders", IMAGENET_VAL, files(*in_class_folders(IMAGENET_VAL, "val"))),
    Layout(
        "imagenet1k",
        "is the train folder",
        "folders",
        IMAGENET_TRAIN,
        files(*in_class_folders(IMAGENET_TRAIN, "")),
    ),
    Layout(
        "imagenet1k",
        "is the sorted val folder",
        "folders",
        IMAGENET_VAL,
        files(*in_class_folders(IMAGENET_VAL, "")),
    ),
    Layout(
        "imagenet1k",
        "Kaggle",
        "kaggle",
        BOTH,
        files(
            *in_class_folders(IMAGENET_TRAIN, f"{KAGGLE}/train"),
            *flat(IMAGENET_VAL, f"{KAGGLE}/val"),
            f"{KAGGLE}/test/ILSVRC2012_test_00000001.JPEG",
        ),
    ),
    Layout("imagenet1k", "flat val", "flat", IMAGENET_VAL, files(*flat(IMAGENET_VAL, "val"))),
    Layout("imagenet1k", "is the flat val folder", "flat", IMAGENET_VAL, files(*flat(IMAGENET_VAL, ""))),
    Layout("imagenet1k", "publisher's tars", "tars", BOTH, tars),
    Layout("imagenet1k", "train folders, val tar", "folders+tars", BOTH, mixed),
    Layout("imagenet1k", "Hub", "parquet", BOTH, hub),
    Layout(
        "imagenet1k", "Hub, original names", "parquet", BOTH, lambda root: hub(root, "train/{wnid}/{id}.jpeg")
    ),
    Layout(
        "tiny-imagenet",
        "publisher",
        "folders+publisher",
        TINY_TRAIN | TINY_VAL,
        files(*in_class_folders(TINY_TRAIN, "train", "images"), *flat(TINY_VAL, "val/images")),
    ),
    Layout(
        "tiny-imagenet",
        "sorted val, one folder down",
        "folders",
        TINY_VAL,
        files(*in_class_folders(TINY_VAL, "tiny-imagenet-200/val")),
    ),
    Layout(
        "tiny-imagenet",
        "both sorted flat",
        "folders",
        TINY_TRAIN | TINY_VAL,
        files(*in_class_folders(TINY_TRAIN, "train"), *in_class_folders(TINY_VAL, "val", "images")),
    ),
    Layout(
        "food101", "publisher", "folders", FOOD, files(*in_class_folders(FOOD, "images", extension="jpg"))
    ),
    Layout(
        "food101",
        "one folder down",
        "folders",
        FOOD,
        files(*in_class_folders(FOOD, "food-101/images", extension="jpg")),
    ),
    Layout(
        "caltech256",
        "publisher",
        "folders",
        CALTECH,
        files(*in_class_folders(CALTECH, "256_ObjectCategories", extension="jpg")),
    ),
    Layout(
        "caltech256",
        "is that folder",
        "folders",
        CALTECH,
        files(*in_class_folders(CALTECH, "", extension="JPG")),
    ),
    Layout("dtd", "publisher", "folders", DTD, files(*in_class_folders(DTD, "images", extension="jpg"))),
    Layout(
        "dtd",
        "torchvision",
        "folders",
        DTD,
        files(*in_class_folders(DTD, "dtd/dtd/images", extension="JpEg")),
    ),
    Layout("places365", "val_256", "flat", PLACES_VAL, files(*flat(PLACES_VAL, "val_256", "jpg"))),
    Layout("places365", "val_large", "flat", PLACES_VAL, files(*flat(PLACES_VAL, "val_large", "jpg"))),
    Layout("places365", "is the flat val folder", "flat", PLACES_VAL, files(*flat(PLACES_VAL, "", "jpg"))),
    Layout(
        "places365",
        "val in class folders, slashes written as dashes",
        "folders",
        PLACES_VAL,
        files(*(f"val/{c.replace('/', '-')}/{i}.jpg" for i, c, _ in sorted(PLACES_VAL))),
    ),
    *(
        Layout(
            "places365",
            f"train-standard in {folder}",
            "folders+flat",
            PLACES_TRAIN | PLACES_VAL,
            files(
                *(f"{folder}/{c[0]}/{i}.jpg" for i, c, _ in sorted(PLACES_TRAIN)),
                *flat(PLACES_VAL, "val_256", "jpg"),
            ),
        )
        for folder in ("data_256_standard", "data_256", "data_large", "train")
    ),
    Layout(
        "places365",
        "train without the letter",
        "folders",
        PLACES_TRAIN,
        files(*in_class_folders(PLACES_TRAIN, "train", extension="jpg")),
    ),
    *(
        openood(source, above)
        for source in OPENOOD
        for above in ("images_classic/", "data/images_classic/", "")
    ),
    Layout(
        "tiny-imagenet",
        "OpenOOD",
        "publisher",
        TINY_VAL,
        files(*flat(TINY_VAL, "images_classic/tin/val/images"), "images_classic/cifar10/test/cat/0001.png"),
    ),
    *(Layout(*tree) for tree in TREES),
    *(
        Layout(
            "sun397",
            f"class folders in {top or 'the root'}",
            "folders",
            SUN,
            files(*(f"{top}{c[0]}/{i}.jpg" for i, c, _ in sorted(SUN)), f"{top}ClassName.jpg.txt"),
        )
        for top in ("SUN397/", "")
    ),
    Layout("sun397", "the publisher's tar", "tars", SUN, sun_tar),
    Layout("sun397", "a tar without the folder of its own", "tars", SUN, lambda root: sun_tar(root, "")),
]


def label(layout: Layout) -> str:
    return f"{layout.source}: {layout.label}"


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
    assert len(set(raws)) == len(ids)  # no two ids read one picture
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
def test_archives_hold_the_named_picture_under_its_name(layout: Layout, tmp_path: Path) -> None:
    layout.write(tmp_path)
    source = open_source(layout.source, tmp_path)
    archived = shuffled(r[0] for r in layout.rows if r[2] == "val" or "folders" not in layout.layout)
    assert source.read(archived) == [jpeg(hash_of(i)) for i in archived]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_read_what_the_parent_reads(method: str, tmp_path: Path) -> None:
    tars(tmp_path)
    source = open_source("imagenet1k", tmp_path)
    ids = shuffled(row[0] for row in IMAGENET_TRAIN)
    here = source.read(ids)  # opens the archive before workers are forked
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        there = [pool.submit(source.read, ids[k::4]) for k in range(4)]
        assert [future.result() for future in there] == [here[k::4] for k in range(4)]


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


def test_ids_never_lead_out_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_images(root, in_class_folders(DTD, "images", extension="jpg"))
    (tmp_path / "banded_0001.jpg").write_bytes(b"secret")
    source = open_source("dtd", root)
    for image_id in ("../banded_0001", "banded/../../banded_0001", f"{tmp_path}/banded_0001"):
        with pytest.raises(errors.MissingImageError):
            source.read([image_id])


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
    monkeypatch.setattr("wordnet_splits.sources.base.UNEXPECTED_NAMES", 3)
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
    with pytest.raises(errors.MissingImageError, match=image_id):
        source.read([image_id])


def test_an_unknown_split_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    write_images(tmp_path, in_class_folders(DTD, "images", extension="jpg"))
    with pytest.raises(errors.UnknownNameError, match=r"'test'.*all"):
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
