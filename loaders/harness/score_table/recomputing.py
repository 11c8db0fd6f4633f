"""`recompute`: any metric of a score table on any subset of its images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.files import as_path
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.parquet import read_table, schema_of, write_table_file
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular, from_csv_cell
from wordnet_splits.base.text_formats import csv_rows
from wordnet_splits.metrics import ScoreSet, get_metric
from wordnet_splits.metrics.registry import OTHER_VALUES

from ..arrays import Array
from ..evaluation.metric_rows import metric_rows
from ..evaluation.schema import MetricOptions
from ..evaluation.sets import ORDER
from ..plugins import split_list
from .layout import (
    AGAIN,
    CONFIDENCES,
    CONFIDENCES_FOLDER,
    DESCRIPTION,
    IMAGES,
    IMAGES_FILE,
    MODELS,
    MODELS_FILE,
    TableDescription,
    part_path,
    read_description,
    read_part,
)

ROWS = schema_of("benchmark model run:int32 detector group role metric value:float64 n_id:int64 n_ood:int64")
LISTED = ("benchmark", "source", "group", "image_id")
"""Columns that a list of images may have; ``image_id`` is needed."""


@dataclass(frozen=True)
class SubsetSize(Jsonable):
    """The images of a set, and how many of them a subset has."""

    benchmark: str
    group: str
    role: str
    images: int
    of: int


@dataclass(frozen=True)
class Recomputed(Tabular):
    """The rows of `recompute`.

    Attributes
    ----------
    table : a row for each network, detector, set and metric (`ROWS`); values are fractions.
    sizes : the images of each set in the subset. notes : sentences on sets without images in it.
    """

    table: pa.Table
    sizes: tuple[SubsetSize, ...]
    notes: tuple[str, ...]

    def rows(self) -> Sequence[dict[str, Any]]:
        """Return the rows."""
        return list(self.table.to_pylist())

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        return self.table

    def write(self, path: str | Path) -> None:
        """Write the rows as ``.csv`` or ``.parquet``."""
        write_table_file(self.table, Path(path))


def recompute(
    scores: str | Path,
    metrics: str | Sequence[str] = "auroc",
    *,
    subset: str | Path | pa.Table | None = None,
    detectors: str | Collection[str] | None = None,
    progress: Progress | None = None,
) -> Recomputed:
    """Return metrics of a score table, on all images or on a subset of them.

    The rows are those of results: ID against each OOD set, the means over near and over far sets, and both
    pooled. On all images they equal those of the entries.

    Parameters
    ----------
    scores : folder that `export_scores` wrote.
    metrics : name or names of metrics.
    subset : a .csv or .parquet file, or a table, with a column ``image_id`` and, where that is ambiguous,
        ``source``, ``group`` or ``benchmark``; other columns are ignored.
    detectors : labels, or a text of them separated by commas; by default all.

    Raises
    ------
    UnknownNameError : no such metric or detector. DataError : the table is damaged or was altered; a listed
        image is not in the table, or is ambiguous; the subset has no ID image of a benchmark.
    """
    folder = as_path(scores, where="scores")
    if not isinstance(metrics, Collection):
        raise DataError(f"must be names of metrics, got {metrics!r}", where="metrics", hint='as in "auroc"')
    names = [metrics] if isinstance(metrics, str) else [str(name) for name in metrics]
    if isinstance(detectors, str):
        detectors = split_list(detectors)
    for name in names:
        if name in OTHER_VALUES:
            message = f"{name} is not computed from confidences, which is what the table has"
            raise DataError(message, where=str(folder), hint="the results of each entry have it")
        get_metric(name)
    description = read_description(folder)
    checksums = description.files
    images = read_part(folder, IMAGES_FILE, IMAGES, checksums)
    models = read_part(folder, MODELS_FILE, MODELS, checksums)
    if subset is None:
        listed = np.ones(images.num_rows, bool)
    else:
        where = str(subset) if isinstance(subset, str | Path) else "subset"
        listed = _listed(_read_list(subset), images, where=where)
    benchmarks = _benchmarks(images, listed)
    sizes = [size for benchmark in benchmarks.values() for size in benchmark.sizes]
    notes = [
        f"{size.benchmark}: the subset has no image of {size.group}" for size in sizes if not size.images
    ]
    rows: list[tuple[Any, ...]] = []
    labels: dict[str, None] = {}
    _check_counts(description, images, models, folder)
    used = [model for model in models.to_pylist() if model["benchmark"] in benchmarks]
    with (progress or Silent()).task("networks measured", len(used)) as task:
        for model in used:
            path = part_path(CONFIDENCES_FOLDER, model["benchmark"], model["model"], model["entry"])
            table = read_part(folder, path, CONFIDENCES, checksums)
            blocks = [*_blocks(table, f"{folder}/{path}")]
            if len(blocks) != model["detectors"]:
                message = f"has {len(blocks)} detectors, not the {model['detectors']} of {MODELS_FILE}"
                raise DataError(message, where=f"{folder}/{path}", hint=AGAIN)
            for detector, block in blocks:
                labels[detector] = None
                if detectors is not None and detector not in detectors:
                    continue
                sets, missing = benchmarks[model["benchmark"]].score_sets(block, where=f"{folder}/{path}")
                if missing:
                    total = int(benchmarks[model["benchmark"]].listed.sum())
                    notes.append(f"{model['network']}: {missing:,} of {total:,} images have no scores")
                start = (model["benchmark"], model["model"], model["run"], detector)
                rows += ((*start, *row) for row in _metric_rows(sets, names))
            task.advance()
    for detector in detectors or ():
        if detector not in labels:
            raise unknown("detector of this table", detector, labels, where=str(folder))
    columns = list(zip(*rows, strict=True)) or [()] * len(ROWS)
    arrays = [pa.array(values, f.type) for values, f in zip(columns, ROWS, strict=True)]
    return Recomputed(pa.Table.from_arrays(arrays, schema=ROWS), tuple(sizes), tuple(dict.fromkeys(notes)))


def _check_counts(description: TableDescription, images: pa.Table, models: pa.Table, folder: Path) -> None:
    """Raise DataError where the description, the images and the networks of a table contradict each other."""
    counts = Counter(images["benchmark"].to_pylist())
    if counts != {benchmark.name: benchmark.images for benchmark in description.benchmarks}:
        message = f"its images are not those of {DESCRIPTION}: {counts.total():,}"
        raise DataError(message, where=str(folder / IMAGES_FILE), hint=AGAIN)
    if unlisted := set(models["benchmark"].to_pylist()) - set(counts):
        message = f"has networks of {min(unlisted)}, of which there are no images"
        raise DataError(message, where=str(folder / MODELS_FILE), hint=AGAIN)
    rows = [*zip(*(models[name].to_pylist() for name in ("benchmark", "model", "entry")), strict=True)]
    if len(set(rows)) < len(rows) or not {entry for *_, entry in rows} <= set(description.entries):
        message = f"has a network twice, or one of no entry of {DESCRIPTION}"
        raise DataError(message, where=str(folder / MODELS_FILE), hint=AGAIN)
    if min(models["run"].to_pylist()) < 0:
        raise DataError("has a run below 0", where=str(folder / MODELS_FILE), hint=AGAIN)


def _metric_rows(sets: Sequence[ScoreSet], names: Collection[str]) -> Iterator[tuple[Any, ...]]:
    """Yield (group, role, metric, value, n_id, n_ood) of some metrics, as results have them."""
    for row in metric_rows(sets, MetricOptions()):
        if row.metric.partition("[")[0] in names:
            yield row.group, row.role, row.metric, row.value, row.n_id, row.n_ood


@dataclass(frozen=True, eq=False)
class _Benchmark:
    """The images of one benchmark.

    Attributes
    ----------
    groups : set -> role, in the order of results. members : (n,) number of each image's set.
    listed : (n,) whether the subset has it.
    """

    name: str
    groups: dict[str, str]
    members: Array
    listed: Array

    @property
    def sizes(self) -> list[SubsetSize]:
        """The number of images of each set, and of those in the subset."""
        every = np.bincount(self.members, minlength=len(self.groups))
        of_subset = np.bincount(self.members[self.listed], minlength=len(self.groups))
        return [
            SubsetSize(self.name, group, role, int(images), int(total))
            for (group, role), images, total in zip(self.groups.items(), of_subset, every, strict=True)
        ]

    def score_sets(self, block: pa.Table, *, where: str) -> tuple[list[ScoreSet], int]:
        """Return the scored images of the subset by set, and the number of those without a score."""
        numbers = block["image"].to_numpy()
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(self.members)):
            raise DataError(f"has an image that {self.name} has not", where=where, hint=AGAIN)
        if (np.bincount(numbers, minlength=1) > 1).any():
            raise DataError("has an image twice", where=where, hint=AGAIN)
        rows = self.listed[numbers]
        members, confidence = self.members[numbers[rows]], block["confidence"].to_numpy()[rows]
        correct = np.array(block["correct"].fill_null(False))[rows]
        labelled = np.asarray(block["correct"].is_valid())[rows]
        sets = []
        for number, (group, role) in enumerate(self.groups.items()):
            of_group = members == number
            if of_group.any():
                is_labelled = labelled[of_group].all()
                sets.append(
                    ScoreSet(group, role, confidence[of_group], correct[of_group] if is_labelled else None)
                )
        if not any(score_set.role == "id" for score_set in sets):
            raise DataError(f"the subset has no ID image of {self.name} that was scored", where=where)
        return sets, int(self.listed.sum()) - len(members)


def _benchmarks(images: pa.Table, listed: Array) -> dict[str, _Benchmark]:
    """Return the benchmarks that a subset has images of."""
    benchmarks = {}
    names = np.array(images["benchmark"].to_pylist(), dtype=object)
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        if not listed[rows].any():
            continue
        part = images.take(pa.array(rows))
        if part["image"].to_pylist() != list(range(len(rows))):
            raise DataError(f"the images of {name} are not numbered from 0", where=IMAGES_FILE, hint=AGAIN)
        groups = part["group"].to_pylist()
        roles = dict(zip(groups, part["role"].to_pylist(), strict=True))
        if [roles[group] for group in groups] != part["role"].to_pylist():
            raise DataError(f"a set of {name} has two roles", where=IMAGES_FILE, hint=AGAIN)
        ordered = sorted(roles, key=lambda group: ORDER.index(roles[group]))
        number = {group: n for n, group in enumerate(ordered)}
        members = np.fromiter((number[group] for group in groups), np.int64, len(groups))
        benchmarks[name] = _Benchmark(name, {g: roles[g] for g in ordered}, members, listed[rows])
    return benchmarks


def _blocks(table: pa.Table, where: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each detector, which are one block."""
    encoded = table["detector"].combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1]) if len(codes) else np.empty(0, int)
    if len(starts) != len(encoded.dictionary):
        raise DataError("its rows are not sorted by detector", where=where, hint=AGAIN)
    for detector, start, stop in zip(
        encoded.dictionary.to_pylist(), starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True
    ):
        yield detector, table.slice(start, stop - start)


def _read_list(subset: str | Path | pa.Table) -> pa.Table:
    """Return the columns of a list that name images, as texts."""
    if isinstance(subset, pa.Table):
        table, where = subset, "subset"
    elif not isinstance(subset, str | Path):
        message = f"must be a file or a pyarrow Table, got {type(subset).__name__}"
        raise DataError(message, where="subset", hint='as in subset=pyarrow.table({"image_id": ids})')
    else:
        path, where = Path(subset), str(subset)
        if path.suffix == ".parquet":
            table = read_table(path)
        elif path.suffix == ".csv":
            header, *rows = [*csv_rows(path)] or [[]]
            if any(len(row) != len(header) for row in rows):
                raise DataError("has a row of another length than the first", where=where)
            cells = [[from_csv_cell(cell) for cell in column] for column in zip(*rows, strict=True)]
            columns = cells or [[] for _ in header]
            table = pa.table(
                {name: pa.array(c, pa.string()) for name, c in zip(header, columns, strict=True)}
            )
        else:
            hint = "as list.csv, with a column image_id"
            raise DataError("a list of images is a .csv or .parquet file", where=where, hint=hint)
    if repeated := [name for name in LISTED if table.column_names.count(name) > 1]:
        raise DataError(f"has the column {repeated[0]} twice", where=where)
    names = [name for name in LISTED if name in table.column_names]
    if "image_id" not in names:
        hint = f"there are {', '.join(map(str, table.column_names)) or 'none'}"
        raise DataError("has no column image_id", where=where, hint=hint)
    if not table.num_rows:
        raise DataError("lists no image", where=where)
    if any(not pa.types.is_string(table.schema.field(n).type) or table[n].null_count for n in names):
        raise DataError(f"{', '.join(names)} have to be texts without empty cells", where=where)
    return table.select(names)


def _listed(subset: pa.Table, images: pa.Table, *, where: str) -> Array:
    """Return which images (n,) a list has; DataError for one that is absent or ambiguous."""
    names = subset.column_names
    keys = list(zip(*(images[name].to_pylist() for name in names), strict=True))
    listed_keys = set(zip(*(subset[name].to_pylist() for name in names), strict=True))
    listed = np.fromiter((key in listed_keys for key in keys), bool, len(keys))
    missing = listed_keys - {key for key, is_listed in zip(keys, listed.tolist(), strict=True) if is_listed}
    if missing:
        example = " ".join(min(missing))
        raise DataError(
            f"{len(missing):,} listed images are not in the table, such as {example}", where=where
        )
    if "source" not in names and "group" not in names:
        sources: dict[tuple[str, ...], set[str]] = {}
        for key, source, is_listed in zip(keys, images["source"].to_pylist(), listed.tolist(), strict=True):
            if is_listed:
                sources.setdefault(key, set()).add(source)
        ambiguous = [key for key, of_key in sources.items() if len(of_key) > 1]
        if ambiguous:
            message = f"{' '.join(ambiguous[0])} is an image of {' and '.join(sorted(sources[ambiguous[0]]))}"
            raise DataError(message, where=where, hint="add a column source")
    return listed
