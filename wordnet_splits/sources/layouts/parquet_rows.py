"""Parquet files as the ``datasets`` library saves them: a column of images, one of labels.

The split of a file is in its name or its folder's (``train-00000-of-00002.parquet``, ``test/0000.parquet``),
unless there is a column of splits. An id is ``<split>/<class>/<file name>`` where no two rows of a
class share a name, else ``<split>/<position>``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar

from wordnet_splits.base.untrusted import LONGEST_NAME
from wordnet_splits.sources.layouts.labelled_rows import LabelledRows, Shard, Table
from wordnet_splits.sources.layouts.layout import Image, Note, without_extension
from wordnet_splits.sources.layouts.parquet_files import ParquetTable
from wordnet_splits.sources.layouts.shards import shards, split_of


class ParquetRows(LabelledRows):
    """One picture a row of Parquet files."""

    about: ClassVar[str] = "Parquet files with a column of images and one of labels"

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every row that has an image and a class."""
        rows = [(row, _name(row.path)) for row in self.rows(note)]
        names = {(row.split, row.class_id, name) for row, name in rows}
        has_names = len(names) == len(rows) and all(name for _, name in rows)
        for row, name in rows:
            last = f"{row.class_id}/{name}" if has_names else str(row.position)
            yield Image(f"{row.split}/{last}", row.class_id, row.split, row.location)

    def shards(self) -> Sequence[Shard]:
        """Return the Parquet files below the root."""
        paths = shards(self.root, self.declaration.images, ".parquet", "Parquet file")
        return [Shard(path, split_of(path.relative_to(self.root))) for path in paths]

    def open_table(self, path: Path) -> Table:
        """Open a file."""
        return ParquetTable(path)


def _name(path: str | None) -> str | None:
    """Return the name of a file without its extension: folders above it differ from copy to copy."""
    if not path or len(path) > LONGEST_NAME:
        return None
    return without_extension(PurePosixPath(path).name)
