"""Verify an output: compare images, tables and description with each other, or with another output."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fix_resize.output import IMAGES, OUTPUT, Output, decode_png, open_images, open_output
from fix_resize.pipeline import writing
from fix_resize.pipeline.selection import ORDER, fingerprint_of_images
from wordnet_splits.base.digests import digest_pixels
from wordnet_splits.base.errors import DataError, Problem
from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import parquet_file, read_table
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular

ROWS: Final = 8192
"""Rows of the table in memory at a time."""

_COMPARED_COLUMNS: Final = [name for name in writing.IDENTITY if name not in ("source", "image_id")]


@dataclass(frozen=True)
class Verification(Tabular):
    """The result of verifying an output; its rows are the problems.

    The ``kind`` of a problem is altered, unreadable or absent (an image), unlisted (a file or a row that no
    table mentions), table (a table was altered), description (``output.json`` disagrees with the tables), or,
    compared with another table, different, only-here or only-there.

    Attributes
    ----------
    folder : the output folder.
    images : number of verified images.
    fingerprint : fingerprint of the table of images.
    problems : everything that was altered or lost.
    """

    folder: Path
    images: int
    fingerprint: str
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was altered or lost."""
        return not self.problems

    def rows(self) -> list[dict[str, str | None]]:
        """Return a row per problem."""
        return [problem.as_dict() for problem in self.problems]


def verify(
    folder: Path | str, *, against: Path | str | None = None, progress: Progress | None = None
) -> Verification:
    """Compare every image, table and number of an output with its checksums.

    Parameters
    ----------
    folder : output folder of `fix_resize.build`.
    against : another table of images, or another output, that must have the same images.

    Raises
    ------
    OutputError : the folder is not a finished output.
    DataError : ``output.json`` was altered, or a table cannot be read.
    """
    folder = Path(folder)
    output = open_output(folder)
    problems = list(_altered_tables(output))
    fingerprint, images = writing.Fingerprint(), 0
    with (progress or Silent()).task(f"verifying {folder.name}", output.about.images) as task:
        for file, rows in groupby(_rows(folder, fingerprint), key=lambda row: str(row["file"])):
            rows_of_file = list(rows)
            problems += list(_check_images(output, file, rows_of_file)) or _altered_shard(output, file)
            images += len(rows_of_file)
            task.advance(len(rows_of_file))
    digest = fingerprint.hexdigest()
    problems += [*_check_description(output, digest), *_unlisted(output)]
    if against is not None:
        problems += compare(folder / IMAGES, Path(against))
    return Verification(folder, images, digest, tuple(problems))


def _rows(folder: Path, fingerprint: writing.Fingerprint) -> Iterator[dict[str, Any]]:
    with open_images(folder) as file:
        for batch in file.iter_batches(ROWS):
            fingerprint.add(pa.Table.from_batches([batch]))
            yield from batch.to_pylist()


def _altered_tables(output: Output) -> Iterator[Problem]:
    listed = set(output.table["file"].unique().to_pylist())
    for file in sorted(output.about.tables.keys() - listed - set(writing.TABLES)):
        yield _problem(output, "table", f"{printable(file)}: no row refers to it")
    for file in writing.TABLES:
        if (output.folder / file).exists():
            with parquet_file(output.folder / file):
                pass  # raises before gigabytes that are not a table are hashed
        digest = writing.checksum(output.folder, [file])
        if digest is None:
            yield _problem(output, "table", f"{file}: it is missing")
        elif digest != output.about.tables.get(file):
            yield _problem(output, "table", f"{file}: it was altered")


def _altered_shard(output: Output, file: str) -> Iterator[Problem]:
    """Find alterations outside the images: renamed images, bytes between them, unrecorded files."""
    digest = writing.checksum(output.folder, [file]) if output.about.format == "parquet" else None
    if digest != output.about.tables.get(file):
        yield _problem(output, "table", f"{printable(file)}: it was altered")


def _read_rows(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a table of images that were left out. Raises DataError if it has other columns."""
    table = read_table(path, schema.names)
    if table.schema.types != schema.types:
        raise DataError("does not have the columns of images that were left out", where=str(path))
    return table


def _check_description(output: Output, fingerprint: str) -> Iterator[Problem]:
    """Compare ``output.json`` with the tables."""
    about = output.about
    left_out = {
        file: _read_rows(output.folder / file, schema).select(ORDER)
        for file, schema in (
            (writing.QUARANTINE, writing.QUARANTINE_SCHEMA),
            (writing.MISSING, writing.MISSING_SCHEMA),
        )
        if (output.folder / file).exists()
    }
    images = read_table(output.folder / IMAGES, ORDER)
    everything = pa.concat_tables([images, *left_out.values()])
    short = sum(int(row["wanted"]) - int(row["taken"]) for row in about.shortfalls)
    recomputed: dict[str, object] = {
        "images": len(images),
        **{Path(file).stem.replace("quarantine", "quarantined"): len(t) for file, t in left_out.items()},
        "complete": not short and not len(left_out.get(writing.MISSING, ())),
        "selection": fingerprint_of_images(everything.sort_by([(name, "ascending") for name in ORDER])),
        "fingerprint": fingerprint,
    }
    for name, value in recomputed.items():
        if getattr(about, name) != value:
            detail = f"{OUTPUT} has {name} {getattr(about, name)}, the tables {value}"
            yield _problem(output, "description", detail)


def _check_images(output: Output, file: str, rows: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    """Compare the images in a file with its rows in the table."""
    unmatched: dict[int, dict[str, Any]] = {}
    for row in rows:
        if row["row"] in unmatched:
            yield _row_problem(row, "altered", f"{file}: another row of the table refers to the same image")
        else:
            unmatched[row["row"]] = row
    try:
        for number, (columns, data) in enumerate(output.stored_images(file)):
            matching_row = unmatched.pop(number, None)
            if matching_row is None:
                yield _problem(output, "unlisted", f"{file}: no row refers to its image {number}")
            elif difference := _difference(output, matching_row, columns, data):
                yield _row_problem(matching_row, *difference)
    except DataError as error:
        kind = "unreadable" if (output.folder / file).exists() else "absent"
        yield from (_row_problem(row, kind, f"{file}: {error.what}") for row in unmatched.values())
        return
    for row in unmatched.values():
        yield _row_problem(row, "absent", f"{file}: it is missing")


def _difference(
    output: Output, row: dict[str, Any], columns: Mapping[str, object], data: bytes
) -> tuple[str, str] | None:
    """Return kind and detail of the difference between an image and its row, if any."""
    file = str(row["file"])
    try:
        pixels = decode_png(data, file)
    except DataError as error:
        return "unreadable", f"{file}: {error.what}"
    if digest_pixels(pixels) != row["pixel_sha256"]:
        return "altered", f"{file}: its pixels were altered"
    height, width, _ = pixels.shape
    actual = {"width": width, "height": height, "mode": "RGB", "spec": output.spec_id, **columns}
    differing = [name for name, value in actual.items() if name != "path" and row[name] != value]
    return ("altered", f"{file}: its {differing[0]} differs from the table") if differing else None


def _unlisted(output: Output) -> Iterator[Problem]:
    """Find visible files that no table mentions."""
    listed = {
        OUTPUT,
        *writing.TABLES,
        *read_table(output.folder / IMAGES, ["file"])["file"].unique().to_pylist(),
    }
    for folder, subfolders, names in os.walk(output.folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            file = (Path(folder) / name).relative_to(output.folder).as_posix()
            if file not in listed and not name.startswith("."):
                yield _problem(output, "unlisted", f"{printable(file)}: no row refers to it")


def _problem(output: Output, kind: str, detail: str) -> Problem:
    return Problem(kind, output.about.name, None, None, detail)


def _row_problem(row: Mapping[str, Any], kind: str, detail: str) -> Problem:
    return Problem(kind, row["source"], row["class_id"], row["image_id"], detail)


def compare(here: Path, there: Path) -> list[Problem]:
    """Compare two tables of images, or outputs: the same images, and the same pixels of each.

    Raises
    ------
    DataError : a table cannot be read.
    """
    rows_here, rows_there = (_rows_by_image(p / IMAGES if p.is_dir() else p) for p in (here, there))
    problems = [
        Problem(kind, source, None, image_id, f"{where} {there}")
        for kind, where, keys in (
            ("only-here", "not in", rows_here.keys() - rows_there.keys()),
            ("only-there", "in", rows_there.keys() - rows_here.keys()),
        )
        for source, image_id in sorted(keys)
    ]
    for key in sorted(rows_here.keys() & rows_there.keys()):
        pairs = zip(_COMPARED_COLUMNS, rows_here[key], rows_there[key], strict=True)
        if differing := [name for name, a, b in pairs if a != b]:
            detail = f"another {', '.join(differing)} in {there}"
            problems.append(Problem("different", key[0], None, key[1], detail))
    return problems


def _rows_by_image(path: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    table = read_table(path, ["source", "image_id", *_COMPARED_COLUMNS])
    columns = [table[name].to_pylist() for name in table.column_names]
    return {(source, image_id): tuple(rest) for source, image_id, *rest in zip(*columns, strict=True)}
