"""Datasets of a row an image: tables in shards, with a column of images and one of labels.

An image is a struct (bytes, path), bytes, or a path below the root. A label is text, or an integer whose
names ``datasets`` has written into the file, or ``classnames.txt`` has.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import path_below, read_image
from wordnet_splits.catalog.declarations import Declaration
from wordnet_splits.sources.layouts.parquet_named import OPEN_SHARDS, bytes_at
from wordnet_splits.sources.layouts.parquet_nameless import label_names
from wordnet_splits.sources.own.class_names import Names, class_names, class_of, distinct_names
from wordnet_splits.sources.own.columns import class_column, image_column, split_column
from wordnet_splits.sources.own.layout import Layout, Place


class Shard(NamedTuple):
    """A file of rows, and the split that they are of where no column says it."""

    path: Path
    split: str


class Row(NamedTuple):
    """An image before it has an id: ``position`` counts the rows of its split, ``path`` is as stored."""

    class_id: str
    split: str
    position: int
    path: str | None
    place: Place


class Table(Protocol):
    """An opened shard, read a group of rows at a time; a column of a struct is named like ``img.path``."""

    schema: pa.Schema
    groups: int

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return some columns of a group, checked. Raises SourceError."""


class Rows(Layout):
    """A picture a row of tables."""

    def __init__(self, root: Path, declared: Declaration) -> None:
        super().__init__(root, declared)
        self._shards = cache(self.shards)
        self._table = lru_cache(maxsize=OPEN_SHARDS)(self.opened)
        self._kept = lru_cache(maxsize=1)(self._read_group)

    @abstractmethod
    def shards(self) -> Sequence[Shard]:
        """Return the files, in the order of their rows' positions. Raises SourceError."""

    @abstractmethod
    def opened(self, path: Path) -> Table:
        """Return a file opened. Raises SourceError."""

    def classes(self) -> dict[str, str]:
        """Return the classes in the order of the labels, where the files name them."""
        path = self._shards()[0].path
        schema = self._table(path).schema
        names = self._names(schema, class_column(schema.names, self.declared.columns, path), path)
        return dict.fromkeys(names or class_names(self.root), "")

    def written_names(self, schema: pa.Schema, label: str, path: Path) -> Sequence[str]:
        """Return the names of a file's labels as `datasets` wrote them, none where it did not.

        Raises SourceError.
        """
        return label_names(schema, label)

    def rows(self, note: Callable[[str], None]) -> Iterator[Row]:
        """Yield every row that has a class."""
        position: dict[str, int] = defaultdict(int)
        given = class_names(self.root)
        for number, (path, of_shard) in enumerate(self._shards()):
            table = self._table(path)
            image, label, split = self._columns(table, path)
            names = self._names(table.schema, label, path)
            paths = _path_column(table.schema.field(image))
            for group in range(table.groups):
                read = table.read(group, [c for c in (label, split, paths) if c is not None])
                labels = read[label].to_pylist()
                splits = [of_shard] * len(labels) if split is None else read[split].to_pylist()
                held = [None] * len(labels) if paths is None else _paths(read, image)
                for row, value in enumerate(labels):
                    part, at = str(splits[row]), position[str(splits[row])]
                    position[part] += 1
                    where = str(path)
                    class_id = _named(value, names, where) if names else class_of(value, given, where)
                    if class_id is None:
                        note(f"{path.name}: a row of label {printable(value)}")
                    else:
                        yield Row(class_id, part, at, held[row], (number, group, row))

    def read(self, place: Place) -> bytes:
        """Return a picture's bytes; consecutive calls for one group of rows read it once."""
        number, group, row = (int(n) for n in place)
        path = self._shards()[number].path
        column = self._kept(path, group)
        if _is_text(column.type):
            return read_image(path_below(self.root, str(column[row].as_py())), self.root)
        where = f"{path} group {group} row {row}"
        data = bytes_at(column, row, where)
        if data is not None:
            return data
        table = self._table(path)
        image, _, _ = self._columns(table, path)
        names = _path_column(table.schema.field(image))
        if names is not None and (told := _paths(table.read(group, [names]), image)[row]):
            raise SourceError(
                f"the picture is not in the dataset, but the file {printable(told)}",
                where=where,
                hint="save_to_disk of `datasets` puts pictures into its files; to_parquet may leave them out",
            )
        raise KeyError(row)

    def _columns(self, table: Table, path: Path) -> tuple[str, str, str | None]:
        names, declared = table.schema.names, self.declared.columns
        image, label = image_column(names, declared, path), class_column(names, declared, path)
        _check_image(table.schema.field(image), path)
        _check_label(table.schema.field(label), path)
        return image, label, split_column(names, declared, path)

    def _names(self, schema: pa.Schema, label: str, path: Path) -> Names:
        return distinct_names(self.written_names(schema, label, path), where=f"{path}: {printable(label)}")

    def _read_group(self, path: Path, group: int) -> pa.Array:
        table = self._table(path)
        image, _, _ = self._columns(table, path)
        if not pa.types.is_struct(table.schema.field(image).type):
            return table.read(group, [image]).column(0).combine_chunks()
        values = table.read(group, [f"{image}.bytes"]).column(0).combine_chunks()
        return values.field("bytes")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _check_image(field: pa.Field, path: Path) -> None:
    kind = field.type
    if pa.types.is_struct(kind):
        place = kind.get_field_index("bytes")
        good = place >= 0 and _is_bytes(kind.field(place).type)
    else:
        good = _is_bytes(kind) or _is_text(kind)
    if not good:
        raise SourceError(
            f"the column {printable(field.name)} holds {printable(kind)}, no picture a row",
            where=str(path),
            hint="an image file's bytes, with or without its path, or a path below the root; another column: "
            'columns = { image = "..." }',
        )


def _check_label(field: pa.Field, path: Path) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if not (pa.types.is_integer(kind) or _is_text(kind)):
        raise SourceError(
            f"the column {printable(field.name)} holds {printable(kind)}, no class a row",
            where=str(path),
            hint='integers or text; another column: columns = { class = "..." }',
        )


def _path_column(field: pa.Field) -> str | None:
    if pa.types.is_struct(field.type):
        return f"{field.name}.path" if field.type.get_field_index("path") >= 0 else None
    return field.name if _is_text(field.type) else None


def _paths(table: pa.Table, image: str) -> list[str | None]:
    column = table[image].combine_chunks()
    paths: list[str | None] = (
        column.field("path") if pa.types.is_struct(column.type) else column
    ).to_pylist()
    return paths


def _named(value: object, names: Names, where: str) -> str | None:
    """Return the class of a label that the file names; None where it has none, as -1 of a hidden test set.

    Raises
    ------
    SourceError : the names do not reach that far, or the text is none of them.
    """
    if value is None or value == "" or (isinstance(value, int) and value < 0):
        return None
    if isinstance(value, int) and value < len(names):
        return names[value] or None
    if value in names:
        return str(value)
    raise SourceError(
        f"the label {printable(value)} is none of the {len(names):,} that are named",
        where=where,
        hint="save it again with the names of all labels",
    )
