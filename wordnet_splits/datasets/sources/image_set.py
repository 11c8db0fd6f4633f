"""Sets of images, by row or by id: the images of a dataset, of a folder at any depth, or of a benchmark."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt
import PIL.Image
import pyarrow as pa
import pyarrow.compute as pc

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.parquet import open_parquet
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.datasets.sources import recognise
from wordnet_splits.datasets.sources.layouts import Image, Layout, Location, Note
from wordnet_splits.datasets.sources.layouts.parquet_files import Shards, image_column, row_paths
from wordnet_splits.datasets.sources.layouts.walk import check_root, entries
from wordnet_splits.datasets.sources.source import Source

SPLIT = "all"


class ImageTree(Layout):
    """Image files at any depth; the location of an image is its folder and its name in an id."""

    name = "folder"

    def __init__(self, root: Path) -> None:
        self.root = root

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every image file, folder by folder, in the order of their names."""
        return self._below(PurePosixPath(), note)

    def locate(self, image_id: str) -> Location:
        """Return the folder and the name of an image."""
        path = PurePosixPath(image_id)
        return str(path.parent), path.name

    def read(self, location: Location) -> bytes:
        """Return one file's bytes."""
        folder, name = map(str, location)
        names = self.cached(f"names {folder}", lambda: self._names(folder))
        return read_image(self.root / folder / names[name], self.root)

    def _below(self, folder: PurePosixPath, note: Note) -> Iterator[Image]:
        class_id = "" if folder == PurePosixPath() else str(folder)
        inside = sorted(entries(self.root / folder, self.root), key=lambda entry: entry.name)
        files = [entry.name for entry in inside if not entry.is_dir()]
        for name in files:
            if not _is_image(name):
                note(str(folder / name).encode("utf-8", "backslashreplace").decode())
        for stem in names_by_stem(files):
            yield Image(str(folder / stem), class_id, SPLIT, (str(folder), stem))
        for entry in inside:
            if entry.is_dir():
                yield from self._below(folder / entry.name, note)

    def _names(self, folder: str) -> dict[str, str]:
        inside = entries(self.root / folder, self.root)
        return names_by_stem(entry.name for entry in inside if not entry.is_dir())


class ParquetTree(Layout):
    """Parquet files with a column of images, as `datasets` writes them.

    The id of an image is the path stored with it, without extension; if the path is absent, or an earlier row
    has it, ``<folder>/<file>/<row>``.
    """

    name = "parquet"

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every image, in the order of the rows."""
        for image_id, location in self._locations().items():
            yield Image(image_id, "", SPLIT, location)

    def locate(self, image_id: str) -> Location:
        """Return the file, row group and row of an image."""
        return self._locations()[image_id]

    def read(self, location: Location) -> bytes:
        """Return the bytes of an image file."""
        file, group, row = map(int, location)
        return self._shards().image_bytes(file, group, row)

    def storage_position(self, location: Location) -> tuple[int, ...]:
        """Return the file, row group and row."""
        return tuple(map(int, location))

    def _shards(self) -> Shards:
        return self.cached("shards", lambda: Shards(self.paths))

    def _locations(self) -> dict[str, Location]:
        return self.cached("locations", self._list_locations)

    def _list_locations(self) -> dict[str, Location]:
        locations: dict[str, Location] = {}
        rows: Counter[int] = Counter()
        shards = self._shards()
        for file, group, table in shards.rows(f"{shards.image}.path"):
            path = self.paths[file]
            for row, stored in enumerate(row_paths(table)):
                name = PurePosixPath(stored or "")
                image_id = str(name.with_suffix("")) if name.name else ""
                if not image_id or image_id in locations:
                    image_id = f"{path.parent.name}/{path.stem}/{rows[file] + row}"
                if image_id in locations:
                    raise SourceError(f"two rows are called {image_id!r}", where=str(path))
                locations[image_id] = (file, group, row)
            rows[file] += len(table)
        return locations


class ImageFolder(Source):
    """A folder of images and subfolders.

    The id of an image is its path below the root without extension (with extension if two files of its folder
    would otherwise have the same id); its class is the path of its folder, empty at the root. Links are
    followed only within the root. Hidden files are ignored, other files are counted in ``unexpected``.
    """

    name: ClassVar[str] = "folder"
    splits: ClassVar[tuple[str, ...]] = (SPLIT,)
    expected_files: ClassVar[str] = "image files, at any depth"

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the folder, whatever it holds."""
        yield ImageTree(root)

    @classmethod
    def open_folder(cls, root: Path) -> ImageFolder:
        """Open a folder of image files.

        Raises SourceError if the folder does not exist, is empty or cannot be read.
        """
        folder = check_root(root, cls.name, hint="give a folder that holds images")
        return cls.open(folder, ImageTree(folder))

    def in_parquet(self) -> ImageFolder | None:
        """Return the images in Parquet files that the last scan found; None if no file has images.

        Raises SourceError if a Parquet file cannot be read.
        """
        assert self.root is not None
        paths = sorted(self.root / name for name in self.unexpected if name.endswith(".parquet"))
        paths = [path for path in paths if _has_images(path)]
        return self.open(self.root, ParquetTree(paths)) if paths else None


def names_by_stem(files: Iterable[str]) -> dict[str, str]:
    """Return the image files of a folder by stem, or by full name if two have the same stem."""
    names = sorted(filter(_is_image, files))
    stems = [name.rpartition(".")[0] for name in names]
    return dict(zip(stems if len(set(stems)) == len(stems) else names, names, strict=True))


def _is_image(name: str) -> bool:
    """Return whether a file is an image by its name, which must be valid UTF-8 for tables to contain it."""
    stem, _, extension = name.rpartition(".")
    is_text = not any("\ud800" <= letter <= "\udfff" for letter in name)
    return bool(stem) and extension.lower() in EXTENSIONS and is_text


def _has_images(path: Path) -> bool:
    schema = open_parquet(path, error=SourceError).schema_arrow
    try:
        image_column(schema, path)
    except SourceError:
        return False
    return True


IMAGE_COLUMNS: Final = ("source", "split", "class_id", "image_id")
ImageRow = tuple[str, str, str, str, str]
"""Source, split, class_id, image_id and key of an image."""


class Reader(Protocol):
    """Reads images by their keys; picklable."""

    def image(self, key: str) -> PIL.Image.Image:
        """Return an RGB image. Raises SourceError or DataError if it cannot be read."""


@dataclass(frozen=True)
class SourceReader:
    """Reads the images of a source by their ids."""

    source: Source

    def image(self, key: str) -> PIL.Image.Image:
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

    def image(self, image_id: str) -> PIL.Image.Image:
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
    rows = [(source.root.name, "", *rest) for _, _, *rest in rows]  # type: ignore[misc] # a starred tuple
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
