"""Any set of images, by row or by id: the images of a dataset, a folder or a benchmark."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.errors import SourceError
from wordnet_splits.datasets.sources import Source, recognise
from wordnet_splits.datasets.sources.image_folder import ImageFolder

IMAGE_COLUMNS: Final = ("source", "split", "class_id", "image_id")
ImageRow = tuple[str, str, str, str, str]
"""Source, split, class_id, image_id and key of an image."""


class Reader(Protocol):
    """Reads images by their keys; picklable."""

    def image(self, key: str) -> Image.Image:
        """Return an RGB image. Raises SourceError or DataError if it cannot be read."""


@dataclass(frozen=True)
class SourceReader:
    """Reads the images of a source by their ids."""

    source: Source

    def image(self, key: str) -> Image.Image:
        """Return an RGB image."""
        return self.source.decode(self.source.read([key])[0], key)


@dataclass(frozen=True)
class ImageSet:
    """A set of images.

    Attributes
    ----------
    name : the text that names the set.
    table : columns `IMAGE_COLUMNS` and ``key``, the argument of ``reader`` for an image; in a fixed order.
    root : folder of the files whose sizes and times show whether an image has changed; None if unknown.
    other_files : number of files in the folder that are not images by name.
    """

    name: str
    table: pa.Table
    reader: Reader
    root: Path | None
    other_files: int = 0

    @classmethod
    def from_rows(
        cls, name: str, rows: Iterable[ImageRow], reader: Reader, root: Path | None, other_files: int = 0
    ) -> ImageSet:
        """Return a set of images by its rows; SourceError for an empty set."""
        columns = [*zip(*rows, strict=True)]
        if not columns:
            raise SourceError("has no images", where=name)
        names = (*IMAGE_COLUMNS, "key")
        table = pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})
        return cls(name, table, reader, root, other_files)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The id of each image; ``SOURCE/ID`` if images of two sources have the same id.

        Raises SourceError if the set contains an image twice.
        """
        images = list(zip(*(self.table[c].to_pylist() for c in ("source", "image_id")), strict=True))
        counts = Counter(image_id for _, image_id in images)
        ids = tuple(i if counts[i] == 1 else f"{source}/{i}" for source, i in images)
        if len(set(ids)) < len(ids):
            ((twice, _),) = Counter(ids).most_common(1)
            hint = "name a group, as in NAME:GROUP:SPLIT"
            raise SourceError(f"image {twice!r} is in it twice", where=self.name, hint=hint)
        return ids

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {image_id: row for row, image_id in enumerate(self.ids)}

    def in_order(self, ids: Collection[str]) -> list[str]:
        """Return ids of images in their fastest order of reading."""
        return sorted(ids, key=self._rows.__getitem__)

    def image(self, image_id: str) -> Image.Image:
        """Return an RGB image by its id. Raises SourceError or DataError if it cannot be read."""
        return self.reader.image(self.table["key"][self._rows[image_id]].as_py())

    def equals(self, other: ImageSet) -> bool:
        """Return whether another set has the same images in the same folder."""
        return self.root == other.root and self.table.equals(other.table)

    def named_by_path(self) -> ImageSet:
        """Return the set with its ``name`` as the source of every image."""
        names = pa.array([self.name] * len(self), pa.string())
        return replace(self, table=self.table.set_column(0, "source", names))

    def part(self, number: int, count: int) -> ImageSet:
        """Return part ``number``, from 1, of ``count`` parts of nearly equal size."""
        start, end = ((n * len(self)) // count for n in (number - 1, number))
        return replace(self, table=self.table.slice(start, end - start))

    def row(self, number: int) -> dict[str, str]:
        """Return the columns of an image."""
        row: dict[str, str] = self.table.slice(number, 1).to_pylist()[0]
        return row

    def missing(self, images: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the (source, image_id) pairs that the set does not contain."""
        ids = pa.array([image_id for _, image_id in images], pa.string())
        rows = self.table.filter(pc.is_in(self.table["image_id"], value_set=ids))
        return set(images) - set(zip(*(rows[c].to_pylist() for c in ("source", "image_id")), strict=True))

    def digest(self, *, stamped: bool) -> bytes:
        """Return the SHA-256 of the ids; with ``stamped`` also of sizes and times of the files."""
        digest = hashlib.sha256()
        for name in IMAGE_COLUMNS:
            for value in self.table[name].to_pylist():
                digest.update(value.encode("utf-8", "surrogateescape") + b"\0")
        if stamped and self.root is not None:
            digest.update(stamps(self.root, self.table["image_id"].combine_chunks()).tobytes())
        return digest.digest()


def source_images(label: str, source: Source, splits: Sequence[str] = ()) -> ImageSet:
    """Return the images of a dataset in some splits, by default all, in the order of their ids.

    Raises SourceError if these splits have no images, UnknownNameError for an unknown split.
    """
    return ImageSet.from_rows(label, sorted(_scan(source, splits)), SourceReader(source), source.root)


def folder_images(label: str, folder: Path) -> ImageSet:
    """Return the image files below a folder, or else the images in its Parquet files.

    Raises SourceError if the folder cannot be read, or has no images.
    """
    source = ImageFolder.open_folder(folder)
    rows = list(_scan(source))
    other_files = sum(source.unexpected.values())
    if not rows and (in_parquet := source.in_parquet()) is not None:
        source, rows = in_parquet, list(_scan(in_parquet))
    if not rows:
        name = recognise(folder.resolve())
        endings = ", ".join(sorted(EXTENSIONS))
        raise SourceError(
            f"has no images, but {other_files:,} files of other kinds",
            where=label,
            hint=f"it looks like {name}: give {name}:SPLIT and --root {name}={folder}"
            if name
            else f"looked for files ending in {endings}, or Parquet with a column of images",
        )
    assert source.root is not None
    rows = [(source.root.name, "", *rest) for _, _, *rest in rows]  # type: ignore[misc]
    return ImageSet.from_rows(label, rows, SourceReader(source), source.root, other_files)


def _scan(source: Source, splits: Sequence[str] = ()) -> Iterable[ImageRow]:
    for batch in source.scan(splits or None):
        columns = (batch.column(name).to_pylist() for name in ("split", "class_id", "image_id"))
        yield from ((source.name, split, c, i, i) for split, c, i in zip(*columns, strict=True))


_BATCH: Final = 65_536
_ENDINGS: Final = sorted(EXTENSIONS)

Stamps = npt.NDArray[np.uint64]


def stamps(root: Path, image_ids: pa.Array) -> Stamps:
    """Return a number for each image, (n,) uint64, that changes with its file."""
    names = pc.replace_substring_regex(image_ids, "^.*/", "")
    unique_names = pc.unique(names)
    image_stamps = np.zeros(len(unique_names), np.uint64)
    other_stamps = np.zeros(1, np.uint64)
    files = _files(str(root))
    while batch := list(islice(files, _BATCH)):
        file_names, numbers = (list(column) for column in zip(*batch, strict=True))
        column, values = pa.array(file_names, pa.string()), np.array(numbers, np.uint64)
        stems = pc.replace_substring_regex(column, r"(.)\.[^.]*$", r"\1")
        rows = pc.coalesce(*(pc.index_in(c, value_set=unique_names) for c in (stems, column)))
        rows = pc.fill_null(rows, -1).to_numpy()
        extensions = pc.utf8_lower(pc.replace_substring_regex(column, r"^.*\.", ""))
        is_image = pc.is_in(extensions, value_set=pa.array(_ENDINGS)).to_numpy(zero_copy_only=False)
        matched = is_image & (rows >= 0)
        np.add.at(image_stamps, rows[matched], values[matched])  # modulo 2 ** 64, in any order
        other_stamps += values[~is_image].sum(dtype=np.uint64)
    rows = pc.index_in(names, value_set=unique_names).to_numpy()
    return np.asarray(image_stamps[rows] + other_stamps, np.uint64)


def _files(root: str) -> Iterator[tuple[str, int]]:
    """Yield name and stamp of every file below a folder; links are not followed, but their targets count."""
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as scanned:
                entries = [entry for entry in scanned if not entry.name.startswith(".")]
        except OSError:  # reading raises the error
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            try:
                link = Path(entry.path).readlink() if entry.is_symlink() else ""
                status = entry.stat()
            except OSError:
                continue
            text = f"{entry.path[len(root) :]}\0{link}\0{status.st_size}\0{status.st_mtime_ns}"
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            yield entry.name.encode("utf-8", "backslashreplace").decode(), int.from_bytes(digest)
