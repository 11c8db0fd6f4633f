"""Small trees of ImageNet's kin and of OpenOOD's sets, as their publishers and OpenOOD lay them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

from tests.wordnet_splits.datasets.sources.trees import (
    IMAGENET_VAL,
    Rows,
    flat,
    in_class_folders,
    some,
    write_images,
)
from wordnet_splits.datasets.catalog import load_catalog

LARGE = "images_largescale"
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
R, NONE, V2 = (some(f"imagenet-{name}", "all") for name in ("r", "o", "v2"))
DTD, PLACES = some("dtd", "all"), some("places365", "val")
MOS_SUN = some("mos-sun", "all", each=5)
MOS_PLACES: Rows = {  # none of Places365's validation pictures, which places365 would read, too
    ("b_badlands_00000038", "badlands", "all"),
    ("b_badlands_00000043", "badlands", "all"),
    ("c_canal_natural_00000019", "canal/natural", "all"),
    ("c_canal_natural_00000040", "canal/natural", "all"),
}
NINCO, PLANTS, OPEN = some("ninco", "all"), some("inaturalist", "all"), some("openimage-o", "all", each=5)


def files(*paths: str) -> Callable[[Path], None]:
    return lambda root: write_images(root, paths)


def corrupted(top: str, wnid: bool) -> Iterator[str]:
    for image_id, class_id, _ in sorted(C):
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


def dashed(top: str) -> Iterator[str]:
    for image_id, class_id, _ in sorted(PLACES):
        yield f"{top}/{class_id.replace('/', '-')}/{image_id}.jpg"


def jpgs(rows: Rows, top: str) -> Callable[[Path], None]:
    return files(*in_class_folders(rows, top, extension="jpg"))


# source, label, layout, rows, how it is written
TREES: tuple[tuple[str, str, str, Rows, Callable[[Path], None]], ...] = (
    ("imagenet-r", "publisher", "folders", R, jpgs(R, "imagenet-r")),
    ("imagenet-r", "OpenOOD", "folders", R, jpgs(R, f"{LARGE}/imagenet_r")),
    ("imagenet-a", "publisher", "folders", A, jpgs(A, "imagenet-a")),
    ("imagenet-o", "publisher", "folders", NONE, files(*in_class_folders(NONE, "imagenet-o"))),
    ("imagenet-o", "is that folder", "folders", NONE, files(*in_class_folders(NONE, ""))),
    ("imagenet-v2", "publisher", "folders", V2, files(*numbered("imagenetv2-matched-frequency-format-val"))),
    ("imagenet-v2", "OpenOOD", "folders", V2, files(*numbered(f"data/{LARGE}/imagenet_v2"))),
    ("imagenet-v2", "sorted by wnid", "folders", V2, files(*in_class_folders(V2, "", extension="jpeg"))),
    ("imagenet-c", "publisher", "folders", C, files(*corrupted("imagenet-c", wnid=True))),
    ("imagenet-c", "in folders of the archives", "folders", C, files(*by_archive())),
    ("imagenet-c", "OpenOOD", "flat", C, files(*corrupted(f"{LARGE}/imagenet_c", wnid=False))),
    ("ninco", "publisher", "folders", NINCO, files(*blanks("NINCO/NINCO_OOD_classes"))),
    ("ninco", "OpenOOD", "folders", NINCO, jpgs(NINCO, f"{LARGE}/ninco")),
    ("inaturalist", "publisher", "flat", PLANTS, files(*flat(PLANTS, "iNaturalist/images", "jpg"))),
    ("inaturalist", "OpenOOD", "flat", PLANTS, files(*flat(PLANTS, f"{LARGE}/inaturalist/images", "jpg"))),
    ("mos-places", "publisher", "flat", MOS_PLACES, files(*flat(MOS_PLACES, "Places/images", "jpg"))),
    ("mos-sun", "publisher", "flat", MOS_SUN, files(*flat(MOS_SUN, "SUN/images", "jpg"))),
    ("openimage-o", "OpenOOD", "flat", OPEN, files(*flat(OPEN, f"{LARGE}/openimage_o/images", "jpg"))),
    ("openimage-o", "test folder", "flat", OPEN, files(*flat(OPEN, "OpenImage-O/test", "jpg"))),
    ("dtd", "OpenOOD", "folders", DTD, jpgs(DTD, "images_classic/texture")),
    ("imagenet1k", "OpenOOD", "flat", IMAGENET_VAL, files(*flat(IMAGENET_VAL, f"{LARGE}/imagenet_1k/val"))),
    ("places365", "OpenOOD", "folders", PLACES, files(*dashed("images_classic/places365"))),
)

TAKEN_FOR = MappingProxyType(
    {
        "imagenet-r": files(*in_class_folders(R, "", extension="jpg")),
        "imagenet-a": files(*in_class_folders(A, "", extension="jpg")),
        "imagenet-o": files(*in_class_folders(NONE, "")),
        "imagenet-v2": files(*numbered("val")),
        "imagenet-c": files(*corrupted("", wnid=True)),
        "ninco": files(*in_class_folders(NINCO, "", extension="jpg")),
        "inaturalist": files(*flat(PLANTS, "images", "jpg")),
        "mos-places": files(*flat(MOS_PLACES, "images", "jpg")),
        "mos-sun": files(*flat(MOS_SUN, "images", "jpg")),
        "openimage-o": files(*flat(OPEN, "images", "jpg")),
    }
)
"""A tree of each, to be told from every other dataset."""
