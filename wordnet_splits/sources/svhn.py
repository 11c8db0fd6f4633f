"""Street View House Numbers, cropped digits (Netzer et al. 2011), as MATLAB files or the Hub's Parquet.

Nothing names a picture but its position, so ids are ``<split>/<index>``. They hold for files that have the
publisher's MD5; any other copy may be in another order and has ``order`` "unknown".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from wordnet_splits.digests import Pixels
from wordnet_splits.errors import SourceError
from wordnet_splits.sources.base import OneCopyPerProcess, Order, Raw, Row, parse_position, register
from wordnet_splits.sources.info import source_info
from wordnet_splits.sources.layouts.parquet_nameless import HubLayout, NamelessParquet, RowPlace
from wordnet_splits.sources.layouts.walk import bases
from wordnet_splits.untrusted import check_link, check_regular, opened, printable

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


class Positional(Protocol):
    """A copy whose pictures are named by their position in a split."""

    def classes(self, split: str) -> list[str | None]:
        """Return the class of each picture, None where its label is none; empty for a split not there."""

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture, uint8 (32, 32, 3); IndexError past the end."""


@register
class Svhn(OneCopyPerProcess):
    """SVHN format 2: 73,257 train, 26,032 test and 531,131 extra pictures of 32 x 32, classes 0 to 9."""

    name: ClassVar[str] = "svhn"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    lossless: ClassVar[bool] = True
    looks_for: ClassVar[str] = (
        "train_32x32.mat, test_32x32.mat or extra_32x32.mat, or cropped_digits/*.parquet"
    )

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return ``mat`` or ``parquet``, or None."""
        if root is None:
            return None
        return next((name for name, layout in LAYOUTS.items() if layout.found(root)), None)

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> Svhn:
        """Open the copy at ``root``, computing the checksums its order hangs on (1.3 GB take 3 s)."""
        if params:
            raise SourceError(f"source {cls.name} takes no parameter {min(params)!r}")
        assert root is not None, "rooted"
        return cls(root, layout, order=LAYOUTS[layout].order(root))

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) by position."""
        for split in splits:
            for index, class_id in enumerate(self._copy().classes(split)):
                if class_id is None:
                    self.note_unexpected(f"{split}: label of no digit")
                else:
                    yield f"{split}/{index}", class_id, split

    def read_one(self, image_id: str) -> Raw:
        """Return the pixels, uint8 (32, 32, 3)."""
        split, _, text = image_id.partition("/")
        index = parse_position(text)
        if split not in self.splits or index >= len(self._copy().classes(split)):
            raise KeyError(image_id)
        try:
            return self._copy().pixels(split, index)
        except SourceError as error:
            raise self.missing(image_id, f"cannot be read: {error.what}") from error

    def _copy(self) -> Positional:
        assert self.root is not None, "rooted"
        root = self.root
        return self.cached("copy", lambda: LAYOUTS[self.layout].open(root))


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


class HubFiles:
    """The Hub's Parquet files, whose order is not the publisher's promise."""

    def __init__(self, root: Path) -> None:
        self._parquet = NamelessParquet(HUB, root, CLASSES)
        self._rows: Callable[[str], list[tuple[RowPlace, str | None]]]
        self._rows = cache(lambda split: list(self._parquet.labels(split)))

    def classes(self, split: str) -> list[str | None]:
        """Return the class of each picture."""
        return [class_id for _, class_id in self._rows(split)]

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture."""
        return self._parquet.pixels(self._rows(split)[index][0])


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

    Raises SourceError where it is truncated, no MATLAB file, or its arrays are not of these shapes; sizes are
    looked at before anything is unpacked.
    """
    from scipy.io import loadmat, whosmat  # scipy takes longer to import than most sources to open

    size = check_regular(path, largest=LARGEST_FILE, error=SourceError)
    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        count = _count(shapes, path)
        if count * math.prod(SHAPE) > max(DENSEST * size, SMALL):
            raise SourceError(f"{count:,} pictures in {size:,} bytes, which none can be", where=str(path))
        arrays = loadmat(path, variable_names=["X", "y"])
    except SourceError:
        raise
    except Exception as error:  # scipy raises whatever a broken file leads to
        raise SourceError(
            f"the MATLAB file is truncated or corrupt ({_line(error)})",
            where=str(path),
            hint="fetch this file again",
        ) from error
    pictures, labels = arrays["X"], arrays["y"]
    if pictures.dtype != np.uint8 or pictures.shape != (*SHAPE, count) or labels.dtype.kind not in "uif":
        raise SourceError("X is not an array of bytes, or y not one of numbers", where=str(path))
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
    with opened(path, largest=LARGEST_FILE, error=SourceError) as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _line(error: Exception) -> str:
    return printable(str(error).split("\n")[0] or type(error).__name__)


@dataclass(frozen=True)
class _SvhnLayout:
    found: Callable[[Path], bool]
    order: Callable[[Path], Order]
    open: Callable[[Path], Positional]


LAYOUTS: Mapping[str, _SvhnLayout] = MappingProxyType(
    {
        "mat": _SvhnLayout(lambda root: bool(mat_files(root)), _mat_order, MatFiles),
        "parquet": _SvhnLayout(lambda root: bool(HUB.find(root, CLASSES)), lambda root: "unknown", HubFiles),
    }
)
"""The layouts of SVHN, in the order they are looked for."""
