"""MNIST's idx files: two a split, pictures and labels, plain or compressed by gzip.

A file is a magic number (two zeros, the type, the number of dimensions), the dimensions as big-endian 32-bit
integers, and the values.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.digests import Pixels, digest_pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import check_link, open_untrusted, read_chunks
from wordnet_splits.catalog import load_catalog
from wordnet_splits.catalog.inventory import load_inventory
from wordnet_splits.sources.base import Order, as_rgb
from wordnet_splits.sources.info import source_info
from wordnet_splits.sources.layouts.positional import PositionalLayout
from wordnet_splits.sources.layouts.walk import bases

SIDE = 28
LARGEST_SPLIT = 100_000  # pictures; the largest published split has 60,000
LARGEST_FILE = 16 + LARGEST_SPLIT * SIDE * SIDE  # bytes, as they are and unpacked
FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
    }
)
"""Pictures and labels of each split, as the publisher calls them."""
SAMPLE = 50  # pictures looked at to tell datasets with like files apart
_BYTES = 0x08  # the type of the values: uint8
_FETCH = "fetch this file again"


@dataclass(frozen=True)
class IdxLayout:
    """The idx files of one dataset.

    ``source`` is its name, ``folders`` those below a root that may hold the files, ``like`` other datasets
    whose files have the same names.
    """

    source: str
    folders: tuple[str, ...]
    like: tuple[str, ...]

    def positions(self) -> PositionalLayout:
        """Return it as a layout of a dataset without names."""
        return PositionalLayout(
            found=lambda root: bool(self.find(root)) and self._held(root) not in self.like,
            order=self.order,
            open=lambda root: IdxFiles(self.find(root), class_ids(self.source)),
            certain=lambda root: self._held(root) == self.source,
        )

    def find(self, root: Path) -> dict[str, tuple[Path, Path]]:
        """Return the two files of each split, from the first folder that has some."""
        for base in bases(root, *self.folders):
            found = {}
            for split, names in FILES.items():
                pictures, labels = (_file(base, name, root) for name in names)
                if pictures is not None and labels is not None:
                    found[split] = pictures, labels
            if found:
                return found
        return {}

    def order(self, root: Path) -> Order:
        """Return whether all files unpack to what the publisher's unpack to."""
        known = {item.file.removesuffix(".gz"): item.unpacked_md5 for item in source_info(self.source).files}
        held = ((split, paths) for split, paths in self.find(root).items())
        same = all(
            _unpacked_md5(path) == known[name]
            for split, paths in held
            for path, name in zip(paths, FILES[split], strict=True)
        )
        return "published" if same else "unknown"

    def _held(self, root: Path) -> str | None:
        """Return the dataset of ours or like ours that these files are, None where nothing tells.

        It is told by how often there is each label, else by the digests of its first pictures.
        """
        for split, (pictures, labels) in self.find(root).items():
            try:
                counts = Counter(read_idx(labels, 1).tolist())
                if name := self._counted_as(counts, split):
                    return name
                if name := self._pictured_as(read_idx(pictures, 3)[:SAMPLE], split):
                    return name
            except SourceError:
                continue  # reading it says what is wrong
        return None

    def _counted_as(self, counts: Counter[int], split: str) -> str | None:
        names = (self.source, *self.like)
        return next((n for n in names if counts == {c.index: c.counts[split] for c in load_catalog(n)}), None)

    def _pictured_as(self, pictures: Pixels, split: str) -> str | None:
        found = [digest_pixels(as_rgb(picture)) for picture in pictures]
        names = (self.source, *self.like)
        return next((n for n in names if 2 * len(_digests(n, split).intersection(found)) > len(found)), None)


class IdxFiles:
    """The idx files of one root."""

    def __init__(self, paths: Mapping[str, tuple[Path, Path]], classes: Sequence[str]) -> None:
        self._paths = paths
        self._names = classes
        self._load = cache(load_pair)

    def classes(self, split: str) -> list[str | None]:
        """Return the class of each picture."""
        if split not in self._paths:
            return []
        _, labels = self._load(*self._paths[split])
        return [self._names[label] if label < len(self._names) else None for label in labels.tolist()]

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture, uint8 (28, 28)."""
        pictures, _ = self._load(*self._paths[split])
        return np.ascontiguousarray(pictures[index])


@cache
def _digests(source: str, split: str) -> frozenset[bytes]:
    """Return the digests that are shipped of a split."""
    table = load_inventory(source, split)
    return frozenset() if table is None else frozenset(table["digest"].to_pylist())


def class_ids(source: str) -> tuple[str, ...]:
    """Return the classes of a source in label order."""
    return tuple(item.class_id for item in load_catalog(source))


def load_pair(pictures: Path, labels: Path) -> tuple[Pixels, npt.NDArray[np.uint8]]:
    """Return the pictures (n, 28, 28) and labels (n,) of one split.

    Raises SourceError where a file is damaged, holds something else, or they are of different lengths.
    """
    images, numbers = read_idx(pictures, 3), read_idx(labels, 1)
    if images.shape[1:] != (SIDE, SIDE):
        height, width = images.shape[1:]
        raise SourceError(f"its pictures have {height} x {width} pixels, not 28 x 28", where=str(pictures))
    if len(images) != len(numbers):
        what = f"{len(images):,} pictures and {len(numbers):,} labels"
        raise SourceError(what, where=str(pictures), hint="these two files do not belong together")
    return images, numbers


def read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of an idx file of so many dimensions.

    Raises
    ------
    SourceError : it is no such file, truncated, corrupt, longer than it says, or of more than
        `LARGEST_SPLIT` entries; the sizes are looked at before anything is unpacked.
    """
    with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as file:
        stream = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        try:
            header = stream.read(4 + 4 * dimensions)
            shape = _shape(header, dimensions, path)
            size = math.prod(shape)
            data = b"".join(read_chunks(stream, size + 1))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            what = f"the file is truncated or corrupt ({printable(error)})"
            raise SourceError(what, where=str(path), hint=_FETCH) from error
    if len(data) != size:
        held = "more" if len(data) > size else f"{len(data):,}"
        raise SourceError(f"{size:,} values announced, {held} there", where=str(path), hint=_FETCH)
    return np.frombuffer(data, np.uint8).reshape(shape)


def _shape(header: bytes, dimensions: int, path: Path) -> tuple[int, ...]:
    if len(header) < 4 + 4 * dimensions or header[:4] != bytes((0, 0, _BYTES, dimensions)):
        what = f"not an idx file of bytes in {dimensions} dimension{'s' * (dimensions > 1)}"
        raise SourceError(what, where=str(path), hint=_FETCH)
    count, *sides = (int(n) for n in np.frombuffer(header, ">u4", dimensions, 4))
    if count > LARGEST_SPLIT or math.prod(sides) > SIDE * SIDE:
        what = f"it announces {count:,} entries of {math.prod(sides):,} bytes, more than is read"
        raise SourceError(what, where=str(path))
    return count, *sides


def _file(base: Path, name: str, root: Path) -> Path | None:
    """Return the plain or compressed file of that name; some copies have a dot for the first hyphen."""
    for spelling in (name, name.replace("-idx", ".idx")):
        for path in (base / spelling, base / f"{spelling}.gz"):
            if path.is_file():
                if path.is_symlink():
                    check_link(path, root)
                return path
    return None


def _unpacked_md5(path: Path) -> str | None:
    """Return the MD5 of what a file unpacks to, None where it is damaged: reading it says so."""
    total = hashlib.md5(usedforsecurity=False)
    with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as file:
        stream = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        try:
            for piece in read_chunks(stream, LARGEST_FILE + 1):
                total.update(piece)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return None
    return total.hexdigest()
