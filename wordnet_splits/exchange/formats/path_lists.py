"""Lists of paths and labels: OpenOOD's image lists, and the protocols of openset-imagenet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.text_formats import csv_rows
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.manifest import Part
from wordnet_splits.benchmark.manifest.tables import SPLITS
from wordnet_splits.exchange.exporter import ExportTask, ImageRow
from wordnet_splits.exchange.formats import (
    MAX_LIST_BYTES,
    ExchangeFormat,
    ImportTask,
    ListEntry,
    list_files,
    parse_label,
    register_format,
    split_and_group,
)

IMAGES: Final = "images"
"""Folder of the images of an export with ``links``."""
NEGATIVE, UNKNOWN = -1, -2
LABELS: Final = {"external": NEGATIVE, "near": UNKNOWN, "far": UNKNOWN}
"""Role -> label in openset-imagenet's lists; other images have their label of the benchmark."""
GROUPS: Final = {NEGATIVE: ("negative", "external"), UNKNOWN: ("unknown", "far")}
"""Label -> group and role in openset-imagenet's lists; other labels are group ``known``, role ID."""


@register_format("openood")
class OpenOOD(ExchangeFormat):
    """OpenOOD's image lists: lines ``path label`` in ``<split>_<group>.txt``.

    The path ends at the first space, as in OpenOOD's ``ImglistDataset``; the label is -1 for images that are
    not ID. Lists with a JSON object in place of the label (the MOS lists) are not read.
    """

    about = "OpenOOD image lists: lines of path and label, one file a split and group"
    paths = True

    def write(self, task: ExportTask, folder: Path) -> None:
        """Write ``<split>_<group>.txt`` for each part."""
        for (split, group), table in task.tables():
            listed = _listed(task, (split, group), table, folder)
            lines = (f"{path} {row['label']}\n" for path, row in listed)
            write_text(folder / f"{split}_{group}.txt", "".join(lines))

    def read(self, task: ImportTask) -> Iterator[ListEntry]:
        """Yield the lines of a list, or of every ``*.txt`` of a folder."""
        for file in list_files(task.path, ".txt"):
            split, group = split_and_group(file.stem, task.split)
            for number, line in enumerate(read_text(file, largest=MAX_LIST_BYTES).splitlines(), 1):
                path, space, label = line.strip().partition(" ")
                where = f"{file}, line {number}"
                if path and not space:
                    raise DataError("a line must be PATH LABEL, got no label", where=where)
                if path:
                    yield ListEntry(split, group, path, parse_label(label.strip(), where))


@register_format("openset-imagenet")
class OpensetImagenet(ExchangeFormat):
    """The protocols of openset-imagenet: ``<split>.csv`` without a header, ``path,label``.

    Labels from 0 are known classes, -1 are negatives (known unknowns, which training may use), -2 unknowns.
    The groups of a split share a file, so that reading separates them by label alone.
    """

    about = "openset-imagenet CSV: path,label; -1 negative, -2 unknown; one file a split"
    paths = True

    def write(self, task: ExportTask, folder: Path) -> None:
        """Write ``<split>.csv``."""
        texts = {split: io.StringIO() for split, _ in task.manifest.parts}
        for (split, group), table in task.tables():
            rows = csv.writer(texts[split], lineterminator="\n")
            listed = _listed(task, (split, group), table, folder)
            rows.writerows((path, LABELS.get(row["role"], row["label"])) for path, row in listed)
        for split, text in texts.items():
            write_text(folder / f"{split}.csv", text.getvalue())

    def read(self, task: ImportTask) -> Iterator[ListEntry]:
        """Yield the lines of a protocol, or of every ``*.csv`` of a folder."""
        for file in list_files(task.path, ".csv"):
            split = file.stem.rpartition("_")[2]
            split = split if split in SPLITS else task.split
            for number, cells in enumerate(csv_rows(file), 1):
                where = f"{file}, line {number}"
                if len(cells) != 2:
                    raise DataError(f"a line must be PATH,LABEL, got {len(cells)} cells", where=where)
                label = parse_label(cells[1].strip(), where)
                group, role = GROUPS.get(label, ("known", "id"))
                yield ListEntry(split, group, cells[0].strip(), label, role=role)


def _listed(task: ExportTask, part: Part, table: pa.Table, folder: Path) -> Iterator[tuple[str, ImageRow]]:
    """Yield path and row of each image; with ``task.links`` also write the image below ``images/``."""
    if task.links:
        for image in task.read_images(part, table, links=True):
            path = task.path(image.row, image.extension)
            image.write(folder / IMAGES / path, copies=task.copies)
            yield path, image.row
        return
    for row in task.rows(table):
        try:
            path = task.path(row)
        except SourceError as error:
            task.leave_out(row, error)
            continue
        yield path, row
