"""The leaderboard page: every figure of every entry, averaged over the runs of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.text_formats import read_sealed
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.explorer.columns import to_columns
from wordnet_splits.hub.entries import (
    ENTRY,
    FITTED_ON_OUTLIERS,
    NAMES_TOLD,
    LeaderboardEntry,
    Text,
    read_entry,
)
from wordnet_splits.metrics import calibration
from wordnet_splits.metrics.registry import METRICS, OTHER_VALUES

RESULTS, ABOUT = "results.parquet", "about.json"
FIGURE = ("model", "detector", "params", "group", "role", "metric")
MAY_BE_EMPTY = ("value", "lo", "hi")
COLUMN_TYPES = {
    **{name: pa.string() for name in FIGURE if name != "params"},
    "run": pa.int32(),
    **dict.fromkeys(MAY_BE_EMPTY, pa.float64()),
}
"""The columns of results that the page shows, and their types; parameters are in ``about.json``."""
NOT_OF_SCORES: dict[str, dict[str, str | None]] = {
    "gamma": {"title": "Mean of gamma+ over ID and gamma- over a set (Palechor eq. 7).", "better": "higher"},
    "gamma_plus": {"title": "Mean softmax of the true class over ID images.", "better": "higher"},
    "gamma_minus": {"title": "Mean of 1 - greatest softmax + 1/K over a set.", "better": "higher"},
    "nearness_trend": {
        "title": "Rank correlation, over OOD classes, of AUROC and similarity to the nearest ID class: "
        "negative where nearer classes are harder.",
        "better": None,
    },
}
"""Values in results that are not metrics of scores; ``better=None`` marks values without a better end."""
NOISE = frozenset({"gaussian", "uniform"})
"""Sources of generated images."""
SET = ("group", "role", "scored", "expected", "seen", "listed")
LARGEST = 1 << 30


class _UserMetric(BaseModel):
    """A user's metric, as ``about.json`` records it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: Text
    higher_is_better: bool
    summary: Text
    origin: Text


class _Detector(BaseModel):
    """A detector on a network, as ``about.json`` records it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    detector: str
    run: int
    params: dict[str, Any]


class _About(BaseModel):
    """The part of ``about.json`` on the results themselves."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    detectors: tuple[_Detector, ...]
    metrics: tuple[_UserMetric, ...] = ()
    notes: tuple[str, ...] = ()
    options: dict[str, Any] = {}


class _Tables(BaseModel):
    """The part of ``about.json`` that names its tables and the users' metrics in them."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    files: dict[str, str]
    about: _About


def leaderboard_page(folder: Path, benchmarks: Sequence[Manifest]) -> dict[str, Any]:
    """Return the entries below a folder, their figures, and the refused entries, with the reasons.

    Entries of benchmarks outside the site are counted and left out.
    """
    manifests = {manifest.name: manifest for manifest in benchmarks}
    elsewhere = 0
    entries: list[LeaderboardEntry] = []
    abouts: list[_About] = []
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, str]] = []
    metrics = _built_in_metrics()
    for path in _entry_folders(folder):
        try:
            entry = read_entry(path)
            if not _is_of(entry, manifests):
                elsewhere += 1
                continue
            figures, about = _figures(path, entry)
        except SplitsError as error:
            refused.append({"name": path.name, "reason": error.what})
        else:
            rows.extend({"entry": len(entries), **row} for row in figures)
            entries.append(entry)
            abouts.append(about)
            for metric in about.metrics:  # a built-in metric, or an earlier entry's, keeps its description
                title = f"{metric.summary} ({metric.origin})"
                metrics.setdefault(metric.name, _description(title, higher=metric.higher_is_better))
    if refused and not entries:
        raise DataError(
            f"cannot read any entry; {refused[0]['name']}: {refused[0]['reason']}",
            where=str(folder),
            hint="make check-results",
        )
    shown = {row["metric"] for row in rows}
    names = {entry.facts.benchmark for entry in entries}
    return {
        "entries": [_entry_row(entry, about) for entry, about in zip(entries, abouts, strict=True)],
        "refused": refused,
        "rows": to_columns(("entry", *FIGURE, "value", "sd", "lo", "hi", "runs"), rows),
        "metrics": {name: metrics[name] for name in sorted(metrics) if name in shown},
        "elsewhere": elsewhere,
        "fpr": {name: fpr_metric(name) for name in sorted(names)},
        "noise": {
            name: sorted({g.group for g in manifests[_draw_of(name)].groups if g.source in NOISE})
            for name in sorted(names)
        },
        "fitted_on_outliers": sorted(FITTED_ON_OUTLIERS),
    }


def _built_in_metrics() -> dict[str, dict[str, str | None]]:
    metrics = {
        name: _description(metric.summary, higher=metric.higher_is_better)
        for name, metric in METRICS.registered.items()
        if not metric.origin
    }
    for name, higher in OTHER_VALUES.items():
        if (function := getattr(calibration, name, None)) is not None:
            metrics[name] = _description((function.__doc__ or "").partition("\n")[0], higher=higher)
    return metrics | NOT_OF_SCORES


def _description(title: str, *, higher: bool) -> dict[str, str | None]:
    return {"title": title, "better": "higher" if higher else "lower"}


def fpr_metric(benchmark: str) -> str:
    """Return the FPR95 that a benchmark's paper reports: OOD is positive in OpenOOD, otherwise ID."""
    return f"fpr95_{'ood' if benchmark.startswith('openood-') else 'id'}_positive"


def _draw_of(benchmark: str) -> str:
    """Return a benchmark's name without ``@local`` or ``@seed=N``."""
    return benchmark.partition("@")[0]


def _is_of(entry: LeaderboardEntry, manifests: Mapping[str, Manifest]) -> bool:
    """Return whether an entry evaluates one of the benchmarks, in any version."""
    facts = entry.facts
    manifest = manifests.get(_draw_of(facts.benchmark))
    if manifest is None:
        return False
    same_version = facts.version == manifest.version and facts.benchmark == manifest.name
    return not same_version or facts.classes in (None, manifest.data.fingerprints.classes)


def _entry_folders(folder: Path) -> list[Path]:
    folders = sorted(path.parent for path in folder.glob(f"*/{ENTRY}"))
    if not folders:
        raise DataError("contains no leaderboard entry", where=str(folder), hint="see `unknown-eval submit`")
    return folders


def _entry_row(entry: LeaderboardEntry, about: _About) -> dict[str, Any]:
    facts = entry.facts
    incomplete = [scored_set for scored_set in facts.sets if scored_set.scored != scored_set.expected]
    missing = [
        f"{s.group}: {s.scored:,} of {'unknown' if s.expected is None else f'{s.expected:,}'} images"
        for s in incomplete
    ]
    if facts.classes is None:
        missing.append("no frozen benchmark: its images were compared with nothing")
    return {
        **{name: getattr(entry, name) for name in ("name", "by", "url", "note", "outliers")},
        "benchmark": facts.benchmark,
        "version": facts.version,
        "commands": list(entry.commands),
        "images": facts.images,
        "evaluation": facts.evaluation,
        "classes": facts.classes,
        "sets": to_columns(SET, (scored_set.model_dump() for scored_set in facts.sets)),
        "networks": to_columns(("model", "model_key"), (network.model_dump() for network in facts.networks)),
        "missing": missing,
        "told": "; ".join(note for note in about.notes if NAMES_TOLD in note),
        "over": str(about.options.get("over", "images")),
    }


def _figures(folder: Path, entry: LeaderboardEntry) -> tuple[list[dict[str, Any]], _About]:
    """Return the figures of an entry, which ``recompute --check`` checks, and what describes its results."""
    _check_digest(folder / ABOUT, entry.facts.about)
    sealed = read_sealed(folder / ABOUT, _Tables, hint="make check-results")
    _check_digest(folder / RESULTS, sealed.files.get(RESULTS))
    table = read_table(folder / RESULTS)
    for name, type_ in COLUMN_TYPES.items():
        column = table[name] if name in table.schema.names else None
        if column is None or column.type != type_ or (column.null_count and name not in MAY_BE_EMPTY):
            raise DataError(f"column {name!r} is absent or damaged", where=str(folder / RESULTS))
    runs: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    params = {(d.detector, d.run): json.dumps(d.params, sort_keys=True) for d in sealed.about.detectors}
    for row in table.select(list(COLUMN_TYPES)).to_pylist():
        row["params"] = params.get((row["detector"], row["run"]), "{}")
        runs.setdefault(tuple(row[name] for name in FIGURE), []).append(row)
    if not runs:
        raise DataError("contains no results", where=str(folder / RESULTS))
    figures = [{**dict(zip(FIGURE, key, strict=True)), **_over_runs(rows)} for key, rows in runs.items()]
    return figures, sealed.about


def _check_digest(path: Path, digest: str | None) -> None:
    if sha256_of(path, largest=LARGEST) != digest:
        raise DataError("differs from the file of its entry", where=str(path), hint="make check-results")


def _over_runs(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values = [row["value"] for row in rows if row["value"] is not None and isfinite(row["value"])]
    whole = len(values) == len(rows)  # a mean over some of the runs would describe another model
    single = rows[0] if len(rows) == 1 else {}
    return {
        "value": fmean(values) if whole else None,
        "sd": stdev(values) if whole and len(rows) > 1 else None,
        "lo": single.get("lo"),
        "hi": single.get("hi"),
        "runs": len(rows),
    }
