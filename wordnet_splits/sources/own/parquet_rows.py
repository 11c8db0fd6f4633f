"""Parquet files as the ``datasets`` library saves them: a column of images, one of labels.

An image is a struct (bytes, path), bytes, or a path below the root. A label is text, or an integer whose
names ``datasets`` has written into the file. Which split a file holds its name or its folder says
(``train-00000-of-00002.parquet``, ``test/0000.parquet``), unless a column does. An id is
``<split>/<class>/<file name>`` where no two rows of a class share a name, else ``<split>/<position>``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.catalog.own_sources import Declaration
from wordnet_splits.errors import SourceError
from wordnet_splits.sources.layouts.parquet_named import OPEN_SHARDS, bytes_at
from wordnet_splits.sources.layouts.parquet_nameless import label_names
from wordnet_splits.sources.own.columns import class_column, image_column, split_column
from wordnet_splits.sources.own.layout import Image, Layout, Place, without_extension
from wordnet_splits.sources.own.shards import shards, split_of
from wordnet_splits.untrusted import (
    LONGEST_NAME,
    below,
    open_parquet,
    parquet_errors,
    printable,
    read_picture,
)


class _Row(NamedTuple):
    class_id: str
    split: str
    name: str | None
    position: int
    place: Place


class ParquetRows(Layout):
    """A picture a row of Parquet files."""

    about: ClassVar[str] = "Parquet files with a column of images and one of labels"

    def __init__(self, root: Path, declared: Declaration) -> None:
        super().__init__(root, declared)
        self._shards = cache(self._find)
        self._file = lru_cache(maxsize=OPEN_SHARDS)(_opened)
        self._kept = lru_cache(maxsize=1)(self._read_group)

    def images(self, note: Callable[[str], None]) -> Iterator[Image]:
        """Yield every row that has an image and a class."""
        rows = list(self._rows(note))
        names = {(row.split, row.class_id, row.name) for row in rows}
        named = len(names) == len(rows) and all(row.name for row in rows)
        for row in rows:
            name = f"{row.class_id}/{row.name}" if named else str(row.position)
            yield Image(f"{row.split}/{name}", row.class_id, row.split, row.place)

    def _rows(self, note: Callable[[str], None]) -> Iterator[_Row]:
        position: dict[str, int] = defaultdict(int)
        for number, path in enumerate(self._shards()):
            file = self._file(path)
            image, label, split = self._columns(file, path)
            classes = label_names(file.schema_arrow, label)
            of_file = split_of(path.relative_to(self.root))
            names = _path_column(file.schema_arrow.field(image))
            for group in range(file.num_row_groups):
                with parquet_errors(path, error=SourceError):
                    table = file.read_row_group(group, [c for c in (label, split, names) if c is not None])
                    labels = table[label].to_pylist()
                    splits = [of_file] * len(labels) if split is None else table[split].to_pylist()
                    paths = _paths(table, image) if names is not None else [None] * len(labels)
                for row, value in enumerate(labels):
                    part, class_id = str(splits[row]), _class_id(value, classes)
                    at = position[part]
                    position[part] += 1
                    if class_id is None:
                        note(f"{path.name}: a row of label {printable(value)}")
                    else:
                        yield _Row(class_id, part, _name(paths[row]), at, (number, group, row))

    def read(self, place: Place) -> bytes:
        """Return a picture's bytes; consecutive calls for one row group read it once."""
        number, group, row = (int(n) for n in place)
        path = self._shards()[number]
        column = self._group(path, group)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return read_picture(below(self.root, str(column[row].as_py())), self.root)
        data = bytes_at(column, row, f"{path} row group {group} row {row}")
        if data is None:
            raise KeyError(row)
        return data

    def _find(self) -> list[Path]:
        return shards(self.root, self.declared.images, ".parquet", "Parquet file")

    def _columns(self, file: pq.ParquetFile, path: Path) -> tuple[str, str, str | None]:
        names, declared = file.schema_arrow.names, self.declared.columns
        return (
            image_column(names, declared, path),
            class_column(names, declared, path),
            split_column(names, declared, path),
        )

    def _read_group(self, path: Path, group: int, column: str) -> pa.Array:
        with parquet_errors(path, error=SourceError):
            values = self._file(path).read_row_group(group, [column]).column(0).combine_chunks()
        return values.field("bytes") if pa.types.is_struct(values.type) else values

    def _group(self, path: Path, group: int) -> pa.Array:
        file = self._file(path)
        image, _, _ = self._columns(file, path)
        of_struct = pa.types.is_struct(file.schema_arrow.field(image).type)
        return self._kept(path, group, f"{image}.bytes" if of_struct else image)


def _opened(path: Path) -> pq.ParquetFile:
    return open_parquet(path, error=SourceError)


def _path_column(field: pa.Field) -> str | None:
    if pa.types.is_struct(field.type):
        return f"{field.name}.path" if field.type.get_field_index("path") >= 0 else None
    return field.name if pa.types.is_string(field.type) or pa.types.is_large_string(field.type) else None


def _paths(table: pa.Table, image: str) -> list[str | None]:
    column = table[image].combine_chunks()
    paths: list[str | None] = (
        column.field("path") if pa.types.is_struct(column.type) else column
    ).to_pylist()
    return paths


def _name(path: str | None) -> str | None:
    """Return the name of a file without its extension: folders above it differ from copy to copy."""
    if not path or len(path) > LONGEST_NAME:
        return None
    return without_extension(PurePosixPath(path).name)


def _class_id(value: object, classes: tuple[str, ...]) -> str | None:
    """Return the class of a label; None where it has none, or is no number of a name."""
    if isinstance(value, int) and classes:
        return classes[value] if 0 <= value < len(classes) else None
    return None if value is None or value == "" else str(value)
