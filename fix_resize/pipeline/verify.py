"""Check an output: every picture against its hash, the table against its fingerprint, or against another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from fix_resize.pipeline.output import Output, open_output
from fix_resize.pipeline.png import decode_png
from fix_resize.pipeline.tables import IDENTITY, IMAGE_SCHEMA, IMAGES, MISSING, QUARANTINE, Fingerprint
from wordnet_splits.digests import digest_pixels
from wordnet_splits.errors import DataError
from wordnet_splits.manifest.parquet import read_table
from wordnet_splits.progress import Progress, Silent

ROWS: Final = 8192
"""Rows of the table held at a time."""

_TABLES: Final = (IMAGES, QUARANTINE, MISSING)
_COMPARED: Final = [name for name in IDENTITY if name not in ("source", "image_id")]


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it must be.

    ``kind``: altered, unreadable or absent (a picture), unlisted (a file that no row names), table (its rows
    have another fingerprint), or, against another table, different, only-here, only-there.
    """

    kind: str
    image_id: str | None
    detail: str

    def as_dict(self) -> dict[str, str | None]:
        """Return the problem as ``--json`` prints it."""
        return dict(vars(self))


@dataclass
class Verified:
    """What was found: ``images`` pictures looked at, and what is wrong with them."""

    folder: Path
    images: int
    fingerprint: str
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything is as it was built."""
        return not self.problems


def verify(folder: Path, *, against: Path | None = None, progress: Progress | None = None) -> Verified:
    """Recompute the hash of every picture of an output and compare it with the table.

    Parameters
    ----------
    against : another table of images, or another output, that must hold the same.

    Raises
    ------
    OutputError, DataError : the folder is no finished output, or a table cannot be read.
    """
    output = open_output(folder)
    fingerprint = Fingerprint()
    result = Verified(folder, 0, "")
    last = ""
    files = len(_TABLES)
    with (progress or Silent()).task(f"verifying {folder.name}", output.about["images"]) as task:
        for table in _batches(folder / IMAGES):
            fingerprint.add(table)
            for file, rows in groupby(table.to_pylist(), key=lambda row: str(row["file"])):
                result.problems += _check(output, file, {row["row"]: row for row in rows})
                files, last = files + (file != last), file
            result.images += len(table)
            task.advance(len(table))
    result.fingerprint = fingerprint.hexdigest()
    if result.fingerprint != output.fingerprint:
        detail = f"{IMAGES} has fingerprint {result.fingerprint}, not {output.fingerprint}"
        result.problems.append(Problem("table", None, detail))
    result.problems += _unlisted(folder, files)
    if against is not None:
        result.problems += compare(folder / IMAGES, against)
    return result


def _batches(path: Path) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS, columns=IMAGE_SCHEMA.names):
                yield pa.Table.from_batches([batch])
    except (OSError, pa.ArrowException) as error:
        hint = "build it again; finished shards are kept"
        raise DataError("the table of images cannot be read", where=str(path), hint=hint) from error


def _check(output: Output, file: str, rows: Mapping[int, Mapping[str, Any]]) -> Iterator[Problem]:
    """Compare the pictures of one file with the rows that name it, which are given by their place in it."""
    left = dict(rows)
    try:
        for place, (columns, data) in enumerate(output.pictures(file)):
            row = left.pop(place, None)
            if row is None:
                continue  # of the batch before or after this one
            moved = [name for name, value in columns.items() if row[name] != value]
            try:
                changed = digest_pixels(decode_png(data, file)) != row["pixel_sha256"]
            except DataError as error:
                yield Problem("unreadable", row["image_id"], str(error))
                continue
            if changed:
                yield Problem("altered", row["image_id"], f"{file}: its pixels are not those that were built")
            elif moved:
                yield Problem("altered", row["image_id"], f"{file}: its {moved[0]} is not that of the table")
    except FileNotFoundError:
        pass
    except (OSError, pa.ArrowException) as error:
        for row in left.values():
            yield Problem("unreadable", row["image_id"], f"{file}: {str(error).splitlines()[0]}")
        return
    for row in left.values():
        yield Problem("absent", row["image_id"], f"{file}: it is not there")


def _unlisted(folder: Path, known: int) -> Iterator[Problem]:
    """Find pictures that no row names; only if there are more files than are ``known`` is it asked which."""
    if sum(1 for _ in _files(folder)) <= known:
        return
    listed = {*_TABLES, *read_table(folder / IMAGES, ["file"])["file"].to_pylist()}
    for file in _files(folder):
        if file not in listed:
            yield Problem("unlisted", None, f"{file}: no row names it")


def _files(folder: Path) -> Iterator[str]:
    """Yield the files that a reader of the folder would take for pictures or tables of them."""
    for place, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            if name.endswith((".png", ".parquet")) and not name.startswith("."):
                yield (Path(place) / name).relative_to(folder).as_posix()


def compare(here: Path, there: Path) -> list[Problem]:
    """Compare two tables of images row by row: the same images, and the same pixels of each.

    Raises
    ------
    DataError : one of them cannot be read.
    """
    ours, theirs = (_keyed(path / IMAGES if path.is_dir() else path) for path in (here, there))
    problems = [
        Problem("only-here", image_id, f"{source}: not in {there}")
        for source, image_id in sorted(ours.keys() - theirs.keys())
    ]
    problems += [
        Problem("only-there", image_id, f"{source}: in {there}")
        for source, image_id in sorted(theirs.keys() - ours.keys())
    ]
    for key in sorted(ours.keys() & theirs.keys()):
        differs = [n for n, a, b in zip(_COMPARED, ours[key], theirs[key], strict=True) if a != b]
        if differs:
            problems.append(
                Problem("different", key[1], f"{key[0]}: another {', '.join(differs)} in {there}")
            )
    return problems


def _keyed(path: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    table = read_table(path, ["source", "image_id", *_COMPARED])
    columns = [table[name].to_pylist() for name in table.column_names]
    return {(source, image_id): tuple(rest) for source, image_id, *rest in zip(*columns, strict=True)}
