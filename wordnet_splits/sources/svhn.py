"""Street View House Numbers, cropped digits (Netzer et al. 2011), as MATLAB files or the Hub's Parquet.

Pictures have no names, so ids are positions: ``<split>/<index>``. They hold for files with the publisher's
MD5; any other copy may be in another order and has ``order`` "unknown".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import SourceError, check_memory
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import check_file, check_link, open_untrusted
from wordnet_splits.sources.info import source_info
from wordnet_splits.sources.layouts.layout import Layout, Order
from wordnet_splits.sources.layouts.parquet_pictures import HubLayout
from wordnet_splits.sources.layouts.pictures import (
    Listing,
    PictureCopy,
    PositionalPictures,
    positional_listing,
)
from wordnet_splits.sources.layouts.walk import bases
from wordnet_splits.sources.source import Source, register_source

SHAPE = (32, 32, 3)
SPLITS = ("train", "test", "extra")
CLASSES = tuple("0123456789")
LARGEST_FILE = 2 << 30  # bytes; the largest published file has 1.3 GB
DENSEST = 20  # largest compression ratio of photographs; the published files have 1.3
SMALL = 64 << 20  # bytes of pixels up to which that does not matter
LARGEST_SPLIT = 1_000_000  # pictures; the largest published split has 531,131
HUB = HubLayout(("image",), "label", ("cropped_digits", "svhn"), SPLITS, SHAPE, in_config=True)


def published_checksums() -> Mapping[str, str]:
    """Return the MD5 of each of the publisher's files."""
    return {item.file: item.md5 for item in source_info("svhn").files if item.md5}


class MatFiles(PictureCopy):
    """The publisher's MATLAB files: ``X`` (32, 32, 3, n) uint8 and ``y`` (n, 1), where 10 stands for 0."""

    def __init__(self, root: Path) -> None:
        self._paths = mat_files(root)
        self._load = cache(load_mat)

    def listing(self, split: str) -> Listing:
        """Return the classes of the pictures."""
        labels = self._load(self._paths[split])[1] if split in self._paths else []
        classes = [CLASSES[label % 10] if 0 <= label <= 10 else None for label in labels]
        return positional_listing(split, classes, "label of no digit")

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture."""
        pictures, _ = self._load(self._paths[split])
        return np.ascontiguousarray(pictures[..., index])


def mat_files(root: Path) -> dict[str, Path]:
    """Return the file of each split, from the first folder that has one."""
    for base in bases(root, "svhn", "SVHN"):
        files = {split: path for split in SPLITS if (path := base / f"{split}_32x32.mat").is_file()}
        if files:
            for path in files.values():
                if path.is_symlink():
                    check_link(path, root)
            return files
    return {}


def load_mat(path: Path) -> tuple[Pixels, list[int]]:
    """Return pictures (32, 32, 3, n) and labels (0 to 10 where they are digits) of one file.

    Raises SourceError if it is truncated or not a MATLAB file, or its arrays have other shapes; sizes are
    checked before anything is unpacked.
    """
    from scipy.io import loadmat, whosmat  # scipy takes longer to import than most sources to open

    size = check_file(path, largest=LARGEST_FILE, error=SourceError)
    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        count = _count(shapes, path)
        if count * math.prod(SHAPE) > max(DENSEST * size, SMALL):
            raise SourceError(f"{count:,} pictures in {size:,} bytes, more than fit", where=str(path))
        arrays = loadmat(path, variable_names=["X", "y"])
    except SourceError:
        raise
    except Exception as error:  # scipy raises any exception for a broken file
        check_memory(error, str(path))
        raise SourceError(
            f"the MATLAB file is truncated or corrupt ({_line(error)})",
            where=str(path),
            hint="fetch this file again",
        ) from error
    pictures, labels = arrays["X"], arrays["y"]
    if pictures.dtype != np.uint8 or pictures.shape != (*SHAPE, count) or labels.dtype.kind not in "uif":
        raise SourceError("X is not an array of bytes, or y not one of numbers", where=str(path))
    with np.errstate(invalid="ignore"):  # NaN is refused below
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
    md5 = published_checksums()
    same = all(_md5(path) == md5.get(path.name) for path in mat_files(root).values())
    return "published" if same else "unknown"


def _md5(path: Path) -> str:
    with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _line(error: Exception) -> str:
    return printable(str(error).split("\n")[0] or type(error).__name__)


@register_source
class Svhn(Source):
    """SVHN format 2: 73,257 train, 26,032 test and 531,131 extra pictures of 32 x 32, classes 0 to 9."""

    name: ClassVar[str] = "svhn"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    lossless: ClassVar[bool] = True
    looks_for: ClassVar[str] = (
        "train_32x32.mat, test_32x32.mat or extra_32x32.mat, or cropped_digits/*.parquet"
    )

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield MATLAB files and Parquet files."""
        if mat_files(root):
            copy, order = partial(MatFiles, root), partial(_mat_order, root)
            yield PositionalPictures("mat", cls.name, SPLITS, root, copy, find_order=order)
        yield from HUB.positional(cls.name, root, CLASSES)
