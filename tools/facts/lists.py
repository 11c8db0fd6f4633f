"""Published lists of images, converted to our columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pyarrow as pa

from tools.facts.openood import openood_file
from tools.facts.published import Published
from wordnet_splits.base.parquet import read_table, write_table
from wordnet_splits.datasets.catalog.inventory import LIST_SCHEMA

OPENSET = ("p1_val", "p1_test", "p2_train", "p2_val", "p2_test", "p3_val", "p3_test")

# OpenOOD's path -> our image id, for the sets that keep the publisher's names or numbers. Its CIFAR and
# TIN-597 files are numbered in an unpublished order that cannot be mapped to the publisher's names: they are
# separate sources, under OpenOOD's names.
OPENOOD_PATHS: Mapping[str, tuple[str, str]] = {  # source -> pattern, the splits of its inventory
    "imagenet1k": (r"imagenet_1k/val/(?P<id>ILSVRC2012_val_\d{8})\.JPEG", "val"),
    "tiny-imagenet": (r"tin/val/images/(?P<id>val_\d+)\.JPEG", "val"),
    "dtd": (r"texture/(?P<id>(?P<folder>\w[\w-]*)/[\w-]+)\.jpg", "all"),
    "places365": (r"places365/(?P<folder>[\w-]+)/(?P<id>Places365_val_\d{8})\.jpg", "val"),
    "svhn": (r"svhn/test/(?P<number>\d{6})_(?P<folder>\d)\.jpg", "test"),
    "mnist": (r"mnist/(?P<split>train|test)/(?P<folder>\d)_(?P<number>\d+)\.jpg", "train test"),
    "openimage-o": (r"openimage_o/images/(?P<id>[0-9a-f]{16})\.jpg", "all"),
    "openood-cifar10": (r"cifar10/(?P<own>.+)", "test"),
    "openood-cifar100": (r"cifar100/(?P<own>.+)", "test"),
    "openood-tin597": (r"tin597/(?P<own>.+)", "test"),
}
# Sets whose inventory is too large to ship or unknown: the folder gives the class, or another source's
# inventory gives it for the same image.
OPENOOD_BY_NAME: Mapping[str, tuple[str, str]] = {
    "imagenet-c": (r"imagenet_c/(?P<id>[a-z_]+/[1-5]/(?P<of>ILSVRC2012_val_\d{8}))\.JPEG", "imagenet1k"),
    "ssb-hard": (r"ssb_hard/(?P<of>n\d{8})/(?P<id>(?P=of)_\d+)\.JPEG", ""),
}
OPENOOD = {
    "cifar10": (
        "val_cifar10",
        "test_cifar10",
        "test_cifar100",
        "val_tin",
        "test_tin",
        "test_mnist",
        "test_svhn",
        "test_texture",
        "test_places365",
        "train_tin597",
    ),
    "cifar100": (
        "val_cifar100",
        "test_cifar100",
        "test_cifar10",
        "val_tin",
        "test_tin",
        "test_mnist",
        "test_svhn",
        "test_texture",
        "test_places365",
        "train_tin597",
    ),
    # The lists of whole sets (ImageNet-R, -V2, iNaturalist, NINCO) are their inventories; the OOD lists
    # are the same for both benchmarks.
    "imagenet": (
        "val_imagenet",
        "test_imagenet",
        "test_imagenet_c",
        "test_textures",
        "test_ssb_hard",
        "val_openimage_o",
        "test_openimage_o",
    ),
    "imagenet200": ("val_imagenet200", "test_imagenet200", "test_imagenet200_c", "test_textures"),
}
# NINCO's subsamples that its authors inspected -> source, and the pattern of a file name: the image's dataset
# and a number, then the file's name in that dataset.
NINCO_SUBSAMPLES: Mapping[str, tuple[str, str]] = {
    "SSB_hard": ("ssb-hard", r"(?P<id>(?P<of>n\d{8})_\d+)"),
    "iNaturalist_OOD_Plants": ("inaturalist", r"(?P<id>[0-9a-f]{32})"),
    "Textures": ("dtd", r"(?P<id>(?P<of>[a-z-]+)_\d{4})"),
    "Places": ("mos-places", r"(?P<id>[a-z]_[a-z_]+_\d{8}|Places365_val_\d{8})"),
    "OpenImage_O": ("openimage-o", r"(?P<id>[0-9a-f]{16})"),
    "SSB_easy": ("imagenet21k", r"(?P<id>(?P<of>n\d{8})_\d+)"),
    "ImageNet_1k_OOD_400_ood": ("imagenet21k", r"(?P<id>(?P<of>n\d{8})_\d+)"),
    "COOD": ("imagenet21k", r"COOD_\d+_(?P<id>(?P<of>n\d{8})_\d+)"),
    "360OpenSet": ("imagenet21k", r"(?P<id>(?P<of>n\d{8})_\d+)"),
}
NINCO_ORIGIN = "j-cb/NINCO:NINCO_popular_datasets_subsamples.csv"
NINCO_LISTS = {
    "ssb_hard": "SSB_hard",
    "inaturalist": "iNaturalist_OOD_Plants",
    "textures": "Textures",
    "openimage_o_test": "OpenImage_O",
    "places": "Places",
    "ssb_easy": "SSB_easy",
    "pascl": "ImageNet_1k_OOD_400_ood",
    "cood": "COOD",
    "openset360": "360OpenSet",
}

Row = tuple[str, str, str, int]  # source, image_id, class_id, label


def openset_rows(published: Published, val_classes: Mapping[str, str]) -> Iterator[Row]:
    """Read ``split/wnid/name.JPEG,label``; ImageNet's own labels must agree with the folder."""
    for line in published.lines():
        path, label = line.split(",")
        split, wnid, file = path.split("/")
        image_id = file.removesuffix(".JPEG")
        if wnid != (val_classes[image_id] if split == "val" else image_id.split("_")[0]):
            raise ValueError(f"{published.path.name}: {path} is not of {wnid}")
        yield "imagenet1k", image_id, wnid, int(label)


def openood_rows(published: Published, classes: Mapping[str, Mapping[str, str]]) -> Iterator[Row]:
    """Read ``path label``; class_id is the inventory's, and a folder that names the class must agree."""
    for line in published.lines():
        path, label = line.split(" ")
        source, match = openood_source(path)
        parts = match.groupdict()
        if source in OPENOOD_BY_NAME:
            like = OPENOOD_BY_NAME[source][1]
            yield source, parts["id"], classes[like][parts["of"]] if like else parts["of"], int(label)
            continue
        if "own" in parts:
            image_id = openood_file(path)[2]
        else:
            image_id = parts["id"] if "id" in parts else publishers_place(source, parts)
        class_id = classes[source][image_id]
        if "folder" in parts and parts["folder"] != class_id.replace("/", "-"):
            raise ValueError(f"{published.path.name}: {path} is not of {class_id}")
        yield source, image_id, class_id, int(label)


def publishers_place(source: str, parts: Mapping[str, str]) -> str:
    """Return the position in the publisher's file, from 0; OpenOOD counts from 0 (MNIST) or 1 (SVHN)."""
    return f"{parts.get('split', 'test')}/{int(parts['number']) - (source == 'svhn')}"


def openood_source(path: str) -> tuple[str, re.Match[str]]:
    for source, (pattern, _) in {**OPENOOD_PATHS, **OPENOOD_BY_NAME}.items():
        if match := re.fullmatch(pattern, path):
            return source, match
    raise ValueError(f"{path} is of no set whose names are known")


def ninco_rows(
    published: Published, dataset: str, classes: Mapping[str, str], left_out: set[str]
) -> Iterator[Row]:
    """Read ``image_location,class`` of a dataset's subsample, without the images of another list."""
    source, pattern = NINCO_SUBSAMPLES[dataset]
    for line in published.lines()[1:]:
        match = re.fullmatch(rf".+/{dataset}/{dataset}_\d{{3}}_{pattern}\.\w+,{dataset}", line)
        if match is None:
            continue
        parts = match.groupdict()
        image_id = f"{parts['of']}/{parts['id']}" if source == "dtd" else parts["id"]
        if image_id not in left_out:
            yield source, image_id, parts["of"] if "of" in parts else classes[image_id], -1


def list_table(rows: Iterable[Row]) -> pa.Table:
    """Return the rows sorted by source and image_id, refusing an image listed twice."""
    rows = sorted(rows)
    keys = {row[:2] for row in rows}
    if len(keys) != len(rows):
        raise ValueError(f"{len(rows) - len(keys)} images are listed twice")
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=LIST_SCHEMA)


def write_lists(facts: Path, out: Path) -> None:
    """Write ``lists/<family>/<name>.parquet`` under ``out``, which holds the inventories already."""

    @cache
    def classes(source: str) -> dict[str, str]:
        class_of: dict[str, str] = {}
        for split in OPENOOD_PATHS[source][1].split() if source in OPENOOD_PATHS else ("all",):
            table = read_table(out / "inventories" / source / f"{split}.parquet", ["image_id", "class_id"])
            class_of |= zip(table["image_id"].to_pylist(), table["class_id"].to_pylist(), strict=True)
        return class_of

    for name in OPENSET:
        published = Published(facts / f"openset_imagenet/{name}.csv.gz")
        rows = openset_rows(published, classes("imagenet1k"))
        _write(published, rows, out / "lists/openset-imagenet" / f"{name}.parquet")
    by_source = {source: classes(source) for source in OPENOOD_PATHS}
    for benchmark, names in OPENOOD.items():
        for name in names:
            published = Published(facts / f"openood/benchmark_imglist/{benchmark}/{name}.txt.gz")
            rows = openood_rows(published, by_source)
            _write(published, rows, out / "lists/openood" / f"{benchmark}_{name}.parquet")
    by_source |= {name: classes(name) for name in ("inaturalist", "mos-places")}
    by_source |= {"ssb-hard": {}, "imagenet21k": {}}
    looked_at = Published(facts / "ninco/NINCO_popular_datasets_subsamples.csv.gz")
    validation = Published(facts / "openood/benchmark_imglist/imagenet/val_openimage_o.txt.gz")
    left_out = {row[1] for row in openood_rows(validation, by_source)}
    for name, dataset in NINCO_LISTS.items():
        rows = ninco_rows(looked_at, dataset, by_source[NINCO_SUBSAMPLES[dataset][0]], left_out)
        _write(looked_at, rows, out / "lists/ninco" / f"{name}.parquet", origin=NINCO_ORIGIN)


def _write(published: Published, rows: Iterable[Row], path: Path, origin: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"origin": origin or published.origin, "sha256": published.sha256}
    write_table(list_table(rows), path, metadata=metadata)
