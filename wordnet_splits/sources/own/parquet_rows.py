"""Parquet files as the ``datasets`` library saves them: a column of images, one of labels.

Which split a file holds its name or its folder says (``train-00000-of-00002.parquet``,
``test/0000.parquet``), unless a column does. An id is ``<split>/<class>/<file name>`` where no two rows of a
class share a name, else ``<split>/<position>``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.parquet import open_parquet, parquet_errors
from wordnet_splits.base.untrusted import LONGEST_NAME
from wordnet_splits.sources.own.layout import Image, without_extension
from wordnet_splits.sources.own.rows import Rows, Shard, Table
from wordnet_splits.sources.own.shards import shards, split_of


class ParquetRows(Rows):
    """A picture a row of Parquet files."""

    about: ClassVar[str] = "Parquet files with a column of images and one of labels"

    def images(self, note: Callable[[str], None]) -> Iterator[Image]:
        """Yield every row that has an image and a class."""
        rows = [(row, _name(row.path)) for row in self.rows(note)]
        names = {(row.split, row.class_id, name) for row, name in rows}
        named = len(names) == len(rows) and all(name for _, name in rows)
        for row, name in rows:
            last = f"{row.class_id}/{name}" if named else str(row.position)
            yield Image(f"{row.split}/{last}", row.class_id, row.split, row.place)

    def shards(self) -> Sequence[Shard]:
        """Return the Parquet files below the root."""
        found = shards(self.root, self.declared.images, ".parquet", "Parquet file")
        return [Shard(path, split_of(path.relative_to(self.root))) for path in found]

    def opened(self, path: Path) -> Table:
        """Return a file opened."""
        return ParquetTable(path)


class ParquetTable:
    """A Parquet file; its groups are its row groups."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: pq.ParquetFile = open_parquet(path, error=SourceError)
        self.schema: pa.Schema = self._file.schema_arrow
        self.groups: int = self._file.num_row_groups

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return some columns of a row group. Raises SourceError."""
        with parquet_errors(self._path, error=SourceError):
            table = self._file.read_row_group(group, list(columns))
            table.validate(full=True)
        return table


def _name(path: str | None) -> str | None:
    """Return the name of a file without its extension: folders above it differ from copy to copy."""
    if not path or len(path) > LONGEST_NAME:
        return None
    return without_extension(PurePosixPath(path).name)
