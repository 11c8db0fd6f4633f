"""openset-imagenet's protocols: ``<split>.csv`` without a head, ``path,label``.

Labels from 0 are known classes; -1 is a negative (known unknown), which training may use; -2 an unknown of
the tests. So the groups of a split share a file, and come back as what their labels tell apart.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.text_formats import csv_rows
from wordnet_splits.exchange.entries import ImportTask, ListEntry, files_of, label_of
from wordnet_splits.exchange.outgoing import NEGATIVE, UNKNOWN, Export
from wordnet_splits.manifest.tables import SPLITS

GROUPS: Final = {NEGATIVE: ("negative", "external"), UNKNOWN: ("unknown", "far")}
"""Group and role of what a list of unknown origin labels so; others are ``known``, and ID."""


class OpensetImagenet:
    """The protocols' CSV files."""

    about = "openset-imagenet CSV: path,label; -1 negative, -2 unknown; one file a split"
    pictures = False

    def write(self, export: Export, folder: Path) -> None:
        """Write ``<split>.csv``."""
        texts = {split: io.StringIO() for split, _ in export.manifest.parts}
        for (split, _), table in export.tables():
            rows = csv.writer(texts[split], lineterminator="\n")
            for row in export.rows(table):
                rows.writerow((export.path(row), export.label(row)))
        for split, text in texts.items():
            write_text(folder / f"{split}.csv", text.getvalue())

    def read(self, reading: ImportTask) -> Iterator[ListEntry]:
        """Yield the lines of one protocol, or of every ``*.csv`` of a folder."""
        for file in files_of(reading.path, ".csv"):
            split = file.stem.rpartition("_")[2]
            split = split if split in SPLITS else reading.split
            for number, cells in enumerate(csv_rows(file), 1):
                where = f"{file}, line {number}"
                if len(cells) != 2:
                    raise DataError(f"{len(cells)} cells", where=where, hint="a line is PATH,LABEL")
                label = label_of(cells[1].strip(), where)
                group, role = GROUPS.get(label, ("known", "id"))
                yield ListEntry(split, group, cells[0].strip(), label, role=role)
