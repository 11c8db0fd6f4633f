"""Tables of pairs of similar images, and of single images, with a person's verdicts.

A pair's ``verdict`` is ``same``, ``different`` or ``unsure``; a row without a second image is a note on one
image, ``leave out`` or ``keep``; ``reviewer`` has the person's initials. ``distance`` is the number of
different bits in the images' hashes, empty if not computed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.tabular import csv_cell, from_csv_cell
from wordnet_splits.base.text_formats import csv_rows

COLUMNS: Final = (
    *("source_a", "split_a", "class_id_a", "image_id_a"),
    *("source_b", "split_b", "class_id_b", "image_id_b"),
    *("distance", "verdict", "reviewer", "note"),
)
BITS: Final = 128
"""Bits of a perceptual hash, the greatest distance of two images."""
PAIR_VERDICTS: Final = ("", "same", "different", "unsure")
NOTE_VERDICTS: Final = ("leave out", "keep")
NO_DUPLICATE: Final = frozenset({"different", "keep"})
"""Verdicts that exclude a row from the duplicates; rows without a verdict are included."""

PairRow = dict[str, str]
PairKey = tuple[str, ...]


def pair_key(row: Mapping[str, str]) -> PairKey:
    """Return the sources and ids of a row's images."""
    return tuple(row[f"{name}_{side}"] for side in "ab" for name in ("source", "image_id"))


def read_pairs(path: Path) -> list[PairRow]:
    """Return the rows of a table of pairs.

    Raises DataError if the file is absent or not such a table, a verdict is unknown or without a reviewer,
    or a distance is not a number of bits.
    """
    rows: list[PairRow] = []
    header: Sequence[str] | None = None
    for number, cells in enumerate(csv_rows(path, delimiter="\t"), 1):
        where = f"{path}, line {number}"
        if header is None:
            if tuple(cells) != COLUMNS:
                raise DataError(
                    "must have the first line of duplicates.tsv",
                    where=str(path),
                    hint="columns " + ", ".join(COLUMNS),
                )
            header = cells
            continue
        if len(cells) != len(COLUMNS):
            raise DataError(f"has {len(cells)} columns, not {len(COLUMNS)}", where=where)
        row = dict(zip(COLUMNS, map(from_csv_cell, cells), strict=True))
        allowed = PAIR_VERDICTS if row["image_id_b"] else NOTE_VERDICTS
        if row["verdict"] not in allowed:
            listed = ", ".join(filter(None, allowed))
            raise DataError(f"the verdict {row['verdict']!r} is not one of {listed}", where=where)
        distance = row["distance"]
        if distance and not (
            distance.isascii() and distance.isdecimal() and len(distance) < 4 and int(distance) <= BITS
        ):
            raise DataError(
                f"the distance {distance!r} is not a whole number of bits from 0 to {BITS}",
                where=where,
                hint="leave it empty where it is unknown",
            )
        if row["verdict"] and not row["reviewer"].strip():
            raise DataError("a verdict has no reviewer", where=where, hint="add the reviewer's initials")
        rows.append(row)
    if header is None:
        raise DataError("is empty", where=str(path))
    return rows


def write_pairs(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write rows as tab-separated text, in one step. Raises OutputError."""
    write_text(path, tsv_line(COLUMNS) + "".join(tsv_line([row[name] for name in COLUMNS]) for row in rows))


def tsv_line(cells: Iterable[str]) -> str:
    """Return cells as a line of tab-separated text."""
    line = io.StringIO()
    csv.writer(line, delimiter="\t", lineterminator="\n").writerow(map(csv_cell, cells))
    return line.getvalue()


def duplicate_images(rows: Iterable[Mapping[str, str]]) -> set[tuple[str, str]]:
    """Return (source, image_id) of every image in a row that counts."""
    counting = [row for row in rows if row["verdict"] not in NO_DUPLICATE]
    return {
        (row[f"source_{s}"], row[f"image_id_{s}"]) for row in counting for s in "ab" if row[f"image_id_{s}"]
    }
