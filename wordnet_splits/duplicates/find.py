"""Find near-duplicates between two sets of images, in shards, and make a page to judge them.

The folder of a comparison contains ``comparison.json`` (its settings), ``*.hashes`` (the hashes of the second
set and of each shard of the first), ``pairs-1-of-4.tsv`` (the pairs of a shard) and, once all shards are
done, ``duplicates.tsv`` (all pairs with the verdicts of ``verdicts.tsv``) and ``duplicates.html``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base import pages
from wordnet_splits.base.errors import DataError, OutputError, Problem, SourceError, SplitsError
from wordnet_splits.base.files import locked
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import is_one_line, printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.text_formats import StrictModel, read_sealed, write_sealed
from wordnet_splits.benchmark.image_sets import open_images
from wordnet_splits.datasets.catalog.image_pairs import (
    BITS,
    COLUMNS,
    PAIR_VERDICTS,
    PairKey,
    PairRow,
    pair_key,
    read_pairs,
    tsv_line,
    write_pairs,
)
from wordnet_splits.datasets.sources.image_set import ImageFolder, ImageSet, SourceReader
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.duplicates.close_hashes import close_pairs
from wordnet_splits.duplicates.near_duplicates import check_threshold
from wordnet_splits.duplicates.perceptual_hash import hash_set, read_hashes

THRESHOLD = 8
MAX_PAIRS = 5_000_000
PROGRESS_STEPS = 1000
SETTINGS, TABLE, VERDICTS, PAGE = "comparison.json", "duplicates.tsv", "verdicts.tsv", "duplicates.html"
OTHER_FOLDER = "give another --out, or remove the folder"


class Comparison(StrictModel):
    """The settings of a comparison, and the digests of the ids of both sets."""

    hash: Literal["dct-128"] = "dct-128"
    a: str
    b: str
    ids_a: str
    ids_b: str
    threshold: int
    shards: int


@dataclass(frozen=True)
class DuplicateReport(Jsonable):
    """The result of `find_duplicates`: numbers of images and pairs in this shard, and its ``problems``.

    Until ``shards_missing`` is empty, there is no ``table`` of all pairs, and no ``page`` on which they are
    judged. ``judged`` : number of rows with a verdict in the table.
    """

    out: Path
    a: str
    b: str
    threshold: int
    images_a: int
    images_b: int
    pairs: int
    shards_missing: Sequence[int] = ()
    table: Path | None = None
    page: Path | None = None
    judged: int = 0
    problems: Sequence[Problem] = field(repr=False, default=())


def find_duplicates(
    a: str,
    b: str,
    out: Path | str,
    *,
    roots: Roots | None = None,
    threshold: int = THRESHOLD,
    shard: tuple[int, int] = (1, 1),
    workers: int = 1,
    progress: Progress | None = None,
) -> DuplicateReport:
    """Find all pairs of an image in ``a`` and an image in ``b`` whose hashes differ in few bits.

    The search is exact. If ``a`` and ``b`` are the same images, each pair is found once, in one order. The
    same call continues an interrupted one, and copies new verdicts into the table.

    Parameters
    ----------
    a, b : the sets, as `open_images` names them; the first shard to run hashes all of ``b``, so ``b`` should
        be the smaller set.
    out : folder of the comparison.
    threshold : greatest distance in bits, 0 to 40 of 128.
    shard : number of the shard of ``a``, from 1, and number of shards.

    Raises
    ------
    UnknownNameError, SourceError : a set, its root or its images do not exist.
    SplitsError : a threshold or shard out of range, or more than 5,000,000 pairs.
    OutputError : the folder belongs to another comparison, is inside a set, or cannot be written.
    DataError : ``verdicts.tsv`` is malformed, contains an image of neither set, or contradicts itself.
    """
    check_threshold(threshold)
    _check_shard(shard)
    number, count = shard
    out, progress = Path(out), progress or Silent()
    left, right = (open_images(text, roots) for text in (a, b))
    for images in (left, right):
        _check_set(images, out)
    itself = left.equals(right)
    if left.root != right.root and _folder_name(left) == _folder_name(right) != "":
        left, right = left.named_by_path(), right.named_by_path()  # equal ids are different images
    _check_settings(
        out,
        Comparison(
            a=a,
            b=b,
            ids_a=left.digest(stamped=False).hex(),
            ids_b=right.digest(stamped=False).hex(),
            threshold=threshold,
            shards=count,
        ),
    )
    verdicts = _read_verdicts(out / VERDICTS)
    judged_images = {
        (row[f"source_{side}"], row[f"image_id_{side}"])
        for row in verdicts
        for side in "ab"
        if row[f"image_id_{side}"]
    }
    if absent := right.missing(left.missing(judged_images)):
        source, image_id = min(absent)
        raise DataError(f"neither set has image {image_id!r} of {source}", where=str(out / VERDICTS))
    part = left.part(number, count)
    suffix = f"{number}-of-{count}"
    whole = itself and count == 1  # the same images are hashed once
    files = out / ("b.hashes" if whole else f"a-{suffix}.hashes"), out / "b.hashes"
    problems = [
        problem
        for images, path in zip((part, right), files, strict=True)
        for problem in hash_set(images, path, workers=workers, progress=progress)
    ]
    rows = _compare(part, right, files, threshold, itself, progress)
    write_pairs(out / f"pairs-{suffix}.tsv", rows)
    tables = [out / f"pairs-{n}-of-{count}.tsv" for n in range(1, count + 1)]
    missing = [n for n, path in enumerate(tables, 1) if not path.is_file()]
    report = (out, a, b, threshold, len(part), len(right), len(rows))
    if missing:
        return DuplicateReport(*report, shards_missing=missing, problems=problems)
    with locked(out / TABLE, busy="", wait=True):
        merged = _with_verdicts([row for path in tables for row in read_pairs(path)], verdicts)
        write_pairs(out / TABLE, merged)
        write_page(out / PAGE, merged, left, right, threshold=threshold)
    judged = sum(bool(row["verdict"]) for row in merged)
    return DuplicateReport(*report, table=out / TABLE, page=out / PAGE, judged=judged, problems=problems)


def _check_set(images: ImageSet, out: Path) -> None:
    """Raise an error for a set that contains ``out``, or ids that a table of text cannot contain."""
    if images.root is not None and out.resolve().is_relative_to(images.root.resolve()):
        # its files would count as changes of the images, which would be hashed again each time
        raise OutputError("is inside the folder of the images", where=str(out), hint="give another --out")
    for image_id in images.table["image_id"].to_pylist():
        if not is_one_line(image_id):
            message = f"image {printable(image_id)!r} has a name that a table of text cannot contain"
            raise SourceError(message, where=images.name, hint="rename it")


def _folder_name(images: ImageSet) -> str:
    """Return the source name of the images in a folder; "" for a set that is not a folder."""
    is_folder = isinstance(images.reader, SourceReader) and isinstance(images.reader.source, ImageFolder)
    return str(images.table["source"][0].as_py()) if is_folder else ""


def _read_verdicts(path: Path) -> list[PairRow]:
    """Return the rows of a file of verdicts, if it exists; DataError for two verdicts on the same pair."""
    verdicts = read_pairs(path) if path.is_file() else []
    first: dict[PairKey, str] = {}
    for row in verdicts:
        if first.setdefault(pair_key(row), row["verdict"]) != row["verdict"]:
            images = " and ".join(filter(None, (row["image_id_a"], row["image_id_b"])))
            what = f"verdicts on {images} must agree, got {first[pair_key(row)]} and {row['verdict']}"
            raise DataError(what, where=str(path), hint="keep one row")
    return verdicts


def _check_shard(shard: object) -> None:
    match shard:
        case (int() as number, int() as count):
            pass
        case _:
            raise SplitsError(f"shard must be two whole numbers, got {shard!r}", hint="as in shard=(1, 8)")
    if not 1 <= number <= count:
        reason = f"the shard must be 1/{count} to {count}/{count}, got {number}/{count}"
        raise SplitsError(reason, where="--shard", hint="as in --shard 1/8")


def _check_settings(out: Path, comparison: Comparison) -> None:
    """Write the settings into a new folder, or raise OutputError for a folder of another comparison."""
    with locked(out / SETTINGS, busy="", wait=True):
        if not (out / SETTINGS).is_file():
            if any(path.name[0] != "." and path.name != VERDICTS for path in out.iterdir()):
                raise OutputError(
                    "must be empty or the folder of a comparison", where=str(out), hint=OTHER_FOLDER
                )
            write_sealed(out / SETTINGS, comparison.model_dump())
            return
        before = read_sealed(out / SETTINGS, Comparison, error=OutputError, hint=OTHER_FOLDER)
        for name, value in comparison:
            if getattr(before, name) != value:
                what = f"{name} is {getattr(before, name)}, not {value}"
                if name.startswith("ids"):
                    what = f"the images of {getattr(comparison, name[-1])} have changed"
                raise OutputError(f"contains another comparison: {what}", where=str(out), hint=OTHER_FOLDER)


def _compare(
    left: ImageSet,
    right: ImageSet,
    files: tuple[Path, Path],
    threshold: int,
    itself: bool,
    progress: Progress,
) -> list[PairRow]:
    """Return a row for each close pair, nearest first, then in the order of their ids."""
    (hashes_a, rows_a), (hashes_b, rows_b) = (
        read_hashes(path, len(images)) for path, images in zip(files, (left, right), strict=True)
    )
    rows = []
    with progress.task("comparing", PROGRESS_STEPS) as task:
        done = 0.0

        def advance(share: float) -> None:
            nonlocal done
            before, done = done, done + share * PROGRESS_STEPS
            task.advance(int(done) - int(before))

        for columns in close_pairs(hashes_a, hashes_b, threshold, most=MAX_PAIRS, advance=advance):
            for in_a, in_b, distance in zip(*(column.tolist() for column in columns), strict=True):
                row = _pair(left.row(int(rows_a[in_a])), right.row(int(rows_b[in_b])), distance)
                first, second = (tuple(row[f"{c}_{s}"] for c in ("source", "image_id")) for s in "ab")
                if first < second or (first != second and not itself):
                    rows.append(row)
    return sorted(rows, key=lambda row: (int(row["distance"]), pair_key(row)))


def _pair(a: Mapping[str, str], b: Mapping[str, str], distance: int) -> PairRow:
    sides = {
        f"{name}_{side}": row[name] for side, row in (("a", a), ("b", b)) for name in row if name != "key"
    }
    return {**sides, "distance": str(distance), "verdict": "", "reviewer": "", "note": ""}


def _with_verdicts(rows: Sequence[PairRow], verdicts: Sequence[PairRow]) -> list[PairRow]:
    """Return the rows in order with their verdicts, then verdicts on other pairs and on single images."""
    judged = {pair_key(row): row for row in verdicts}
    merged = sorted(rows, key=lambda row: (int(row["distance"] or BITS), pair_key(row)))
    columns = ("verdict", "reviewer", "note")
    merged = [{**row, **{c: judged.get(pair_key(row), row)[c] for c in columns}} for row in merged]
    keys = {pair_key(row) for row in rows}
    return merged + [row for key, row in judged.items() if key not in keys]


SHOWN_PAIRS: Final = 300
THUMBNAIL: Final = 160
"""Longest side of an image on the page, in pixels; smaller ones keep their size."""


def write_page(
    path: Path, rows: Sequence[PairRow], left: ImageSet, right: ImageSet, *, threshold: int
) -> None:
    """Write the page of the first `SHOWN_PAIRS` pairs, those without a verdict first.

    The page does not use the network: its button saves ``verdicts.tsv``, including the verdicts on rows that
    are not shown. Raises OutputError.
    """
    pairs = sorted((row for row in rows if row["image_id_b"]), key=lambda row: bool(row["verdict"]))
    shown, hidden = pairs[:SHOWN_PAIRS], pairs[SHOWN_PAIRS:]
    hidden_verdicts = [row for row in (*hidden, *(r for r in rows if not r["image_id_b"])) if row["verdict"]]
    hidden_lines = "".join(tsv_line([row[c] for c in COLUMNS]) for row in hidden_verdicts)
    images = _thumbnails(left, shown, "a"), _thumbnails(right, shown, "b")
    pages.write_page(
        path,
        "duplicates",
        title=printable(f"Pairs of {left.name} and {right.name}"),
        threshold=threshold,
        pairs=[_shown_pair(row, images) for row in shown],
        hidden=len(hidden),
        verdicts=PAIR_VERDICTS,
        head=tsv_line(COLUMNS),
        hidden_lines=hidden_lines,
    )


def _shown_pair(row: PairRow, images: tuple[Mapping[tuple[str, str], str], ...]) -> dict[str, object]:
    figures = []
    for side, thumbnails in zip("ab", images, strict=True):
        caption = " ".join(
            filter(None, (row[f"{c}_{side}"] for c in ("source", "split", "class_id", "image_id")))
        )
        address = thumbnails.get((row[f"source_{side}"], row[f"image_id_{side}"]), "")
        figures.append((address, printable(caption)))
    shown = {key: printable(row[key]) for key in ("reviewer", "distance", "note")}
    cells = tsv_line([row[c] for c in COLUMNS[:-3]]).rstrip("\n")
    return {**shown, "verdict": row["verdict"], "cells": cells, "figures": figures}


def _thumbnails(images: ImageSet, rows: Sequence[PairRow], side: str) -> dict[tuple[str, str], str]:
    """Return the data URL of each image on the page, by source and id."""
    ids = pa.array(sorted({row[f"image_id_{side}"] for row in rows}), pa.string())
    addresses = {}
    for row in images.table.filter(pc.is_in(images.table["image_id"], value_set=ids)).to_pylist():
        try:
            image = images.reader.image(row["key"])
        except (SourceError, DataError):
            continue
        addresses[row["source"], row["image_id"]] = pages.thumbnail(image, THUMBNAIL)
    return addresses
