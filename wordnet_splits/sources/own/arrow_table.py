"""An Arrow file of the ``datasets`` library: batches of rows, mapped into memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from wordnet_splits.base.errors import SourceError, check_memory
from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import MAX_ROWS
from wordnet_splits.base.untrusted import GiB, check_file

LARGEST: Final = 1024 * GiB
"""Bytes; a file is mapped, not read."""


class ArrowTable:
    """A file of Arrow's stream format; its groups are its record batches.

    Mapped batches lie in the file, so that all of them together are no larger: one that is, is compressed,
    which ``datasets`` never writes, and might expand to anything.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        size = check_file(path, largest=LARGEST, error=SourceError)
        self._batches: list[pa.RecordBatch] = []
        try:
            stream = pa.ipc.open_stream(pa.memory_map(os.fsencode(path)))
            self.schema: pa.Schema = stream.schema
            rows = held = 0
            for batch in stream:
                rows, held = rows + batch.num_rows, held + batch.get_total_buffer_size()
                if rows > MAX_ROWS or held > size:
                    raise SourceError(f"announces {rows:,} rows, more than it can hold", where=str(path))
                self._batches.append(batch)
        except (pa.ArrowException, OSError) as cause:
            raise self._unreadable(cause) from None
        self.groups: int = len(self._batches)

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return the whole columns that some are of, not copied. Raises SourceError."""
        names = [column if column in self.schema.names else column.split(".")[0] for column in columns]
        try:
            batch = self._batches[group].select(list(dict.fromkeys(names)))
            batch.validate(full=True)  # its offsets are the file's word until they are compared
        except (pa.ArrowException, KeyError) as cause:
            raise self._unreadable(cause) from None
        return pa.Table.from_batches([batch])

    def _unreadable(self, cause: Exception) -> SourceError:
        check_memory(cause, str(self._path))
        what = printable(str(cause).split("\n")[0])
        return SourceError(
            f"is not an Arrow file that can be read: {what}", where=str(self._path), hint="save it again"
        )
