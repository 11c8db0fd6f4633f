"""What sweeps tried: as rows of results, as tables to print, and whether they agree with what was chosen."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.text_formats import parse_json

from .fitting import Tried
from .schema import SWEEPS, ResultTables, table_of
from .tables import NOTHING, Table

ON = re.compile(r"auroc of (?P<inside>.+) against (?P<outside>.+)")
Row = dict[str, Any]
MOST_SHOWN = 300
"""Values that a page lists; the file has all."""


def sweeps_table(tried: Iterable[tuple[str, int, Tried]]) -> pa.Table:
    """Return what was tried, by detector and run, as `rows.SWEEPS`."""
    rows = [
        (detector, run, json.dumps(dict(one.params), sort_keys=True), one.on, one.auroc, one.reason or None)
        for detector, run, one in tried
    ]
    return table_of(rows, SWEEPS)


def sweeps_of(results: ResultTables) -> dict[tuple[str, int], list[Row]]:
    """Return what was tried, by detector and run, in the order in which it was."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in results.sweeps.to_pylist():
        found.setdefault((row["detector"], row["run"]), []).append(row)
    return found


def best_of(rows: Sequence[Row]) -> Row | None:
    """Return the row of the highest AUROC, of equal ones the first; None where there is none."""
    return max((row for row in rows if row["auroc"] is not None), key=lambda row: row["auroc"], default=None)


Disagreement = tuple[str, str, Any, Any]
"""(row, column, stored, what it should be)."""


def disagreements(results: ResultTables) -> Iterator[Disagreement]:
    """Yield where what was chosen is not the best of what was tried, on validation images alone.

    Results without the record of a sweep, as older ones are, have nothing to compare.
    """
    tried = sweeps_of(results)
    if not tried:
        return
    columns = (results.results[name].to_pylist() for name in ("detector", "run", "params", "chosen_on"))
    used = dict.fromkeys(zip(*columns, strict=True))
    chosen: dict[tuple[str, int], tuple[str, str]] = {}
    for detector, run, params, on in used:
        if on is not None and chosen.setdefault((detector, run), (params, on)) != (params, on):
            yield f"{detector}, {run}", "params", params, "the same in every row"
    for detector, run in dict.fromkeys([*tried, *chosen]):
        row = f"{detector}, {run}"
        if (detector, run) not in tried or (detector, run) not in chosen:
            held, due = ("values", None) if (detector, run) in tried else (None, "values")
            yield row, "tried", held, due
            continue
        rows, (params, on) = tried[detector, run], chosen[detector, run]
        best = best_of(rows)
        yield from _of_rows(row, rows)
        if best is None or values_of(params) != values_of(best["params"]):
            yield row, "params", params, None if best is None else best["params"]
        if not on.startswith(rows[0]["on"]):
            yield row, "chosen_on", on, rows[0]["on"]


def _of_rows(name: str, rows: Sequence[Row]) -> Iterator[Disagreement]:
    seen = set()
    for row in rows:
        if row["params"] in seen:
            yield name, "params", row["params"], "each value once"
        seen.add(row["params"])
        if row["on"] != rows[0]["on"] or not on_validation(row["on"]):
            yield name, "on", row["on"], "validation sets, the same for all"
        if (row["auroc"] is None) == (row["reason"] is None):
            yield name, "reason", row["reason"], "one where there is no AUROC"
        if row["auroc"] is not None and not 0 <= row["auroc"] <= 1:
            yield name, "auroc", row["auroc"], "a share"


def on_validation(on: str) -> bool:
    """Say whether a criterion is over validation sets alone."""
    found = ON.fullmatch(on)
    return found is not None and all(
        part.endswith("/val") for side in found.groups() for part in side.split(" + ")
    )


def summary(held: Iterable[ResultTables], detectors: Container[str]) -> list[Table]:
    """Return for each sweep how many values it tried, the chosen ones, and how the best and worst did."""
    cells, numbers = [], []
    for results in held:
        models = _models(results)
        for (detector, run), tried in sweeps_of(results).items():
            best = best_of(tried)
            if best is None or detector not in detectors:
                continue
            found = [row["auroc"] for row in tried if row["auroc"] is not None]
            least, counts = min(found), (len(tried), len(tried) - len(found))
            names = (models.get((detector, run), ""), detector, str(run))
            ends = (_percent(best["auroc"]), _percent(least))
            cells.append((*names, *map(str, counts), shown(best["params"]), *ends))
            numbers.append(
                {
                    **dict(zip(("model", "detector"), names, strict=False)),
                    "run": run,
                    **dict(zip(("tried", "not_usable"), counts, strict=True)),
                    "chosen": values_of(best["params"]),
                    "on": best["on"],
                    "best": best["auroc"],
                    "worst": least,
                }
            )
    columns = ("model", "detector", "run", "tried", "not usable", "chosen", "best", "worst")
    title = "What sweeps chose: AUROC on validation images, in %"
    return [Table(title, columns, tuple(cells), tuple(numbers))] if cells else []


def everything(results: ResultTables) -> list[Table]:
    """Return every value tried, with its AUROC or the reason why it has none."""
    models = _models(results)
    rows = []
    for (detector, run), tried in sweeps_of(results).items():
        best = best_of(tried)
        for row in tried:
            verdict = "chosen" if row is best else row["reason"] or ""
            name = models.get((detector, run), "")
            rows.append((name, detector, str(run), shown(row["params"]), _percent(row["auroc"]), verdict))
    columns = ("model", "detector", "run", "values", "AUROC", "what became of it")
    on = dict.fromkeys(row["on"] for row in results.sweeps.to_pylist())
    notes = [f"Chosen by {text}." for text in on]
    if len(rows) > MOST_SHOWN:
        notes.append(f"And {len(rows) - MOST_SHOWN:,} more: sweeps.parquet has all.")
    title = "Values tried by sweeps: AUROC on validation images, in %"
    return [Table(title, columns, tuple(rows[:MOST_SHOWN]), notes=tuple(notes))] if rows else []


def shown(params: str) -> str:
    """Return parameters, JSON of anyone's, as text."""
    return ", ".join(f"{key}={value}" for key, value in values_of(params).items())


def values_of(params: str) -> dict[str, Any]:
    """Return parameters from the JSON of results, which may be anyone's."""
    try:
        found = parse_json(params, where="params")
    except SplitsError:
        return {"": params}
    return found if isinstance(found, dict) else {"": params}


def _models(results: ResultTables) -> dict[tuple[str, int], str]:
    columns = (results.results[name].to_pylist() for name in ("detector", "run", "model"))
    return {(detector, run): model for detector, run, model in zip(*columns, strict=True)}


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.2f}"
