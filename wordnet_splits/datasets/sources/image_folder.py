"""A folder of images as a source: files at any depth, or Parquet files with a column of images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.parquet import open_parquet
from wordnet_splits.base.untrusted import read_image
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
