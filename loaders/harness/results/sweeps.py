"""The values that sweeps tried, as rows of results and as tables."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.text_formats import parse_json

from .schema import ResultTables
from .table import NOTHING, Table

Row = dict[str, Any]
MAX_ROWS = 300
"""Largest number of values listed in a page."""


def sweeps_of(results: ResultTables) -> dict[tuple[str, int], list[Row]]:
    """Return the values tried by sweeps, by detector and run, in the order of the trials."""
    sweeps: dict[tuple[str, int], list[Row]] = {}
    for row in results.sweeps.to_pylist():
        sweeps.setdefault((row["detector"], row["run"]), []).append(row)
    return sweeps


def best_of(rows: Sequence[Row]) -> Row | None:
    """Return the first row with the highest AUROC; None if every row lacks an AUROC."""
    return max((row for row in rows if row["auroc"] is not None), key=lambda row: row["auroc"], default=None)


def sweep_summary(results: Iterable[ResultTables], detectors: Container[str]) -> list[Table]:
    """Return how many values each sweep tried, the chosen values, and the best and worst AUROC."""
    cells, rows = [], []
    for tables in results:
        models = _models(tables)
        for (detector, run), trials in sweeps_of(tables).items():
            best = best_of(trials)
            if best is None or detector not in detectors:
                continue
            aurocs = [row["auroc"] for row in trials if row["auroc"] is not None]
            worst, counts = min(aurocs), (len(trials), len(trials) - len(aurocs))
            model, params = models.get((detector, run), ""), best["params"]
            names, ends = (model, detector, str(run)), (_percent(best["auroc"]), _percent(worst))
            cells.append((*names, *map(str, counts), params_text(params_of(params)), *ends))
            rows.append(
                {
                    "model": model,
                    "detector": detector,
                    "run": run,
                    "tried": counts[0],
                    "not_usable": counts[1],
                    "chosen": params_of(params),
                    "on": best["on"],
                    "best": best["auroc"],
                    "worst": worst,
                }
            )
    columns = ("model", "detector", "run", "tried", "not usable", "chosen", "best", "worst")
    title = "What sweeps chose: AUROC on validation images, in %"
    return [Table(title, columns, tuple(cells), tuple(rows))] if cells else []


def sweep_details(results: ResultTables) -> list[Table]:
    """Return every value tried, with its AUROC or the reason why it has none."""
    models = _models(results)
    cells = []
    for (detector, run), trials in sweeps_of(results).items():
        best = best_of(trials)
        for row in trials:
            outcome = "chosen" if row is best else row["reason"] or ""
            model = models.get((detector, run), "")
            values = params_text(params_of(row["params"]))
            cells.append((model, detector, str(run), values, _percent(row["auroc"]), outcome))
    columns = ("model", "detector", "run", "values", "AUROC", "what became of it")
    criteria = dict.fromkeys(row["on"] for row in results.sweeps.to_pylist())
    notes = [f"Chosen by {criterion}." for criterion in criteria]
    if len(cells) > MAX_ROWS:
        notes.append(f"And {len(cells) - MAX_ROWS:,} more: sweeps.parquet has all.")
    title = "Values tried by sweeps: AUROC on validation images, in %"
    return [Table(title, columns, tuple(cells[:MAX_ROWS]), notes=tuple(notes))] if cells else []


def params_text(params: Mapping[str, Any]) -> str:
    """Return parameters as text."""
    return ", ".join(f"{key}={value}" for key, value in params.items())


def params_of(params: str) -> dict[str, Any]:
    """Return the parameters of a row, parsed from untrusted JSON."""
    try:
        values = parse_json(params, where="params")
    except SplitsError:
        return {"": params}
    return values if isinstance(values, dict) else {"": params}


def _models(results: ResultTables) -> dict[tuple[str, int], str]:
    models = {facts.run: facts.model for facts in results.about.runs}
    return {(facts.detector, facts.run): models[facts.run] for facts in results.about.detectors}


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.2f}"
