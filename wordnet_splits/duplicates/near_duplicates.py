"""Find images of different groups that look alike (recompressed, scaled, recoloured, retouched).

Identical images are found by digest when a benchmark is built. Near-duplicates need pixels, and therefore
roots; they are candidates, with their distance in bits, for a person to judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import Problem, SplitsError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.benchmark.construct.leak_kinds import TRAINING_ROLES
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources import Source, open_source, source_class
from wordnet_splits.datasets.sources.image_set import SourceReader
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.duplicates import perceptual_hash as ph
from wordnet_splits.duplicates.close_hashes import MAX_PAIRS, close_pairs, too_many
from wordnet_splits.duplicates.perceptual_hash import IMAGES_PER_JOB, chunk_name, hash_chunk

THRESHOLD = 24
MAX_THRESHOLD = 40
"""Largest threshold; beyond it nearly every pair of plain images is close."""
ROWS_PER_JOB = 1 << 16


def check_threshold(threshold: object) -> None:
    """Raise SplitsError for a threshold that is not a whole number in range."""
    if not isinstance(threshold, int) or not 0 <= threshold <= MAX_THRESHOLD:
        raise SplitsError(f"the threshold must be 0 to {MAX_THRESHOLD} bits, got {threshold!r}")


@dataclass(frozen=True)
class NearPair:
    """Two images ``distance`` bits apart; ``guarded`` if a group of the pair is ID or external."""

    group_a: str
    split_a: str
    source_a: str
    class_a: str
    image_a: str
    group_b: str
    split_b: str
    source_b: str
    class_b: str
    image_b: str
    distance: int
    guarded: bool


@dataclass
class ComparedSet:
    """Number of compared images of a set, and the reason if images were left out."""

    group: str
    role: str
    source: str
    split: str
    images: int | None
    compared: int
    why: str = ""


@dataclass
class NearReport:
    """The result of `find_near_duplicates`."""

    threshold: int
    compared: list[ComparedSet] = field(default_factory=list)
    pairs: list[NearPair] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as ``audit near-duplicates --json`` prints it."""
        return {
            "hash": ph.NAME,
            "bits": ph.BITS,
            "threshold": self.threshold,
            "compared": [vars(c) for c in self.compared],
            "pairs": [vars(p) for p in self.pairs],
            "problems": [p.as_dict() for p in self.problems],
        }


def find_near_duplicates(
    manifest: Manifest | str | Path,
    roots: Roots,
    *,
    threshold: int = THRESHOLD,
    workers: int = 1,
    progress: Progress | None = None,
) -> NearReport:
    """Find pairs of look-alike images in different groups, or in different splits of the same group.

    Sets whose source has no root are skipped and reported. Images are hashed as the source stores them,
    whatever the group's view. Pairs are sorted: ID and external groups first, then in the recipe's order of
    groups, nearest first. The result depends neither on ``workers`` nor on the order of files.

    Parameters
    ----------
    roots : folder of each source at hand.
    threshold : greatest distance in bits, 0 to 40 of 128.
    workers : processes that read images, and threads that compare them.

    Raises
    ------
    SourceError : a root is absent, unreadable or of another dataset.
    SplitsError : more than 200,000 pairs, or a threshold out of range.
    """
    check_threshold(threshold)
    report = NearReport(threshold)
    manifest = load_manifest(manifest)
    datasets = manifest.datasets
    sets = _sets_at_hand(manifest, roots, report)
    ids: dict[str, set[str]] = {}
    for table in sets.values():
        for name, image_id in zip(_values(table, "source"), _values(table, "image_id"), strict=True):
            ids.setdefault(name, set()).add(image_id)
    rooted = {n for n in ids if source_class(n, datasets).rooted}
    opened = {n: open_source(n, roots.get(n) if n in rooted else None, datasets) for n in sorted(ids)}
    hashes: dict[str, dict[str, bytes]] = {}
    for name, source in opened.items():
        hashes[name], problems = hash_images(source, sorted(ids[name]), workers=workers, progress=progress)
        report.problems += problems
    arranged = [_arrange(part, table, hashes, report) for part, table in sets.items()]
    report.pairs = search(
        [s for s in arranged if s.rows],
        threshold,
        order=list(dict.fromkeys(row.group for row in manifest.groups)),
        workers=workers,
        progress=progress,
    )
    return report


def hash_images(
    source: Source, ids: Sequence[str], *, workers: int = 1, progress: Progress | None = None
) -> tuple[dict[str, bytes], list[Problem]]:
    """Return the hashes of images by id, and a problem for each unreadable image."""
    reader = SourceReader(source)
    chunks = (ids[n : n + IMAGES_PER_JOB] for n in range(0, len(ids), IMAGES_PER_JOB))
    jobs = ((reader, source.name, chunk, chunk) for chunk in chunks)
    hashes: dict[str, bytes] = {}
    problems: list[Problem] = []
    with (
        (progress or Silent()).task(f"hashing {source.name}", len(ids)) as task,
        closing(run_jobs(hash_chunk, jobs, workers, name=chunk_name, ordered=True)) as done,
    ):
        for (_, _, chunk, _), (values, bad) in done:
            hashes |= {i: value for i, value in zip(chunk, values, strict=True) if value is not None}
            problems += bad
            task.advance(len(chunk))
    return hashes, problems


@dataclass
class HashedSet:
    """The images of a (split, group): rows of (source, class_id, image_id), and their hashes (n, 16)."""

    split: str
    group: str
    role: str
    rows: list[tuple[str, str, str]]
    hashes: ph.Hashes


def search(
    sets: Sequence[HashedSet],
    threshold: int,
    *,
    order: Sequence[str],
    workers: int = 1,
    progress: Progress | None = None,
) -> list[NearPair]:
    """Return all close pairs between every two sets, sorted; ``order`` lists the groups."""
    in_order = sorted(sets, key=lambda s: (order.index(s.group), s.split))
    couples = combinations(in_order, 2)
    jobs = [(a, b, top) for a, b in couples for top in range(0, len(a.rows), ROWS_PER_JOB)]
    total = sum(len(a.hashes[top : top + ROWS_PER_JOB]) * len(b.hashes) for a, b, top in jobs)
    pairs_found: list[NearPair] = []
    with (
        (progress or Silent()).task("comparing pairs", total) as task,
        ThreadPoolExecutor(max(workers, 1)) as pool,
    ):
        try:
            strips = pool.map(lambda job: _strip(job, threshold), jobs)
            for (a, b, top), pairs in zip(jobs, strips, strict=True):
                pairs_found += pairs
                if len(pairs_found) > MAX_PAIRS:
                    is_equal = [pair.distance == 0 for pair in pairs_found]
                    raise too_many(MAX_PAIRS, 0 if sum(is_equal) > MAX_PAIRS else threshold)
                task.advance(len(a.hashes[top : top + ROWS_PER_JOB]) * len(b.hashes))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    group_order = {group: n for n, group in enumerate(order)}

    def rank(pair: NearPair) -> tuple[object, ...]:
        groups = (group_order[pair.group_a], pair.split_a, group_order[pair.group_b], pair.split_b)
        return (not pair.guarded, *groups, pair.distance, pair.image_a, pair.image_b)

    return sorted(pairs_found, key=rank)


def _strip(job: tuple[HashedSet, HashedSet, int], threshold: int) -> list[NearPair]:
    a, b, top = job
    guarded = bool({a.role, b.role} & TRAINING_ROLES)
    pairs = []
    for rows, columns, distance in close_pairs(
        a.hashes[top : top + ROWS_PER_JOB], b.hashes, threshold, most=MAX_PAIRS
    ):
        for row, column, bits in zip(rows.tolist(), columns.tolist(), distance.tolist(), strict=True):
            (source_a, class_a, image_a), (source_b, class_b, image_b) = a.rows[top + row], b.rows[column]
            if (source_a, image_a) != (source_b, image_b):  # a group that reuses classes names it twice
                pairs.append(
                    NearPair(
                        *(a.group, a.split, source_a, class_a, image_a),
                        *(b.group, b.split, source_b, class_b, image_b),
                        bits,
                        guarded,
                    )
                )
    return pairs


def _sets_at_hand(manifest: Manifest, roots: Roots, report: NearReport) -> dict[Part, pa.Table]:
    """Return the image tables whose sources can be read; add every set to the report."""
    sets: dict[Part, pa.Table] = {}
    for row in manifest.groups:
        part = (row.split, row.group)
        if row.split == "classes":
            continue
        compared_set = ComparedSet(row.group, row.role, row.source, row.split, None, 0)
        report.compared.append(compared_set)
        if part not in manifest.parts:
            compared_set.why = row.status
            continue
        table = manifest.parts[part]()
        compared_set.images = table.num_rows
        if source_class(row.source, manifest.datasets).rooted and row.source not in roots:
            compared_set.why = f"no root of {row.source}"
        else:
            sets[part] = table
    return sets


def _arrange(
    part: Part, table: pa.Table, hashes: Mapping[str, Mapping[str, bytes]], report: NearReport
) -> HashedSet:
    columns = [_values(table, c) for c in ("source", "class_id", "image_id")]
    rows = [row for row in zip(*columns, strict=True) if row[2] in hashes[row[0]]]
    packed = b"".join(hashes[source][image_id] for source, _, image_id in rows)
    compared_set = next(c for c in report.compared if (c.split, c.group) == part)
    compared_set.compared = len(rows)
    if len(rows) < table.num_rows:
        compared_set.why = f"{table.num_rows - len(rows):,} missing or unreadable"
    array = np.frombuffer(packed, np.uint8).reshape(-1, ph.BYTES)
    return HashedSet(part[0], part[1], compared_set.role, rows, array)


def _values(table: pa.Table, column: str) -> list[str]:
    values: list[str] = table.column(column).to_pylist()
    return values
