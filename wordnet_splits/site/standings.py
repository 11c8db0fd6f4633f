"""The leaderboard: every figure of every entry, averaged over the runs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.schemas import read_sealed
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.leaderboard import ENTRY, LeaderboardEntry, read_entry
from wordnet_splits.metrics.registry import METRICS
from wordnet_splits.site.columns import columns

RESULTS, ABOUT = "results.parquet", "about.json"
FIGURE = ("model", "detector", "params", "group", "role", "metric")
MAY_BE_EMPTY = ("value", "lo", "hi")
READ = dict.fromkeys(FIGURE, pa.string()) | dict.fromkeys(MAY_BE_EMPTY, pa.float64())
"""Columns that are shown, and their types."""
SET = ("group", "role", "scored", "expected", "seen", "listed")
LARGEST = 1 << 30


class _Tables(BaseModel):
    """The part of ``about.json`` that says which tables it describes."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    files: dict[str, str]


def leaderboard_page(folder: Path) -> dict[str, Any]:
    """Return the entries below a folder, their figures, and the entries that are refused, with the reason.

    Raises
    ------
    DataError : there is no entry, or every one is refused.
    """
    entries: list[LeaderboardEntry] = []
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, str]] = []
    for place in _places(folder):
        try:
            entry = read_entry(place)
            figures = _figures(place, entry)
        except SplitsError as error:
            refused.append({"name": place.name, "reason": error.what})
        else:
            rows.extend({"entry": len(entries), **row} for row in figures)
            entries.append(entry)
    if not entries:
        raise DataError(
            f"every entry is refused; {refused[0]['name']}: {refused[0]['reason']}",
            where=str(folder),
            hint="make check-results",
        )
    used = {row["metric"] for row in rows}
    return {
        "entries": [_entry(entry) for entry in entries],
        "refused": refused,
        "rows": columns(("entry", *FIGURE, "value", "sd", "lo", "hi", "runs"), rows),
        "metrics": {
            name: {"title": one.summary, "better": "higher" if one.higher_is_better else "lower"}
            for name, one in sorted(METRICS.items())
            if name in used
        },
    }


def _places(folder: Path) -> list[Path]:
    found = sorted(path.parent for path in folder.glob(f"*/{ENTRY}"))
    if not found:
        raise DataError(
            "no entries of the leaderboard here", where=str(folder), hint="see `unknown-eval submit`"
        )
    return found


def _entry(entry: LeaderboardEntry) -> dict[str, Any]:
    facts = entry.facts
    short = [one for one in facts.sets if one.scored != one.expected]
    missing = [f"{one.group}: {one.scored:,} of {_count(one.expected)} images" for one in short]
    if facts.classes is None:
        missing.append("no frozen benchmark: its images were compared with nothing")
    return {
        **{name: getattr(entry, name) for name in ("name", "by", "url", "note")},
        "benchmark": facts.benchmark,
        "version": facts.version,
        "commands": list(entry.commands),
        "images": facts.images,
        "evaluation": facts.evaluation,
        "classes": facts.classes,
        "sets": columns(SET, (one.model_dump() for one in facts.sets)),
        "networks": columns(("model", "model_key"), (one.model_dump() for one in facts.networks)),
        "missing": missing,
    }


def _count(expected: int | None) -> str:
    return "an unknown number of" if expected is None else f"{expected:,}"


def _figures(place: Path, entry: LeaderboardEntry) -> list[dict[str, Any]]:
    """Return the figures of an entry; whether they recompute from its scores, ``check-results`` says.

    Raises
    ------
    DataError : its results are not those that the entry names, are none, or name parameters that are no JSON.
    """
    _check_digest(place / ABOUT, entry.facts.about)
    tables = read_sealed(place / ABOUT, _Tables, hint="make check-results").files
    _check_digest(place / RESULTS, tables.get(RESULTS))
    table = read_table(place / RESULTS)
    for name, type_ in READ.items():
        column = table[name] if name in table.schema.names else None
        if column is None or column.type != type_ or (column.null_count and name not in MAY_BE_EMPTY):
            raise DataError(f"column {name!r} is absent or damaged", where=str(place / RESULTS))
    held: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.select(list(READ)).to_pylist():
        held.setdefault(tuple(row[name] for name in FIGURE), []).append(row)
    if not held:
        raise DataError("holds no results", where=str(place / RESULTS))
    for params in {row["params"] for rows in held.values() for row in rows}:
        if not isinstance(parse_json(params, where=str(place / RESULTS)), dict):
            raise DataError(f"parameters {params!r} are no JSON object", where=str(place / RESULTS))
    return [{**dict(zip(FIGURE, key, strict=True)), **_over_runs(rows)} for key, rows in held.items()]


def _check_digest(path: Path, digest: str | None) -> None:
    if sha256_of(path, largest=LARGEST) != digest:
        raise DataError("is not what its entry names", where=str(path), hint="make check-results")


def _over_runs(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values = [row["value"] for row in rows if row["value"] is not None and isfinite(row["value"])]
    whole = len(values) == len(rows)  # a mean over fewer runs than were made would be another model's
    single = rows[0] if len(rows) == 1 else {}
    return {
        "value": fmean(values) if whole else None,
        "sd": stdev(values) if whole and len(rows) > 1 else None,
        "lo": single.get("lo"),
        "hi": single.get("hi"),
        "runs": len(rows),
    }
