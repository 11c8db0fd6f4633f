"""Street View House Numbers, cropped digits (Netzer et al. 2011), as MATLAB files or the Hub's Parquet.

Nothing names a picture but its position, so ids are ``<split>/<index>``. They hold for files that have the
publisher's MD5; any other copy may be in another order and has ``order`` "unknown".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import SourceError, check_memory
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import check_file, check_link, open_untrusted
from wordnet_splits.sources.base import Order, register
from wordnet_splits.sources.info import source_info
from wordnet_splits.sources.layouts.parquet_nameless import HubLayout
from wordnet_splits.sources.layouts.parquet_positional import hub_positions
from wordnet_splits.sources.layouts.positional import PositionalLayout, PositionalSource
from wordnet_splits.sources.layouts.walk import bases

SHAPE = (32, 32, 3)
SPLITS = ("train", "test", "extra")
CLASSES = tuple("0123456789")
LARGEST_FILE = 2 << 30  # bytes; the largest published file has 1.3 GB
DENSEST = 20  # times that photographs can be compressed; the published files have 1.3
SMALL = 64 << 20  # bytes of pixels up to which that does not matter
LARGEST_SPLIT = 1_000_000  # pictures; the largest published split has 531,131
HUB = HubLayout(("image",), "label", ("cropped_digits", "svhn"), SPLITS, SHAPE, named=True)


def published_checksums() -> Mapping[str, str]:
    """Return the MD5 of each of the publisher's files."""
    return {item.file: item.md5 for item in source_info("svhn").files if item.md5}


class MatFiles:
    """The publisher's MATLAB files: ``X`` (32, 32, 3, n) uint8 and ``y`` (n, 1), where 10 stands for 0."""

    def __init__(self, root: Path) -> None:
        self._paths = mat_files(root)
        self._load = cache(load_mat)

    def classes(self, split: str) -> list[str | None]:
        """Return the class of each picture."""
        if split not in self._paths:
            return []
        _, labels = self._load(self._paths[split])
        return [CLASSES[label % 10] if 0 <= label <= 10 else None for label in labels]

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture."""
        pictures, _ = self._load(self._paths[split])
        return np.ascontiguousarray(pictures[..., index])


def mat_files(root: Path) -> dict[str, Path]:
    """Return the file of each split, from the first folder that has one."""
    for base in bases(root, "svhn", "SVHN"):
        found = {split: path for split in SPLITS if (path := base / f"{split}_32x32.mat").is_file()}
        if found:
            for path in found.values():
                if path.is_symlink():
                    check_link(path, root)
            return found
    return {}


def load_mat(path: Path) -> tuple[Pixels, list[int]]:
    """Return pictures (32, 32, 3, n) and labels (0 to 10 where they are digits) of one file.

    Raises SourceError where it is truncated or not a MATLAB file, or its arrays have other shapes; sizes are
    looked at before anything is unpacked.
    """
    from scipy.io import loadmat, whosmat  # scipy takes longer to import than most sources to open

    size = check_file(path, largest=LARGEST_FILE, error=SourceError)
    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        count = _count(shapes, path)
        if count * math.prod(SHAPE) > max(DENSEST * size, SMALL):
            raise SourceError(f"{count:,} pictures in {size:,} bytes, which none can be", where=str(path))
        arrays = loadmat(path, variable_names=["X", "y"])
    except SourceError:
        raise
    except Exception as error:  # scipy raises whatever a broken file leads to
        check_memory(error, str(path))
        raise SourceError(
            f"the MATLAB file is truncated or corrupt ({_line(error)})",
            where=str(path),
            hint="fetch this file again",
        ) from error
    pictures, labels = arrays["X"], arrays["y"]
    if pictures.dtype != np.uint8 or pictures.shape != (*SHAPE, count) or labels.dtype.kind not in "uif":
        raise SourceError("X is not an array of bytes, or y not one of numbers", where=str(path))
    with np.errstate(invalid="ignore"):  # what is no number is no whole one
        whole: npt.NDArray[np.int64] = labels.ravel().astype(np.int64)
    if not np.array_equal(whole, labels.ravel()):
        raise SourceError("a label is not a whole number", where=str(path))
    return pictures, whole.tolist()


def _count(shapes: Mapping[str, tuple[int, ...]], path: Path) -> int:
    pictures, labels = shapes.get("X", ()), shapes.get("y", ())
    count = pictures[-1] if len(pictures) == 4 else 0
    if pictures[:3] != SHAPE or sorted(labels) != sorted((count, 1)) or not 0 < count <= LARGEST_SPLIT:
        raise SourceError(
            f"X has the shape {pictures} and y {labels}, not (32, 32, 3, n) and (n, 1)",
            where=str(path),
            hint="these are not SVHN's cropped digits (format 2)",
        )
    return count


def _mat_order(root: Path) -> Order:
    known = published_checksums()
    same = all(_md5(path) == known.get(path.name) for path in mat_files(root).values())
    return "published" if same else "unknown"


def _md5(path: Path) -> str:
    with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _line(error: Exception) -> str:
    return printable(str(error).split("\n")[0] or type(error).__name__)


@register
class Svhn(PositionalSource):
    """SVHN format 2: 73,257 train, 26,032 test and 531,131 extra pictures of 32 x 32, classes 0 to 9."""

    name: ClassVar[str] = "svhn"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    looks_for: ClassVar[str] = (
        "train_32x32.mat, test_32x32.mat or extra_32x32.mat, or cropped_digits/*.parquet"
    )
    odd_label: ClassVar[str] = "label of no digit"
    layouts: ClassVar[Mapping[str, PositionalLayout]] = MappingProxyType(
        {
            "mat": PositionalLayout(lambda root: bool(mat_files(root)), _mat_order, MatFiles),
            "parquet": hub_positions(HUB, CLASSES),
        }
    )
