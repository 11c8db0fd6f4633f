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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
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
from wordnet_splits.sources.info import source_info
from wordnet_splits.sources.layouts.layout import Order
from wordnet_splits.sources.layouts.pictures import (
    Listing,
    PictureCopy,
    PositionalPictures,
    positional_listing,
)
from wordnet_splits.sources.layouts.walk import bases
from wordnet_splits.sources.pixels import as_rgb

SIDE = 28
LARGEST_SPLIT = 100_000  # pictures; the largest published split has 60,000
LARGEST_FILE = 16 + LARGEST_SPLIT * SIDE * SIDE  # bytes, packed or unpacked
FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
    }
)
"""The publisher's names of the files of pictures and labels of each split."""
SAMPLE = 50  # number of pictures compared to tell datasets with similar files apart
_BYTES = 0x08  # the type of the values: uint8
_FETCH = "fetch this file again"


@dataclass(frozen=True)
class IdxLayout:
    """The idx files of one dataset.

    ``source`` is its name, ``folders`` are the folders below a root that may hold the files, ``similar`` are
    other datasets whose files have the same names.
    """

    source: str
    folders: tuple[str, ...]
    similar: tuple[str, ...]

    def layouts(self, root: Path) -> Iterator[PositionalPictures]:
        """Yield the files as a layout, unless they are those of a similar dataset."""
        if self.find(root) and self._recognise(root) not in self.similar:
            yield PositionalPictures(
                "idx",
                self.source,
                tuple(FILES),
                root,
                partial(IdxFiles, self, root),
                certain=partial(self.is_at, root),
                find_order=partial(self.order, root),
            )

    def is_at(self, root: Path) -> bool:
        """Return whether the files are certainly those of this dataset."""
        return self._recognise(root) == self.source

    def find(self, root: Path) -> dict[str, tuple[Path, Path]]:
        """Return the two files of each split, from the first folder that has some."""
        for base in bases(root, *self.folders):
            files = {}
            for split, names in FILES.items():
                pictures, labels = (_file(base, name, root) for name in names)
                if pictures is not None and labels is not None:
                    files[split] = pictures, labels
            if files:
                return files
        return {}

    def order(self, root: Path) -> Order:
        """Return whether all files, unpacked, have the publisher's checksums."""
        md5 = {item.file.removesuffix(".gz"): item.unpacked_md5 for item in source_info(self.source).files}
        same = all(
            _unpacked_md5(path) == md5[name]
            for split, paths in self.find(root).items()
            for path, name in zip(paths, FILES[split], strict=True)
        )
        return "published" if same else "unknown"

    def _recognise(self, root: Path) -> str | None:
        """Return which of this and the similar datasets has these files, None if that is uncertain.

        They differ in the number of pictures of each label, else in the digests of their first pictures.
        """
        for split, (pictures, labels) in self.find(root).items():
            try:
                counts = Counter(read_idx(labels, 1).tolist())
                if name := self._counted_as(counts, split):
                    return name
                if name := self._pictured_as(read_idx(pictures, 3)[:SAMPLE], split):
                    return name
            except SourceError:
                continue  # reading it raises the error
        return None

    def _counted_as(self, counts: Counter[int], split: str) -> str | None:
        names = (self.source, *self.similar)
        return next((n for n in names if counts == {c.index: c.counts[split] for c in load_catalog(n)}), None)

    def _pictured_as(self, pictures: Pixels, split: str) -> str | None:
        digests = [digest_pixels(as_rgb(picture)) for picture in pictures]
        for name in (self.source, *self.similar):
            if 2 * len(_digests(name, split).intersection(digests)) > len(digests):
                return name
        return None


class IdxFiles(PictureCopy):
    """The idx files of one root."""

    def __init__(self, layout: IdxLayout, root: Path) -> None:
        self._paths = layout.find(root)
        self._class_ids = class_ids(layout.source)
        self._load = cache(load_pair)

    def listing(self, split: str) -> Listing:
        """Return the classes of the pictures."""
        if split not in self._paths:
            return positional_listing(split, [])
        _, labels = self._load(*self._paths[split])
        ids = self._class_ids
        return positional_listing(split, [ids[n] if n < len(ids) else None for n in labels.tolist()])

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture, uint8 (28, 28)."""
        pictures, _ = self._load(*self._paths[split])
        return np.ascontiguousarray(pictures[index])


@cache
def _digests(source: str, split: str) -> frozenset[bytes]:
    """Return the shipped digests of a split."""
    table = load_inventory(source, split)
    return frozenset() if table is None else frozenset(table["digest"].to_pylist())


def class_ids(source: str) -> tuple[str, ...]:
    """Return the classes of a source in label order."""
    return tuple(item.class_id for item in load_catalog(source))


def load_pair(pictures: Path, labels: Path) -> tuple[Pixels, npt.NDArray[np.uint8]]:
    """Return the pictures (n, 28, 28) and labels (n,) of one split.

    Raises SourceError if a file is damaged or not of pictures and labels, or the lengths differ.
    """
    images, numbers = read_idx(pictures, 3), read_idx(labels, 1)
    if images.shape[1:] != (SIDE, SIDE):
        height, width = images.shape[1:]
        raise SourceError(f"its pictures have {height} x {width} pixels, not 28 x 28", where=str(pictures))
    if len(images) != len(numbers):
        message = f"{len(images):,} pictures and {len(numbers):,} labels"
        raise SourceError(message, where=str(pictures), hint="these two files do not belong together")
    return images, numbers


def read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of an idx file of ``dimensions`` dimensions.

    Raises
    ------
    SourceError : it is not such a file, truncated, corrupt, longer than announced, or of more than
        `LARGEST_SPLIT` entries; sizes are checked before anything is unpacked.
    """
    with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as file:
        stream = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        try:
            header = stream.read(4 + 4 * dimensions)
            shape = _shape(header, dimensions, path)
            size = math.prod(shape)
            data = b"".join(read_chunks(stream, size + 1))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            message = f"the file is truncated or corrupt ({printable(error)})"
            raise SourceError(message, where=str(path), hint=_FETCH) from error
    if len(data) != size:
        present = "more" if len(data) > size else f"{len(data):,}"
        raise SourceError(f"{size:,} values announced, {present} there", where=str(path), hint=_FETCH)
    return np.frombuffer(data, np.uint8).reshape(shape)


def _shape(header: bytes, dimensions: int, path: Path) -> tuple[int, ...]:
    if len(header) < 4 + 4 * dimensions or header[:4] != bytes((0, 0, _BYTES, dimensions)):
        message = f"not an idx file of bytes in {dimensions} dimension{'s' * (dimensions > 1)}"
        raise SourceError(message, where=str(path), hint=_FETCH)
    count, *sides = (int(n) for n in np.frombuffer(header, ">u4", dimensions, 4))
    if count > LARGEST_SPLIT or math.prod(sides) > SIDE * SIDE:
        message = f"it announces {count:,} entries of {math.prod(sides):,} bytes, more than is read"
        raise SourceError(message, where=str(path))
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
    """Return the MD5 of the unpacked file, None if it is damaged: reading it raises the error."""
    total = hashlib.md5(usedforsecurity=False)
    with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as file:
        stream = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        try:
            for piece in read_chunks(stream, LARGEST_FILE + 1):
                total.update(piece)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return None
    return total.hexdigest()
