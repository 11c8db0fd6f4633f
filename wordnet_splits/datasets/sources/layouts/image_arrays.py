"""Images in an array and their labels in another: MNIST's idx files and SVHN's MATLAB files.

An idx file is a magic number (two zeros, the type, the number of dimensions), the dimensions as big-endian
32-bit integers, and the values. It may be compressed by gzip.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.digests import Pixels, digest_pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import check_file, check_link, open_untrusted, read_chunks, reason_of
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources.by_name import source_info
from wordnet_splits.datasets.sources.layouts.matched_images import Listing, MatchedImages
from wordnet_splits.datasets.sources.layouts.walk import bases

IDX_SIDE = 28
LARGEST_IDX_SPLIT = 100_000  # images; the largest published split has 60,000
LARGEST_IDX = 16 + LARGEST_IDX_SPLIT * IDX_SIDE * IDX_SIDE  # bytes, packed or unpacked
IDX_FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
    }
)
"""The publisher's names of the files of images and labels of each split."""
SAMPLE = 50  # number of images compared to distinguish datasets with similar files
_BYTES = 0x08  # the type of the values: uint8

MAT_SHAPE = (32, 32, 3)
LARGEST_MAT_SPLIT = 1_000_000  # images; the largest published split has 531,131
LARGEST_MAT = 2 << 30  # bytes; the largest published file has 1.3 GB
DENSEST = 20  # largest compression ratio of photographs; the published files have 1.3
SMALL = 64 << 20  # bytes; smaller arrays pass whatever their compression ratio

_FETCH = "fetch this file again"


class ImageArrays(MatchedImages):
    """Files of arrays, whose ids are positions; they hold for files with the publisher's checksums.

    Parameters
    ----------
    files : split -> name of a publisher's file -> its path.
    """

    largest: ClassVar[int] = LARGEST_IDX  # bytes of a file

    def __init__(self, source: str, root: Path, files: Mapping[str, Mapping[str, Path]]) -> None:
        super().__init__(source, root, positional=True)
        self._files = files

    @abstractmethod
    def load(self, split: str) -> tuple[Pixels, Sequence[int]]:
        """Return images (n, h, w) or (n, h, w, 3), and their labels. Raises SourceError."""

    def class_of(self, label: int) -> str | None:
        """Return the class of a label, None where it has none."""
        return self.class_ids[label] if label < len(self.class_ids) else None

    def is_published(self) -> bool:
        """Return whether all files, unpacked, have the publisher's checksums."""
        published = source_info(self.source).files
        md5 = {item.file.removesuffix(".gz"): item.unpacked_md5 or item.md5 for item in published}
        files = (item for paths in self._files.values() for item in paths.items())
        return all(_unpacked_md5(path, self.largest) == (md5.get(name) or "") for name, path in files)

    def listing(self, split: str) -> Listing:
        """Return the classes of the images."""
        labels = self._arrays(split)[1] if split in self._files else ()
        classes = [self.class_of(label) for label in labels]

        def describe(index: int) -> str:
            return f"{split}: {'label of no class' if classes[index] is None else 'pixels of no known image'}"

        return Listing(classes, describe)

    def pixels(self, split: str, index: int) -> Pixels:
        """Return an image, uint8 (h, w) or (h, w, 3)."""
        return np.ascontiguousarray(self._arrays(split)[0][index])

    def _arrays(self, split: str) -> tuple[Pixels, Sequence[int]]:
        return self.cached(f"arrays {split}", lambda: self.load(split))


class IdxFiles(ImageArrays):
    """MNIST's idx files: two a split, images and labels."""

    name = "idx"
    recognised: bool = False

    def is_unambiguous(self) -> bool:
        """Return whether a file was recognised as part of this dataset."""
        return self.recognised

    def load(self, split: str) -> tuple[Pixels, Sequence[int]]:
        """Return the images (n, 28, 28) and labels of a split.

        Raises SourceError if a file is damaged or not of images and labels, or the lengths differ.
        """
        image_file, label_file = self._files[split].values()
        images, labels = read_idx(image_file, 3), read_idx(label_file, 1)
        if images.shape[1:] != (IDX_SIDE, IDX_SIDE):
            size = "{} x {}".format(*images.shape[1:])
            raise SourceError(f"images must have 28 x 28 pixels, got {size}", where=str(image_file))
        if len(images) != len(labels):
            message = f"{len(images):,} images and {len(labels):,} labels"
            raise SourceError(message, where=str(image_file), hint="these two files do not belong together")
        return images, labels.tolist()


def find_idx_files(source: str, root: Path, *, folders: Sequence[str], similar: str) -> IdxFiles | None:
    """Return the idx files of a dataset, None if the root has no such files.

    Parameters
    ----------
    folders : the folders below a root that may hold the files.
    similar : another dataset whose files have the same names.
    """
    for base in bases(root, *folders):
        files = {}
        for split, names in IDX_FILES.items():
            paths = {name: path for name in names if (path := _idx_file(base, name, root))}
            if len(paths) == len(names):
                files[split] = paths
        if files:
            layout, recognised = IdxFiles(source, root, files), _recognise(files, (source, similar))
            layout.recognised = recognised == source
            return None if recognised == similar else layout
    return None


def _recognise(files: Mapping[str, Mapping[str, Path]], sources: Sequence[str]) -> str | None:
    """Return which of some datasets has these files, None if that is uncertain.

    They differ in the number of images of each label, else in the digests of their first images.
    """
    for split, paths in files.items():
        image_file, label_file = paths.values()
        try:
            counts = Counter(read_idx(label_file, 1).tolist())
            for name in sources:
                if counts == {item.index: item.counts[split] for item in load_catalog(name)}:
                    return name
            digests = {digest_pixels(image) for image in read_idx(image_file, 3)[:SAMPLE]}
            for name in sources:
                if 2 * len(_digests(name, split) & digests) > len(digests):
                    return name
        except SourceError:
            continue  # reading it raises the error
    return None


@cache
def _digests(source: str, split: str) -> frozenset[bytes]:
    """Return the shipped digests of a split."""
    table = load_inventory(source, split)
    return frozenset() if table is None else frozenset(table["digest"].to_pylist())


def read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of an idx file of ``dimensions`` dimensions.

    Raises SourceError if it is not such a file, truncated, corrupt, longer than announced, or of more than
    `LARGEST_IDX_SPLIT` entries; sizes are checked before anything is unpacked.
    """
    with open_untrusted(path, largest=LARGEST_IDX, error=SourceError) as file:
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
    if count > LARGEST_IDX_SPLIT or math.prod(sides) > IDX_SIDE * IDX_SIDE:
        message = f"it announces {count:,} entries of {math.prod(sides):,} bytes, more than is read"
        raise SourceError(message, where=str(path))
    return count, *sides


def _idx_file(base: Path, name: str, root: Path) -> Path | None:
    """Return the plain or compressed file of that name; some copies have a dot for the first hyphen."""
    for spelling in (name, name.replace("-idx", ".idx")):
        for path in (base / spelling, base / f"{spelling}.gz"):
            if path.is_file():
                if path.is_symlink():
                    check_link(path, root)
                return path
    return None


def _unpacked_md5(path: Path, largest: int) -> str | None:
    """Return the MD5 of the unpacked file, None if it is damaged: reading it raises the error."""
    total = hashlib.md5(usedforsecurity=False)
    with open_untrusted(path, largest=largest, error=SourceError) as file:
        stream = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        try:
            for piece in read_chunks(stream, largest + 1):
                total.update(piece)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return None
    return total.hexdigest()


class MatFiles(ImageArrays):
    """SVHN's MATLAB files: ``X`` (32, 32, 3, n) uint8 and ``y`` (n, 1), where 10 is the digit 0."""

    name = "mat"
    largest = LARGEST_MAT

    def load(self, split: str) -> tuple[Pixels, Sequence[int]]:
        """Return the images and labels of a split."""
        (path,) = self._files[split].values()
        images, labels = load_mat(path)
        return np.moveaxis(images, -1, 0), labels

    def class_of(self, label: int) -> str | None:
        """Return the digit of a label."""
        return self.class_ids[label % 10] if 0 <= label <= 10 else None


def find_mat_files(source: str, root: Path, *, folders: Sequence[str]) -> MatFiles | None:
    """Return the MATLAB files of a dataset, from the first folder that has one."""
    for base in bases(root, *folders):
        names = {split: f"{split}_32x32.mat" for split in load_catalog(source).splits}
        files = {split: {name: base / name} for split, name in names.items() if (base / name).is_file()}
        if files:
            for paths in files.values():
                for path in paths.values():
                    if path.is_symlink():
                        check_link(path, root)
            return MatFiles(source, root, files)
    return None


def load_mat(path: Path) -> tuple[Pixels, list[int]]:
    """Return images (32, 32, 3, n) and labels (0 to 10 where they are digits) of a file.

    Raises SourceError if it is truncated or not a MATLAB file, or its arrays have other shapes; sizes are
    checked before anything is unpacked.
    """
    from scipy.io import loadmat, whosmat  # scipy takes longer to import than most sources to open

    size = check_file(path, largest=LARGEST_MAT, error=SourceError)
    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        count = _count(shapes, path)
        if count * math.prod(MAT_SHAPE) > max(DENSEST * size, SMALL):
            raise SourceError(f"{count:,} images in {size:,} bytes, more than fit", where=str(path))
        arrays = loadmat(path, variable_names=["X", "y"])
    except SourceError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # scipy raises any exception for a broken file
        message = f"the MATLAB file is truncated or corrupt ({reason_of(error)})"
        raise SourceError(message, where=str(path), hint=_FETCH) from error
    images, labels = arrays["X"], arrays["y"]
    if images.dtype != np.uint8 or images.shape != (*MAT_SHAPE, count) or labels.dtype.kind not in "uif":
        raise SourceError("X is not an array of bytes, or y not one of numbers", where=str(path))
    with np.errstate(invalid="ignore"):  # NaN is refused below
        whole: npt.NDArray[np.int64] = labels.ravel().astype(np.int64)
    if not np.array_equal(whole, labels.ravel()):
        raise SourceError("a label is not a whole number", where=str(path))
    return images, whole.tolist()


def _count(shapes: Mapping[str, tuple[int, ...]], path: Path) -> int:
    images, labels = shapes.get("X", ()), shapes.get("y", ())
    count = images[-1] if len(images) == 4 else 0
    labelled = sorted(labels) == sorted((count, 1))
    if images[:3] != MAT_SHAPE or not labelled or not 0 < count <= LARGEST_MAT_SPLIT:
        message = f"X has the shape {images} and y {labels}, not (32, 32, 3, n) and (n, 1)"
        hint = "these are not SVHN's cropped digits (format 2)"
        raise SourceError(message, where=str(path), hint=hint)
    return count
