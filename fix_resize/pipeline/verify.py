"""Check an output: pictures, tables and figures against each other, or against another output."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fix_resize.pipeline import tables
from fix_resize.pipeline.formats import checksum, decode_png, get_format
from fix_resize.pipeline.output import Output, open_images, open_output
from fix_resize.pipeline.selection import ORDER, fingerprint_of_images
from wordnet_splits.base.digests import digest_pixels
from wordnet_splits.base.errors import DataError, Problem
from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import parquet_file, read_table
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular

ROWS: Final = 8192
"""Rows of the table held at a time."""

_COMPARED: Final = [name for name in tables.IDENTITY if name not in ("source", "image_id")]


@dataclass(frozen=True)
class Verified(Tabular):
    """What was found: how many pictures were checked, the table's fingerprint, and the problems as rows.

    A problem's ``kind`` is altered, unreadable or absent (a picture), unlisted (a file, or a row of one, that
    no table names), table (a table is not as it was written), description (``output.json`` says what the
    tables do not), or, against another table, different, only-here, only-there.
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
        """Return a row for each problem."""
        return [problem.as_dict() for problem in self.problems]


def verify(
    folder: Path | str, *, against: Path | str | None = None, progress: Progress | None = None
) -> Verified:
    """Compare every picture, table and figure of an output with what was built.

    Parameters
    ----------
    folder : what `fix_resize.build` made.
    against : another table of images, or another output, that must hold the same.

    Raises
    ------
    OutputError : the folder is not a finished output.
    DataError : ``output.json`` or a table cannot be read, or the former is not as it was written.
    """
    folder = Path(folder)
    output = open_output(folder)
    problems = list(_altered_tables(output))
    fingerprint, images = tables.Fingerprint(), 0
    with (progress or Silent()).task(f"verifying {folder.name}", output.about.images) as task:
        for file, rows in groupby(_rows(folder, fingerprint), key=lambda row: str(row["file"])):
            pictures = list(rows)
            problems += list(_check(output, file, pictures)) or _altered_shard(output, file)
            images += len(pictures)
            task.advance(len(pictures))
    found = fingerprint.hexdigest()
    problems += [*_described(output, found), *_unlisted(output)]
    if against is not None:
        problems += compare(folder / tables.IMAGES, Path(against))
    return Verified(folder, images, found, tuple(problems))


def _rows(folder: Path, fingerprint: tables.Fingerprint) -> Iterator[dict[str, Any]]:
    with open_images(folder) as file:
        for batch in file.iter_batches(ROWS):
            fingerprint.add(pa.Table.from_batches([batch]))
            yield from batch.to_pylist()


def _altered_tables(output: Output) -> Iterator[Problem]:
    listed = set(output.table["file"].unique().to_pylist())
    for file in sorted(output.about.tables.keys() - listed - set(tables.TABLES)):
        yield _problem(output, "table", f"{printable(file)}: no row names it")
    for file in tables.TABLES:
        if (output.folder / file).exists():
            with parquet_file(output.folder / file):
                pass  # gigabytes that are not a table are not worth hashing
        found = checksum(output.folder, [file])
        if found is None:
            yield _problem(output, "table", f"{file}: it is missing")
        elif found != output.about.tables.get(file):
            yield _problem(output, "table", f"{file}: it was altered")


def _altered_shard(output: Output, file: str) -> Iterator[Problem]:
    """Find what no picture shows: another name of one, a byte between them, a file nobody recorded."""
    found = checksum(output.folder, [file]) if get_format(output.about.format).tables else None
    if found != output.about.tables.get(file):
        yield _problem(output, "table", f"{printable(file)}: it was altered")


def _described(output: Output, fingerprint: str) -> Iterator[Problem]:
    """Recompute what ``output.json`` says of the tables."""
    about = output.about
    left_out = {
        file: read_table(output.folder / file, schema.names).select(ORDER)
        for file, schema in (
            (tables.QUARANTINE, tables.QUARANTINE_SCHEMA),
            (tables.MISSING, tables.MISSING_SCHEMA),
        )
        if (output.folder / file).exists()
    }
    images = read_table(output.folder / tables.IMAGES, ORDER)
    everything = pa.concat_tables([images, *left_out.values()])
    short = sum(int(row["wanted"]) - int(row["taken"]) for row in about.shortfalls)
    found: dict[str, object] = {
        "images": len(images),
        **{Path(file).stem.replace("quarantine", "quarantined"): len(t) for file, t in left_out.items()},
        "complete": not short and not len(left_out.get(tables.MISSING, ())),
        "selection": fingerprint_of_images(everything.sort_by([(name, "ascending") for name in ORDER])),
        "fingerprint": fingerprint,
    }
    for name, value in found.items():
        if getattr(about, name) != value:
            detail = f"{tables.OUTPUT} says {name} {getattr(about, name)}, the tables {value}"
            yield _problem(output, "description", detail)


def _check(output: Output, file: str, rows: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    """Compare the pictures of one file with its rows of the table."""
    left: dict[int, dict[str, Any]] = {}
    for row in rows:
        if row["row"] in left:
            yield _of(row, "altered", f"{file}: another row of the table names the same picture")
        else:
            left[row["row"]] = row
    try:
        for place, (columns, data) in enumerate(output.pictures(file)):
            found = left.pop(place, None)
            if found is None:
                yield _problem(output, "unlisted", f"{file}: no row names its picture {place}")
            elif difference := _difference(output, found, columns, data):
                yield _of(found, *difference)
    except DataError as error:
        kind = "unreadable" if (output.folder / file).exists() else "absent"
        yield from (_of(row, kind, f"{file}: {error.what}") for row in left.values())
        return
    for row in left.values():
        yield _of(row, "absent", f"{file}: it is missing")


def _difference(
    output: Output, row: dict[str, Any], columns: Mapping[str, object], data: bytes
) -> tuple[str, str] | None:
    """Return kind and detail of how a picture differs from its row, None where it does not."""
    file = str(row["file"])
    try:
        pixels = decode_png(data, file)
    except DataError as error:
        return "unreadable", f"{file}: {error.what}"
    if digest_pixels(pixels) != row["pixel_sha256"]:
        return "altered", f"{file}: its pixels are not those that were built"
    height, width, _ = pixels.shape
    made = {"width": width, "height": height, "mode": "RGB", "spec": output.spec_id}
    other = [name for name, value in {**made, **columns}.items() if name != "path" and row[name] != value]
    return ("altered", f"{file}: its {other[0]} is not that of the table") if other else None


def _unlisted(output: Output) -> Iterator[Problem]:
    """Find files that no row names; hidden ones belong to no output."""
    listed = {
        *tables.OWN_FILES,
        *read_table(output.folder / tables.IMAGES, ["file"])["file"].unique().to_pylist(),
    }
    for place, below, names in os.walk(output.folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            file = (Path(place) / name).relative_to(output.folder).as_posix()
            if file not in listed and not name.startswith("."):
                yield _problem(output, "unlisted", f"{printable(file)}: no row names it")


def _problem(output: Output, kind: str, detail: str) -> Problem:
    return Problem(kind, output.about.name, None, None, detail)


def _of(row: Mapping[str, Any], kind: str, detail: str) -> Problem:
    return Problem(kind, row["source"], row["class_id"], row["image_id"], detail)


def compare(here: Path, there: Path) -> list[Problem]:
    """Compare two tables of images row by row: the same images, and the same pixels of each.

    Raises
    ------
    DataError : one of them cannot be read.
    """
    ours, theirs = (_keyed(path / tables.IMAGES if path.is_dir() else path) for path in (here, there))
    problems = [
        Problem(kind, source, None, image_id, f"{where} {there}")
        for kind, where, keys in (
            ("only-here", "not in", ours.keys() - theirs.keys()),
            ("only-there", "in", theirs.keys() - ours.keys()),
        )
        for source, image_id in sorted(keys)
    ]
    for key in sorted(ours.keys() & theirs.keys()):
        differs = [n for n, a, b in zip(_COMPARED, ours[key], theirs[key], strict=True) if a != b]
        if differs:
            detail = f"another {', '.join(differs)} in {there}"
            problems.append(Problem("different", key[0], None, key[1], detail))
    return problems


def _keyed(path: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    table = read_table(path, ["source", "image_id", *_COMPARED])
    columns = [table[name].to_pylist() for name in table.column_names]
    return {(source, image_id): tuple(rest) for source, image_id, *rest in zip(*columns, strict=True)}
