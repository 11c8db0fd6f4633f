"""Whether stored results agree with themselves: rows with ``about.json``, detector labels and sweeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wordnet_splits.base.errors import SplitsError, UnknownNameError
from wordnet_splits.base.text_formats import parse_json

from ..detectors.registry import configure, get_spec
from ..plugins import parse_named
from .schema import MODEL, About, ResultTables
from .sweeps import Row, best_of, params_of, sweeps_of

BENCHMARK_COLUMNS = ("benchmark", "version", "images_fingerprint")
"""Columns that are the same in every row, and fields of `About`."""
DETECTOR_COLUMNS = ("model", "model_key", "transform_key", "run", "detector", "params", "chosen_on")
"""Columns that are the same in every row of a detector and run."""
CRITERION = re.compile(r"auroc of (?P<id>.+) against (?P<ood>.+)")
Disagreement = tuple[str, str, Any, Any]
"""(row, column, stored value, expected value)."""


def row_disagreements(results: ResultTables) -> Iterator[Disagreement]:
    """Yield where rows of results contradict ``about.json``, a detector's label, or the record of a sweep."""
    about, table = results.about, results.results
    for name in BENCHMARK_COLUMNS:
        expected = getattr(about, name)
        for value in table[name].unique().to_pylist():
            if value != expected:
                yield "every row", name, value, expected
    pairs = results.sweeps.select(["detector", "run"]).group_by(["detector", "run"]).aggregate([])
    swept = {(row["detector"], row["run"]) for row in pairs.to_pylist()}  # of as many rows as anyone likes
    first_rows: dict[tuple[str, int], Row] = {}
    for values in dict.fromkeys(zip(*(table[name].to_pylist() for name in DETECTOR_COLUMNS), strict=True)):
        row = dict(zip(DETECTOR_COLUMNS, values, strict=True))
        label = f"{row['detector']}, {row['run']}"
        first_row = first_rows.setdefault((row["detector"], row["run"]), row)
        for name in DETECTOR_COLUMNS:
            if row[name] != first_row[name]:
                yield label, name, row[name], first_row[name]
        if first_row is row:
            yield from _model_disagreements(label, row, about)
            yield from _params_disagreements(label, row, (row["detector"], row["run"]) in swept)


def _model_disagreements(label: str, row: Mapping[str, Any], about: About) -> Iterator[Disagreement]:
    facts = {run.run: run for run in about.runs}
    if row["run"] not in facts:
        yield label, "run", row["run"], "a run that about.json describes"
        return
    run = facts[row["run"]]
    runs = about.runs_of(run.model) if "+" in row["model_key"] else (run,)  # all runs of an ensemble
    if row["model"] != run.model:
        yield label, "model", row["model"], run.model
    expected_keys = {
        "model_key": {run.model_key for run in runs},
        "transform_key": {key for run in runs for key in run.transforms},
    }
    for name, expected in expected_keys.items():
        if set(row[name].split("+")) != expected:
            yield label, name, row[name], "+".join(sorted(expected))


def _params_disagreements(label: str, row: Mapping[str, Any], swept: bool) -> Iterator[Disagreement]:
    """Yield where the parameters are not those of the label; `sweep_disagreements` checks those of sweeps."""
    try:
        params = parse_json(row["params"], where="params")
    except SplitsError:
        params = None
    if not isinstance(params, dict):
        yield label, "params", row["params"], "a JSON object"
    elif row["chosen_on"] is not None:
        if not swept:
            yield label, "chosen_on", row["chosen_on"], "a sweep that sweeps.parquet records"
    elif not swept and (expected := _params_of_label(row["detector"])) is not None and params != expected:
        yield label, "params", params, expected


def _params_of_label(label: str) -> dict[str, Any] | None:
    """Return the parameters that a detector's label stands for; None where it is not registered."""
    if label == MODEL:
        return {}
    try:
        spec = get_spec(label.partition("[")[0])
    except UnknownNameError:  # a user's own detector is not imported to check results
        return None
    try:
        name, parameters = parse_named(label)
        return dict(configure(spec, parameters, label=name).params)
    except SplitsError as error:
        return {"": error.what}


def sweep_disagreements(results: ResultTables) -> Iterator[Disagreement]:
    """Yield where chosen values are not the best of those tried, on validation images alone.

    Results without the record of a sweep, as older ones are, have nothing to compare.
    """
    sweeps = sweeps_of(results)
    if not sweeps:
        return
    columns = (results.results[name].to_pylist() for name in ("detector", "run", "params", "chosen_on"))
    chosen: dict[tuple[str, int], tuple[str, str]] = {}
    for detector, run, params, criterion in dict.fromkeys(zip(*columns, strict=True)):
        pair = (params, criterion)
        if criterion is not None and chosen.setdefault((detector, run), pair) != pair:
            yield f"{detector}, {run}", "params", params, "the same in every row"
    for key in dict.fromkeys([*sweeps, *chosen]):
        label = f"{key[0]}, {key[1]}"
        if key not in sweeps or key not in chosen:
            stored, expected = ("values", None) if key in sweeps else (None, "values")
            yield label, "tried", stored, expected
            continue
        rows, (params, criterion) = sweeps[key], chosen[key]
        best = best_of(rows)
        yield from _trial_disagreements(label, rows)
        if best is None or params_of(params) != params_of(best["params"]):
            yield label, "params", params, None if best is None else best["params"]
        if not criterion.startswith(rows[0]["on"]):
            yield label, "chosen_on", criterion, rows[0]["on"]


def _trial_disagreements(label: str, rows: Sequence[Row]) -> Iterator[Disagreement]:
    params = set()
    for row in rows:
        if row["params"] in params:
            yield label, "params", row["params"], "each value once"
        params.add(row["params"])
        if row["on"] != rows[0]["on"] or not is_on_validation(row["on"]):
            yield label, "on", row["on"], "validation sets, the same for all"
        if (row["auroc"] is None) == (row["reason"] is None):
            yield label, "reason", row["reason"], "one where there is no AUROC"
        if row["auroc"] is not None and not 0 <= row["auroc"] <= 1:
            yield label, "auroc", row["auroc"], "a share"


def is_on_validation(criterion: str) -> bool:
    """Return whether a criterion is over validation sets alone."""
    match = CRITERION.fullmatch(criterion)
    return match is not None and all(
        part.endswith("/val") for side in match.groups() for part in side.split(" + ")
    )
