"""`recompute`: any metric of stored scores on any subset of their images."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.files import as_path
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.parquet import read_table, schema_of, write_table_file
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular, from_csv_cell
from wordnet_splits.base.text_formats import csv_rows
from wordnet_splits.metrics import get_metric
from wordnet_splits.metrics.registry import OTHER_VALUES

from ..data.arrays import Array
from ..data.parameters import split_list
from .exported_scores import DESCRIPTION, read_scores
from .metadata import MetricOptions
from .metric_rows import metric_rows
from .results import ABOUT, Results
from .scores import IMAGES, ImagesBySet, ScoredImages, confidences_of, scored_keys, table_of

ROWS = schema_of("benchmark model run:int32 detector group role metric value:float64 n_id:int64 n_ood:int64")
LISTED = ("benchmark", "source", "group", "image_id")
"""Columns that a list of images may have; ``image_id`` is needed."""


@dataclass(frozen=True)
class SubsetSize(Jsonable):
    """Number of images of a set: in the subset (``images``) and in total (``of``)."""

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
    sizes : the images of each set in the subset.
    notes : sentences on sets without images in it.
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
    """Return metrics of results, or of exported scores, on all images or on a subset.

    The rows follow results: ID against each OOD set, the means over near and over far sets, and both pooled.
    On all images they equal the results.

    Parameters
    ----------
    scores : folder that `export_scores` or `Results.write` wrote.
    metrics : name or names of metrics.
    subset : a .csv or .parquet file, or a table, with a column ``image_id`` and, where that is ambiguous,
        ``source``, ``group`` or ``benchmark``; other columns are ignored.
    detectors : labels, as a sequence or separated by commas; by default all.

    Raises
    ------
    UnknownNameError : no such metric or detector. DataError : a table is damaged or was altered; a listed
        image is not in the tables, or is ambiguous; the subset has no ID image of a benchmark.
    """
    folder = as_path(scores, where="scores")
    if not isinstance(metrics, Collection):
        raise DataError(f"must be names of metrics, got {metrics!r}", where="metrics", hint='as in "auroc"')
    names = [metrics] if isinstance(metrics, str) else [str(name) for name in metrics]
    if isinstance(detectors, str):
        detectors = split_list(detectors)
    for name in names:
        if name in OTHER_VALUES:
            message = f"{name} is not computed from confidences"
            raise DataError(message, where=str(folder), hint="the results of each entry have it")
        get_metric(name)
    tables = list(_read_tables(folder))
    listed = [np.ones(table.scores.num_rows, bool) for table in tables]
    if subset is not None:
        where = str(subset) if isinstance(subset, str | Path) else "subset"
        listed = _listed(_read_list(subset), tables, where=where)
    rows: list[tuple[Any, ...]] = []
    sizes: list[SubsetSize] = []
    notes: list[str] = []
    labels: dict[str, None] = {}
    total = sum(len(scored_keys(table.scores)) for table in tables)
    with (progress or Silent()).task("detectors measured", total) as task:
        for table, kept in zip(tables, listed, strict=True):
            if not kept.any():
                continue
            images = ImagesBySet(table.scores)
            sizes += (
                SubsetSize(
                    table.benchmark, group, role, int(kept[images.rows[group]].sum()), len(images.rows[group])
                )
                for group, role in images.roles.items()
            )
            for key in scored_keys(table.scores):
                labels[key[0]] = None
                if detectors is None or key[0] in detectors:
                    confidence = np.where(kept, confidences_of(table.scores, key), np.nan)
                    if missing := int(kept.sum() - np.isfinite(confidence).sum()):
                        of = f"{missing:,} of {int(kept.sum()):,} images have no scores"
                        notes.append(f"{table.models[key[1]]}: {of}")
                    scored = ScoredImages(images, table.predictions, key)
                    start = (table.benchmark, table.models[key[1]], key[1], key[0])
                    rows += (
                        (*start, *row) for row in _metric_rows(scored, confidence, names, table.benchmark)
                    )
                task.advance()
    notes += (
        f"{size.benchmark}: the subset has no image of {size.group}" for size in sizes if not size.images
    )
    for detector in detectors or ():
        if detector not in labels:
            raise unknown("detector of these scores", detector, labels, where=str(folder))
    return Recomputed(table_of(rows, ROWS), tuple(sizes), tuple(dict.fromkeys(notes)))


class _Scores(NamedTuple):
    """The scores and predictions of a benchmark, and the model of each run."""

    benchmark: str
    scores: pa.Table
    predictions: pa.Table
    models: Mapping[int, str]


def _read_tables(folder: Path) -> Iterator[_Scores]:
    """Yield the tables of a folder of results, or of an export."""
    if (folder / ABOUT).is_file():
        results = Results.read(folder)
        models = {run.run: run.model for run in results.about.runs}
        if not results.has_scores:
            results.require_scores("recomputing")
        yield _Scores(results.about.benchmark, results.scores, results.predictions, models)
        return
    exported = sorted(path.parent for path in folder.glob(f"*/{DESCRIPTION}"))
    if not exported:
        hint = "give the folder that `run` or `scores export` wrote"
        raise DataError("no scores here", where=str(folder), hint=hint)
    for path in exported:
        description, scores, predictions = read_scores(path)
        models = {network.run: network.model for network in description.networks}
        yield _Scores(description.benchmark, scores, predictions, models)


def _metric_rows(
    scored: ScoredImages, confidence: Array, names: Collection[str], benchmark: str
) -> Iterator[tuple[Any, ...]]:
    """Yield (group, role, metric, value, n_id, n_ood) of some metrics, as results have them."""
    sets = [scored.score_set(group, confidence) for group in scored.roles]
    sets = [score_set for score_set in sets if len(score_set.confidence)]
    if not any(score_set.role == "id" for score_set in sets):
        raise DataError(f"the subset has no ID image of {benchmark} that was scored", where="subset")
    for row in metric_rows(sets, MetricOptions()):
        if row.metric.partition("[")[0] in names:
            yield row.group, row.role, row.metric, row.value, row.n_id, row.n_ood


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
            raise DataError("a list of images must be a .csv or .parquet file", where=where, hint=hint)
    if repeated := [name for name in LISTED if table.column_names.count(name) > 1]:
        raise DataError(f"has the column {repeated[0]} twice", where=where)
    names = [name for name in LISTED if name in table.column_names]
    if "image_id" not in names:
        hint = f"there are {', '.join(map(str, table.column_names)) or 'none'}"
        raise DataError("has no column image_id", where=where, hint=hint)
    if not table.num_rows:
        raise DataError("lists no image", where=where)
    if any(not pa.types.is_string(table.schema.field(n).type) or table[n].null_count for n in names):
        raise DataError(f"{', '.join(names)} must be texts without empty cells", where=where)
    return table.select(names)


def _listed(subset: pa.Table, tables: Sequence[_Scores], *, where: str) -> list[Array]:
    """Return which images (n,) of each table a list has; DataError for one that is absent or ambiguous."""
    names = subset.column_names
    listed_keys = set(zip(*(subset[name].to_pylist() for name in names), strict=True))
    listed: list[Array] = []
    sources: dict[tuple[str, ...], set[str]] = {}
    for table in tables:
        images = table.scores.select(IMAGES.names)
        images = images.append_column("benchmark", pa.repeat(pa.scalar(table.benchmark), images.num_rows))
        keys = list(zip(*(images[name].to_pylist() for name in names), strict=True))
        listed.append(np.fromiter((key in listed_keys for key in keys), bool, len(keys)))
        for key, source in zip(keys, images["source"].to_pylist(), strict=True):
            if key in listed_keys:
                sources.setdefault(key, set()).add(source)
    if missing := listed_keys - sources.keys():
        example = " ".join(min(missing))
        raise DataError(
            f"{len(missing):,} listed images are not in the table, such as {example}", where=where
        )
    if "source" not in names and "group" not in names:
        ambiguous = [key for key, of_key in sources.items() if len(of_key) > 1]
        if ambiguous:
            message = f"{' '.join(ambiguous[0])} is an image of {' and '.join(sorted(sources[ambiguous[0]]))}"
            raise DataError(message, where=where, hint="add a column source")
    return listed
