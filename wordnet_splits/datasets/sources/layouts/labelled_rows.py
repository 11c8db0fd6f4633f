"""Datasets with a row per image: tables in shards, with a column of images and a column of labels.

An image is a struct (bytes, path), bytes, or a path below the root. A label is text, or an integer whose name
is in the file, where ``datasets`` writes it, or in ``classnames.txt``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import csv_rows
from wordnet_splits.base.untrusted import LONGEST_NAME, path_below, read_image
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.sources.layouts.conventions import (
    Names,
    TableColumns,
    class_column,
    class_names,
    class_of,
    distinct_names,
    shards,
    splits_of,
    table_columns,
)
from wordnet_splits.datasets.sources.layouts.layout import (
    ALL,
    DeclaredLayout,
    Image,
    ImageFiles,
    Location,
    Note,
    register_layout,
    without_extension,
)
from wordnet_splits.datasets.sources.layouts.parquet_files import (
    OPEN_SHARDS,
    Table,
    bytes_at,
    label_names,
    open_table,
)
from wordnet_splits.datasets.sources.layouts.walk import entries


class Shard(NamedTuple):
    """A file of rows, and their split if no column has it."""

    path: Path
    split: str


class LabelledRow(NamedTuple):
    """A row before it has an id: ``position`` counts the rows of its split, ``path`` is as stored."""

    class_id: str
    split: str
    position: int
    path: str | None
    location: Location


class LabelledRows(DeclaredLayout):
    """Layout with an image in each row of tables."""

    def __init__(self, root: Path, declaration: Declaration) -> None:
        super().__init__(root, declaration)
        self._shards = cache(self.shards)
        self._table = lru_cache(maxsize=OPEN_SHARDS)(open_table)
        self._image_column = lru_cache(maxsize=1)(self._read_images)

    @abstractmethod
    def shards(self) -> Sequence[Shard]:
        """Return the files, in the order of their rows' positions. Raises SourceError."""

    def classes(self) -> dict[str, str]:
        """Return the classes in the order of the labels, if files have their names."""
        path = self._shards()[0].path
        schema = self._table(path).schema
        names = self._names(schema, class_column(schema.names, self.declaration.columns, path), path)
        return dict.fromkeys(names or class_names(self.root), "")

    def written_names(self, schema: pa.Schema, label: str, path: Path) -> Sequence[str]:
        """Return the names of a file's labels, if `datasets` wrote them. Raises SourceError."""
        return label_names(schema, label)

    def rows(self, note: Note) -> Iterator[LabelledRow]:
        """Yield every row that has a class."""
        positions: dict[str, int] = defaultdict(int)
        root_names = class_names(self.root)
        for number, (path, shard_split) in enumerate(self._shards()):
            table, where = self._table(path), str(path)
            image, label, split_name = self._columns(table, path)
            file_names = self._names(table.schema, label, path)
            path_name = _path_column(table.schema.field(image))
            for group in range(table.groups):
                columns = table.read(group, [c for c in (label, split_name, path_name) if c is not None])
                labels = columns[label].to_pylist()
                count = len(labels)
                splits = [shard_split] * count if split_name is None else columns[split_name].to_pylist()
                paths = [None] * count if path_name is None else _paths(columns, image)
                for row, value in enumerate(labels):
                    split = str(splits[row])
                    positions[split] += 1
                    if file_names:
                        class_id = _class_by_name(value, file_names, where)
                    else:
                        class_id = class_of(value, root_names, where)
                    if class_id is None:
                        note(f"{path.name}: a row of label {printable(value)}")
                    else:
                        location = (number, group, row)
                        yield LabelledRow(class_id, split, positions[split] - 1, paths[row], location)

    def read(self, location: Location) -> bytes:
        """Return an image's bytes; consecutive calls for one group of rows read it once."""
        number, group, row = (int(n) for n in location)
        path = self._shards()[number].path
        column = self._image_column(path, group)
        if _is_text(column.type):
            return read_image(path_below(self.root, str(column[row].as_py())), self.root)
        where = f"{path} group {group} row {row}"
        data = bytes_at(column, row, where)
        if data is not None:
            return data
        table = self._table(path)
        image, _, _ = self._columns(table, path)
        paths = _path_column(table.schema.field(image))
        if paths is not None and (image_path := _paths(table.read(group, [paths]), image)[row]):
            message = f"the dataset has only the path of the image, {printable(image_path)}"
            hint = "save_to_disk of `datasets` stores images; to_parquet may leave them out"
            raise SourceError(message, where=where, hint=hint)
        raise KeyError(row)

    def _columns(self, table: Table, path: Path) -> TableColumns:
        columns = table_columns(table.schema.names, self.declaration.columns, path)
        _check_image(table.schema.field(columns.image), path)
        _check_label(table.schema.field(columns.label), path)
        return columns

    def _names(self, schema: pa.Schema, label: str, path: Path) -> Names:
        return distinct_names(self.written_names(schema, label, path), where=f"{path}: {printable(label)}")

    def _read_images(self, path: Path, group: int) -> pa.Array:
        table = self._table(path)
        image, _, _ = self._columns(table, path)
        if not pa.types.is_struct(table.schema.field(image).type):
            return table.read(group, [image]).column(0).combine_chunks()
        values = table.read(group, [f"{image}.bytes"]).column(0).combine_chunks()
        return values.field("bytes")


@register_layout("parquet")
class ParquetRows(LabelledRows):
    """Layout with an image in each row of Parquet files, as the ``datasets`` library saves them.

    The split of a file is in its name or its folder's (``train-00000-of-00002.parquet``,
    ``test/0000.parquet``), unless there is a column of splits. An id is ``<split>/<class>/<file name>`` where
    no two rows of a class share a name, else ``<split>/<position>``.
    """

    about: ClassVar[str] = "Parquet files with a column of images and one of labels"

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every row that has an image and a class."""
        rows = [(row, _file_name(row.path)) for row in self.rows(note)]
        names = {(row.split, row.class_id, name) for row, name in rows}
        has_names = len(names) == len(rows) and all(name for _, name in rows)
        for row, name in rows:
            last = f"{row.class_id}/{name}" if has_names else str(row.position)
            yield Image(f"{row.split}/{last}", row.class_id, row.split, row.location)

    def shards(self) -> Sequence[Shard]:
        """Return the Parquet files below the root."""
        paths = shards(self.root, self.declaration.images, ".parquet", "Parquet file")
        splits = splits_of(path.relative_to(self.root) for path in paths)
        return [Shard(self.root / path, split) for path, split in splits.items()]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _check_image(field: pa.Field, path: Path) -> None:
    kind = field.type
    if pa.types.is_struct(kind):
        index = kind.get_field_index("bytes")
        is_image = index >= 0 and _is_bytes(kind.field(index).type)
    else:
        is_image = _is_bytes(kind) or _is_text(kind)
    if not is_image:
        raise SourceError(
            f"the column {printable(field.name)} holds {printable(kind)}, not images",
            where=str(path),
            hint="an image file's bytes, with or without its path, or a path below the root; another column: "
            'columns = { image = "..." }',
        )


def _check_label(field: pa.Field, path: Path) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if not (pa.types.is_integer(kind) or _is_text(kind)):
        message = f"the column {printable(field.name)} holds {printable(kind)}, not classes"
        hint = 'integers or text; another column: columns = { class = "..." }'
        raise SourceError(message, where=str(path), hint=hint)


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


def _class_by_name(value: object, names: Names, where: str) -> str | None:
    """Return the class of a label; None for a label without a class, such as -1 in a hidden test set.

    Raises SourceError if the label is a number without a name, or a text that is not among the names.
    """
    if value is None or value == "" or (isinstance(value, int) and value < 0):
        return None
    if isinstance(value, int) and value < len(names):
        return names[value] or None
    if value in names:
        return str(value)
    message = f"the label {printable(value)} is not among the {len(names):,} that have names"
    raise SourceError(message, where=where, hint="save it again with the names of all labels")


def _file_name(path: str | None) -> str | None:
    """Return the name of a file without its extension: folders above it differ from copy to copy."""
    if not path or len(path) > LONGEST_NAME:
        return None
    return without_extension(PurePosixPath(path).name)


DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}


@register_layout("csv")
class CsvTable(ImageFiles):
    """Layout with the path of an image in each row; the id is the path without the extension."""

    about: ClassVar[str] = "a .csv or .tsv of image and class[, split]"

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images that the table lists and that are there."""
        path = self._table()
        rows = csv_rows(path, delimiter=DELIMITERS[path.suffix.lower()], error=SourceError)
        head = next(rows, [])
        columns = table_columns(head, self.declaration.columns, path)
        columns_at = [None if name is None else head.index(name) for name in columns]
        names = class_names(self.root)
        for number, cells in enumerate(rows, 2):
            if len(cells) != len(head):
                message = f"{len(head)} columns expected, found {len(cells)}"
                raise SourceError(message, where=f"{path}, row {number}")
            name, label, row_split = (ALL if at is None else cells[at].strip() for at in columns_at)
            name = name.replace("\\", "/")  # as Windows writes paths
            class_id = class_of(label, names, f"{path}, row {number}")
            image_id = without_extension(name)
            if image_id is None or class_id is None or not path_below(self.root, name).is_file():
                note(printable(name))
            else:
                yield Image(image_id, class_id, row_split, (name,))

    def _table(self) -> Path:
        if self.declaration.images is not None:
            path = path_below(self.root, self.declaration.images)
            if path.suffix.lower() not in DELIMITERS:
                raise SourceError("is not a .csv or .tsv", where=str(path), hint="see images in dataset.toml")
            return path
        names = sorted(entry.name for entry in entries(self.root, self.root) if entry.name.endswith(".csv"))
        if len(names) != 1:
            files = f"{len(names)} .csv files: {', '.join(names[:3])}" if names else "no .csv file"
            hint = 'name it in dataset.toml, as in images = "labels.csv"'
            raise SourceError(f"{files} in the root", where=str(self.root), hint=hint)
        return self.root / names[0]
