"""A small made tree of every layout that docs/data.md says is read, by source and by the page's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.io import savemat

from tests.wordnet_splits.datasets.sources.layout_table import LAYOUTS, OPENOOD, label
from tests.wordnet_splits.datasets.sources.test_imagenet21k import FALL_ONLY, IN_BOTH, images
from tests.wordnet_splits.datasets.sources.test_svhn import write_numbers
from tests.wordnet_splits.datasets.sources.trees import (
    ANGELIC,
    OTHER,
    Write,
    as_folder,
    as_zip,
    in_class_folders,
    png,
    some,
    train_tar,
    webp,
    write_idx,
    write_images,
    write_lmdb,
    write_pickle,
    write_shards,
)
from wordnet_splits.datasets.catalog import load_catalog

REPOSITORY = Path(__file__).resolve().parents[4]
PAGE = REPOSITORY / "docs" / "data.md"
LSUN = {f"{number:040x}": webp(number) for number in range(6)}
COUNT = 6


def as_in(name: str) -> Write:
    """The tree of the table of layouts that has this label."""
    return next(layout.write for layout in LAYOUTS if label(layout) == name)


def _pixels(side: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (COUNT, side, side, 3), dtype=np.uint8)


def _batches(source: str, names: Mapping[str, str], label_key: str) -> Write:
    """Pickles of the published names of each split, so that pixels do not matter."""
    planes = _pixels(32).transpose(0, 3, 1, 2).reshape(COUNT, 3072)

    def write(root: Path) -> None:
        for split, name in names.items():
            rows = sorted(some(source, split))[:COUNT]
            labels = [load_catalog(source)[class_id].index for _, class_id, _ in rows]
            files = [f"{image_id.rsplit('/', 1)[-1]}.png" for image_id, _, _ in rows]
            write_pickle(root / name, {"data": planes, label_key: labels, "filenames": files})

    return write


def _pngs(source: str) -> Write:
    def write(root: Path) -> None:
        for number, (image_id, _, _) in enumerate(sorted(some(source, "test"))):
            path = root / f"{image_id}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(_pixels(32, number)[0]))
        for item in load_catalog(source):  # by all its classes the dataset is known
            (root / "test" / item.class_id).mkdir(exist_ok=True)

    return write


def _hub(folder: str, image: str, number: str, side: int = 32) -> Write:
    def write(root: Path) -> None:
        pictures = [{"bytes": png(pixels), "path": None} for pixels in _pixels(side)]
        table = pa.table({image: pictures, number: list(range(COUNT))})
        write_shards(root / folder, "test", table, shards=2)

    return write


def _mat(root: Path) -> None:
    arrays = {"X": np.moveaxis(_pixels(32), 0, -1), "y": np.arange(1, COUNT + 1, dtype=np.uint8)[:, None]}
    savemat(root / "test_32x32.mat", arrays, do_compression=True)


def _idx(folder: str = "", ending: str = ".gz") -> Write:
    return lambda root: write_idx(root / folder, ending=ending)


def _characters(write: Callable[[Path, str, list[str]], None]) -> Write:
    def made(root: Path) -> None:
        write(root, "images_background", OTHER)
        write(root, "images_evaluation", ANGELIC)

    return made


def _scenes(root: Path) -> None:
    write_lmdb(root / "bedroom_val_lmdb", LSUN)


def _exported(root: Path) -> None:
    for key, data in LSUN.items():
        path = root / "val" / "bedroom" / f"{key}.webp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _synsets(top: str, *wnids: str) -> Write:
    return lambda root: write_images(root, in_class_folders(images(*wnids), top))


def _whole(release: str) -> Write:
    data = train_tar(images(*IN_BOTH, split=release))

    def write(root: Path) -> None:
        root.mkdir(exist_ok=True)
        (root / f"{release}_whole.tar").write_bytes(data)

    return write


def _kin(name: str, publisher: str = "publisher") -> dict[str, Write]:
    """A source of which OpenOOD kept the publisher's names."""
    return {
        "publisher's folders": as_in(f"{name}: {publisher}"),
        "OpenOOD's": as_in(f"{name}: OpenOOD"),
    }


EVERY: Mapping[str, Mapping[str, Write]] = {
    "imagenet1k": {
        "folders": as_in("imagenet1k: torchvision"),
        "Kaggle's": as_in("imagenet1k: Kaggle"),
        "Hub Parquet": as_in("imagenet1k: Hub"),
        "publisher's tars in place": as_in("imagenet1k: publisher's tars"),
        "flat val": as_in("imagenet1k: flat val"),
        "OpenOOD's": as_in("imagenet1k: OpenOOD"),
    },
    "imagenet21k": {
        "synset folders": _synsets("", *IN_BOTH, FALL_ONLY),
        "publisher's tar in place": _whole("winter21"),
    },
    "ssb-hard": {
        "synset folders of ImageNet-21K": _synsets("fall11_whole", *IN_BOTH),
        "publisher's tar in place": _whole("fall11"),
        "OpenOOD's": _synsets("images_largescale/ssb_hard", *IN_BOTH),
    },
    "imagenet-r": _kin("imagenet-r"),
    "imagenet-v2": _kin("imagenet-v2"),
    "imagenet-o": {
        "publisher's folders": as_in("imagenet-o: publisher"),
        "OpenOOD's": lambda root: as_in("imagenet-o: is that folder")(root / "images_largescale/imagenet_o"),
    },
    "imagenet-a": {"publisher's folders": as_in("imagenet-a: publisher")},
    "imagenet-c": _kin("imagenet-c"),
    "imagenet-es": _kin("imagenet-es"),
    "ninco": _kin("ninco"),
    "ninco-species": {"publisher's folders": as_in("ninco-species: publisher")},
    "openood-species": {"OpenOOD's": as_in("openood-species: OpenOOD")},
    "inaturalist": _kin("inaturalist"),
    "mos-places": {"publisher's folders": as_in("mos-places: publisher")},
    "mos-sun": {"publisher's folders": as_in("mos-sun: publisher")},
    "openimage-o": _kin("openimage-o", "test folder"),
    "tiny-imagenet": {
        "publisher's folders": as_in("tiny-imagenet: publisher"),
        "OpenOOD's": lambda root: as_in("tiny-imagenet: publisher")(root / "images_classic/tin"),
    },
    "cifar10": {
        "publisher's pickles": _batches("cifar10", {"train": "data_batch_1", "test": "test_batch"}, "labels"),
        "PNG folders": _pngs("cifar10"),
        "Hub Parquet": _hub("plain_text", "img", "label"),
    },
    "cifar100": {
        "publisher's pickles": _batches("cifar100", {"train": "train", "test": "test"}, "fine_labels"),
        "PNG folders": _pngs("cifar100"),
        "Hub Parquet": _hub("cifar100", "img", "fine_label"),
    },
    "svhn": {"`.mat` of cropped digits": _mat, "Hub Parquet": _hub("cropped_digits", "image", "label")},
    "svhn-full": {"PNG folders of whole numbers": lambda root: write_numbers(root, "test", range(1, 4))},
    "mnist": {
        "idx plain or `.gz`": _idx(),
        "`MNIST/raw`": _idx("MNIST/raw", ""),
        "Hub Parquet": _hub("mnist", "image", "label", 28),
    },
    "fashion-mnist": {
        "idx plain or `.gz`": _idx(),
        "`FashionMNIST/raw`": _idx("FashionMNIST/raw", ""),
        "Hub Parquet": _hub("fashion_mnist", "image", "label", 28),
    },
    "omniglot": {"zips in place": _characters(as_zip), "folders": _characters(as_folder)},
    "dtd": _kin("dtd"),
    "food101": {"publisher's folders": as_in("food101: publisher")},
    "caltech256": {"publisher's folders": as_in("caltech256: publisher")},
    "lsun": {"LMDB": _scenes, "folders": _exported},
    "places365": _kin("places365", "train-standard in data_256"),
    "sun397": {
        "publisher's folders": as_in("sun397: class folders in SUN397/"),
        "publisher's tar in place": as_in("sun397: the publisher's tar"),
    },
    **{name: {"OpenOOD's renumbered copies": as_in(f"{name}: in images_classic/")} for name in OPENOOD},
}
"""Source -> what the page calls the layout -> what writes it below a root."""

TREES = [(source, says) for source, layouts in EVERY.items() for says in layouts]
ARCHIVES = [
    tree for tree in TREES if re.search(r"\btars?\b|zip|Parquet|pickles|idx|/raw|\.mat|LMDB", tree[1])
]
"""Those that hold archives, tables or databases in place of image files."""


def each(trees: list[tuple[str, str]]) -> pytest.MarkDecorator:
    """Parametrize a test by trees."""
    return pytest.mark.parametrize(
        ("name", "says"), [pytest.param(*tree, id=": ".join(tree)) for tree in trees]
    )


def page_layouts() -> Iterator[tuple[str, str]]:
    """Every (source, layout) of the page's table of sources."""
    lines = iter(PAGE.read_text("utf-8").splitlines())
    next(line for line in lines if line.startswith("| source | layouts read |"))
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        names, layouts, _ = (cell.strip() for cell in line.strip("|").split("|"))
        for name in names.replace("(fall 2011, winter 2021)", "").split(","):
            source = name.strip(" `")
            for says in layouts.replace(";", ",").split(","):
                yield ("openood" if source.startswith("-") else "") + source, says.strip()


def written(source: str, says: str, root: Path) -> Path:
    """Write a tree; return its root."""
    root.mkdir(exist_ok=True)
    EVERY[source][says](root)
    return root
