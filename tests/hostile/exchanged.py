"""The formats of other projects that are imported: lists, tables, shards, and an archive of folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from tests.hostile.kind import Kind
from tests.hostile.running import finish

GROUPS = ("digits-0-5", "digits-6-9", "gaussian", "uniform")
SOURCES = [f"--source={group}={group.partition('-')[0]}" for group in GROUPS]
SAID = {"openood": SOURCES, "openset-imagenet": [*SOURCES, "--role=digits-0-5=id"]}


def _exported(name: str) -> Callable[[Path], None]:
    return lambda folder: finish(
        folder, "wordnet-splits", "export", "digits", "--format", name, "--out", "lists"
    )


def _archive(folder: Path) -> None:
    """The folders of Kim et al. with pictures of our own, which no digest knows: their names are read."""
    rng = np.random.default_rng(0)
    for inside in ("train/cifar40/apple", "valid/cifar40/labels/baby", "test/cifar60/no-labels/0"):
        (folder / "cifar-bench" / inside).mkdir(parents=True)
        for number in range(2):
            pixels = rng.integers(0, 256, (32, 32, 3), np.uint8)
            Image.fromarray(pixels).save(folder / "cifar-bench" / inside / f"{number}.png")


def _list(name: str, format_name: str, files: str) -> Kind:
    command = ("wordnet-splits", "import", format_name, "lists", "--out", "out", *SAID.get(format_name, ()))
    return Kind(name, _exported(format_name), command, [files])


_ARCHIVE = ("wordnet-splits", "import", "kim-archive", "cifar-bench", "--allow-missing", "--out", "out")
EXCHANGED = (
    _list("OpenOOD lists", "openood", "lists/*.txt"),
    _list("openset-imagenet CSV", "openset-imagenet", "lists/*.csv"),
    _list("plain CSV", "csv", "lists/images.csv"),
    _list("WebDataset shards", "webdataset", "lists/**/*.tar"),
    Kind("archive of Kim et al.", _archive, _ARCHIVE, ["cifar-bench/**/*.png"], ends=3),
)
