"""How every source kept in files is laid out: what its files are called, and what must be found in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.wordnet_splits.datasets.sources.kin_trees import TREES
from tests.wordnet_splits.datasets.sources.trees import (
    IMAGENET_TRAIN,
    IMAGENET_VAL,
    Rows,
    flat,
    hash_of,
    hub_shards,
    in_class_folders,
    jpeg,
    some,
    tar_bytes,
    train_tar,
    val_tar,
    write_images,
)

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
