"""OpenOOD's image lists: ``path label`` lines, one file a split and group, ``<split>_<group>.txt``.

The path goes to the first space, as in OpenOOD's ``ImglistDataset``; the label is -1 for what is not ID. What
follows is a whole number, or a JSON object that is not read here (the MOS lists).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.exchange.entries import (
    LARGEST,
    ImportTask,
    ListEntry,
    files_of,
    label_of,
    split_and_group,
)
from wordnet_splits.exchange.outgoing import Export


class OpenOOD:
    """OpenOOD's image lists."""

    about = "OpenOOD image lists: lines of path and label, one file a split and group"
    pictures = False

    def write(self, export: Export, folder: Path) -> None:
        """Write ``<split>_<group>.txt`` for each part."""
        for (split, group), table in export.tables():
            lines = (f"{export.path(row)} {export.label(row)}\n" for row in export.rows(table))
            write_text(folder / f"{split}_{group}.txt", "".join(lines))

    def read(self, reading: ImportTask) -> Iterator[ListEntry]:
        """Yield the lines of one list, or of every ``*.txt`` of a folder."""
        for file in files_of(reading.path, ".txt"):
            split, group = split_and_group(file.stem, reading.split)
            for number, line in enumerate(read_text(file, largest=LARGEST).splitlines(), 1):
                path, space, label = line.strip().partition(" ")
                where = f"{file}, line {number}"
                if path and not space:
                    raise DataError("no label", where=where, hint="a line is PATH LABEL")
                if path:
                    yield ListEntry(split, group, path, label_of(label.strip(), where))
