"""How every source kept in files is laid out: what its files are called, and what must be found in them.

ImageNet's kin and OpenOOD's sets are laid out as their publishers and as OpenOOD lay them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.wordnet_splits.datasets.sources.trees import (
    IMAGENET_TRAIN,
    IMAGENET_VAL,
    Rows,
    Write,
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
from wordnet_splits.datasets.catalog import load_catalog

BOTH = IMAGENET_TRAIN | IMAGENET_VAL
A: Rows = {
    (f"{wnid}/{name}", wnid, "all")
    for wnid in ("n01498041", "n07749582")
    for name in ("0.000116_digital clock _ digital clock_0.865662", "0.000017_broccoli _ broccoli_0.52701503")
}
C: Rows = {
    (f"{corruption}/{severity}/{image_id}", wnid, split)
    for corruption, split in (("fog", "standard"), ("glass_blur", "standard"), ("spatter", "extra"))
    for severity in (1, 5)
    for image_id, wnid, _ in IMAGENET_VAL
}
ES: Rows = {
    row
    for row in some("imagenet-es", "test", each=64)
    if row[0].startswith(("auto_exposure/l1/param_5/", "param_control/l5/param_27/"))
}
SPECIES, KEPT_SPECIES = some("openood-species", "all", each=5), some("ninco-species", "all", each=5)
R, NONE, V2 = (some(f"imagenet-{name}", "all") for name in ("r", "o", "v2"))
MOS_SUN = some("mos-sun", "all", each=5)
MOS_PLACES: Rows = {  # none of Places365's validation images, which places365 would read, too
    ("b_badlands_00000038", "badlands", "all"),
    ("b_badlands_00000043", "badlands", "all"),
    ("c_canal_natural_00000019", "canal/natural", "all"),
    ("c_canal_natural_00000040", "canal/natural", "all"),
}
NINCO, PLANTS, OPEN = some("ninco", "all"), some("inaturalist", "all"), some("openimage-o", "all", each=5)
PLACES_TRAIN: Rows = {
    (f"{class_id}/{number:08d}", class_id, "train")
    for class_id in ("airfield", "arena/hockey", "zen_garden")
    for number in (1, 4999)
}
SUN: Rows = {
    (f"{class_id}/sun_{''.join(chr(97 + (7 * n + k) % 26) for k in range(16))}", class_id, "all")
    for at, class_id in enumerate(("abbey", "apse/indoor", "youth_hostel"))
    for n in (2 * at, 2 * at + 1)
}
DTD, PLACES_VAL, CALTECH = some("dtd", "all"), some("places365", "val"), some("caltech256", "all")
TINY_TRAIN, TINY_VAL = some("tiny-imagenet", "train"), some("tiny-imagenet", "val")
FOOD = some("food101", "train") | some("food101", "test")
OPENOOD: dict[str, Rows] = {
    "openood-cifar10": some("openood-cifar10", "train") | some("openood-cifar10", "test"),
    "openood-cifar100": some("openood-cifar100", "train") | some("openood-cifar100", "test"),
    "openood-mnist": some("openood-mnist", "train") | some("openood-mnist", "test"),
    "openood-svhn": some("openood-svhn", "test"),
    "openood-tin597": some("openood-tin597", "test"),
}


def files(*paths: str) -> Write:
    return lambda root: write_images(root, paths)


def sorted_files(rows: Rows, top: str = "", inner: str = "", extension: str = "JPEG") -> Write:
    """Files in class folders."""
    return files(*in_class_folders(rows, top, inner, extension))


def flat_files(rows: Rows, top: str = "", extension: str = "JPEG") -> Write:
    return files(*flat(rows, top, extension))


def jpgs(rows: Rows, top: str = "") -> Write:
    return sorted_files(rows, top, extension="jpg")


def flat_jpgs(rows: Rows, top: str = "") -> Write:
    return flat_files(rows, top, "jpg")


def corrupted(top: str, wnid: bool, rows: Rows = C) -> Iterator[str]:
    for image_id, class_id, _ in sorted(rows):
        below, _, stem = image_id.rpartition("/")
        yield "/".join(part for part in (top, below, class_id if wnid else "", f"{stem}.JPEG") if part)


def by_archive() -> Iterator[str]:
    archive = {"fog": "weather", "glass_blur": "blur", "spatter": "extra"}
    for path in corrupted("", wnid=True):
        yield f"{archive[path.split('/')[0]]}/{path}"


def numbered(top: str) -> Iterator[str]:
    for image_id, wnid, _ in sorted(V2):
        yield f"{top}/{load_catalog('imagenet-v2')[wnid].index}/{image_id}.jpeg"


def blanks(top: str) -> Iterator[str]:
    """NINCO as published: blanks in two class names and in the names of their files."""
    for path in in_class_folders(NINCO, "", extension="png"):
        class_id = path.split("/")[0]
        yield f"{top}/" + (path.replace("_", " ", 4) if class_id.startswith("Caracal") else path)


def dashed(rows: Rows, top: str) -> Write:
    return files(*(f"{top}/{c.replace('/', '-')}/{i}.jpg" for i, c, _ in sorted(rows)))


def below_letters(rows: Rows, top: str) -> Iterator[str]:
    yield from (f"{top}{class_id[0]}/{image_id}.jpg" for image_id, class_id, _ in sorted(rows))


def tars(root: Path) -> None:
    (root / "ILSVRC2012_img_train.tar").write_bytes(train_tar(IMAGENET_TRAIN))
    (root / "ILSVRC2012_img_val.tar").write_bytes(val_tar(IMAGENET_VAL))


def sun_tar(root: Path, top: str = "SUN397/") -> None:
    """The publisher's archive, gunzipped: lists next to the class folders."""
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


@dataclass(frozen=True)
class Layout:
    """A way to keep a source: what its files are called, and what must be found in them."""

    source: str
    label: str
    layout: str
    rows: Rows
    write: Write


def openood(source: str, above: str = "images_classic/") -> Layout:
    """OpenOOD's folder of a dataset it renumbered, below what its download makes."""
    rows, top = OPENOOD[source], above + source.removeprefix("openood-")
    write, layout = flat_jpgs(rows, top), "flat"
    if source == "openood-tin597":
        write, layout = sorted_files(rows, f"{top}/test", "images"), "folders"
    elif source.startswith("openood-cifar"):
        write, layout = flat_files(rows, top, "png"), "folders"
    return Layout(source, f"in {above or 'its folder'}", layout, rows, write)


LARGE, KAGGLE = "images_largescale", "ILSVRC/Data/CLS-LOC"
KEPT = "NINCO_popular_datasets_subsamples"
OF_TRAIN, OF_VAL = sorted_files(IMAGENET_TRAIN, "train"), sorted_files(IMAGENET_VAL, "val")
TORCHVISION = files(*in_class_folders(IMAGENET_TRAIN, "train"), *in_class_folders(IMAGENET_VAL, "val"))
OF_KAGGLE = files(
    *in_class_folders(IMAGENET_TRAIN, f"{KAGGLE}/train"),
    *flat(IMAGENET_VAL, f"{KAGGLE}/val"),
    f"{KAGGLE}/test/ILSVRC2012_test_00000001.JPEG",
)
TINY = files(*in_class_folders(TINY_TRAIN, "train", "images"), *flat(TINY_VAL, "val/images"))
TINY_SORTED = files(*in_class_folders(TINY_TRAIN, "train"), *in_class_folders(TINY_VAL, "val", "images"))
TINY_OPENOOD = files(
    *flat(TINY_VAL, "images_classic/tin/val/images"), "images_classic/cifar10/test/cat/0001.png"
)
TINY_BOTH = TINY_TRAIN | TINY_VAL
PLACES_BOTH = PLACES_TRAIN | PLACES_VAL

# source, label, layout, rows, how it is written
TREES: tuple[tuple[str, str, str, Rows, Write], ...] = (
    ("imagenet1k", "torchvision", "folders", BOTH, TORCHVISION),
    ("imagenet1k", "only train", "folders", IMAGENET_TRAIN, OF_TRAIN),
    ("imagenet1k", "only val", "folders", IMAGENET_VAL, OF_VAL),
    ("imagenet1k", "is the train folder", "folders", IMAGENET_TRAIN, sorted_files(IMAGENET_TRAIN)),
    ("imagenet1k", "is the sorted val folder", "folders", IMAGENET_VAL, sorted_files(IMAGENET_VAL)),
    ("imagenet1k", "Kaggle", "kaggle", BOTH, OF_KAGGLE),
    ("imagenet1k", "flat val", "flat", IMAGENET_VAL, flat_files(IMAGENET_VAL, "val")),
    ("imagenet1k", "is the flat val folder", "flat", IMAGENET_VAL, flat_files(IMAGENET_VAL)),
    ("imagenet1k", "publisher's tars", "tars", BOTH, tars),
    ("imagenet1k", "train folders, val tar", "folders+tars", BOTH, mixed),
    ("imagenet1k", "Hub", "parquet", BOTH, hub),
    ("imagenet1k", "Hub, original names", "parquet", BOTH, lambda root: hub(root, "train/{wnid}/{id}.jpeg")),
    ("imagenet1k", "OpenOOD", "flat", IMAGENET_VAL, flat_files(IMAGENET_VAL, f"{LARGE}/imagenet_1k/val")),
    ("tiny-imagenet", "publisher", "folders+publisher", TINY_BOTH, TINY),
    ("tiny-imagenet", "sorted val", "folders", TINY_VAL, sorted_files(TINY_VAL, "tiny-imagenet-200/val")),
    ("tiny-imagenet", "both sorted flat", "folders", TINY_BOTH, TINY_SORTED),
    ("tiny-imagenet", "OpenOOD", "publisher", TINY_VAL, TINY_OPENOOD),
    ("food101", "publisher", "folders", FOOD, jpgs(FOOD, "images")),
    ("food101", "one folder down", "folders", FOOD, jpgs(FOOD, "food-101/images")),
    ("caltech256", "publisher", "folders", CALTECH, jpgs(CALTECH, "256_ObjectCategories")),
    ("caltech256", "is that folder", "folders", CALTECH, sorted_files(CALTECH, extension="JPG")),
    ("dtd", "publisher", "folders", DTD, jpgs(DTD, "images")),
    ("dtd", "torchvision", "folders", DTD, sorted_files(DTD, "dtd/dtd/images", extension="JpEg")),
    ("dtd", "OpenOOD", "folders", DTD, jpgs(DTD, "images_classic/texture")),
    ("places365", "val_256", "flat", PLACES_VAL, flat_jpgs(PLACES_VAL, "val_256")),
    ("places365", "val_large", "flat", PLACES_VAL, flat_jpgs(PLACES_VAL, "val_large")),
    ("places365", "is the flat val folder", "flat", PLACES_VAL, flat_jpgs(PLACES_VAL)),
    ("places365", "val, slashes written as dashes", "folders", PLACES_VAL, dashed(PLACES_VAL, "val")),
    ("places365", "train without the letter", "folders", PLACES_TRAIN, jpgs(PLACES_TRAIN, "train")),
    ("places365", "OpenOOD", "folders", PLACES_VAL, dashed(PLACES_VAL, "images_classic/places365")),
    ("sun397", "the publisher's tar", "tars", SUN, sun_tar),
    ("sun397", "a tar without the folder of its own", "tars", SUN, lambda root: sun_tar(root, "")),
    ("imagenet-r", "publisher", "folders", R, jpgs(R, "imagenet-r")),
    ("imagenet-r", "OpenOOD", "folders", R, jpgs(R, f"{LARGE}/imagenet_r")),
    ("imagenet-a", "publisher", "folders", A, jpgs(A, "imagenet-a")),
    ("imagenet-o", "publisher", "folders", NONE, sorted_files(NONE, "imagenet-o")),
    ("imagenet-o", "is that folder", "folders", NONE, sorted_files(NONE)),
    ("imagenet-v2", "publisher", "folders", V2, files(*numbered("imagenetv2-matched-frequency-format-val"))),
    ("imagenet-v2", "OpenOOD", "folders", V2, files(*numbered(f"data/{LARGE}/imagenet_v2"))),
    ("imagenet-v2", "sorted by wnid", "folders", V2, sorted_files(V2, extension="jpeg")),
    ("imagenet-c", "publisher", "folders", C, files(*corrupted("imagenet-c", wnid=True))),
    ("imagenet-c", "in folders of the archives", "folders", C, files(*by_archive())),
    ("imagenet-c", "OpenOOD", "flat", C, files(*corrupted(f"{LARGE}/imagenet_c", wnid=False))),
    ("imagenet-es", "publisher", "folders", ES, files(*corrupted("ImageNet-ES/es-test", True, ES))),
    ("imagenet-es", "OpenOOD", "folders", ES, files(*corrupted(f"{LARGE}/imagenet_es/es-test", True, ES))),
    ("ninco", "publisher", "folders", NINCO, files(*blanks("NINCO/NINCO_OOD_classes"))),
    ("ninco", "OpenOOD", "folders", NINCO, jpgs(NINCO, f"{LARGE}/ninco")),
    ("inaturalist", "publisher", "flat", PLANTS, flat_jpgs(PLANTS, "iNaturalist/images")),
    ("inaturalist", "OpenOOD", "flat", PLANTS, flat_jpgs(PLANTS, f"{LARGE}/inaturalist/images")),
    ("mos-places", "publisher", "flat", MOS_PLACES, flat_jpgs(MOS_PLACES, "Places/images")),
    ("mos-sun", "publisher", "flat", MOS_SUN, flat_jpgs(MOS_SUN, "SUN/images")),
    ("openood-species", "OpenOOD", "flat", SPECIES, flat_jpgs(SPECIES, f"{LARGE}/species_sub")),
    ("ninco-species", "publisher", "flat", KEPT_SPECIES, flat_jpgs(KEPT_SPECIES, f"{KEPT}/Species")),
    ("openimage-o", "OpenOOD", "flat", OPEN, flat_jpgs(OPEN, f"{LARGE}/openimage_o/images")),
    ("openimage-o", "test folder", "flat", OPEN, flat_jpgs(OPEN, "OpenImage-O/test")),
)
LAYOUTS = [
    *(Layout(*tree) for tree in TREES),
    *(
        Layout(
            *("places365", f"train-standard in {folder}", "folders+flat", PLACES_BOTH),
            files(*below_letters(PLACES_TRAIN, f"{folder}/"), *flat(PLACES_VAL, "val_256", "jpg")),
        )
        for folder in ("data_256_standard", "data_256", "data_large", "train")
    ),
    *(
        Layout(
            *("sun397", f"class folders in {top or 'the root'}", "folders", SUN),
            files(*below_letters(SUN, top), f"{top}ClassName.jpg.txt"),
        )
        for top in ("SUN397/", "")
    ),
    *(
        openood(source, above)
        for source in OPENOOD
        for above in ("images_classic/", "data/images_classic/", "")
    ),
]
TAKEN_FOR = MappingProxyType(
    {
        "imagenet-r": jpgs(R),
        "imagenet-a": jpgs(A),
        "imagenet-o": sorted_files(NONE),
        "imagenet-v2": files(*numbered("val")),
        "imagenet-c": files(*corrupted("", wnid=True)),
        "imagenet-es": files(*corrupted("", wnid=True, rows=ES)),
        "ninco": jpgs(NINCO),
        "inaturalist": flat_jpgs(PLANTS, "images"),
        "mos-places": flat_jpgs(MOS_PLACES, "images"),
        "mos-sun": flat_jpgs(MOS_SUN, "images"),
        "openood-species": flat_jpgs(SPECIES, "species_sub"),
        "ninco-species": flat_jpgs(KEPT_SPECIES, "Species"),
        "openimage-o": flat_jpgs(OPEN, "images"),
    }
)
"""A tree of each, to be told from every other dataset."""


def label(layout: Layout) -> str:
    return f"{layout.source}: {layout.label}"
