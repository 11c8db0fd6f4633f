"""The model and detector that rows of results name, compared with ``about.json`` and the detector's label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wordnet_splits.base.errors import SplitsError, UnknownNameError
from wordnet_splits.base.text_formats import parse_json

from ..detectors.parsing import parse_detectors
from ..detectors.registry import get_spec
from .schema import MODEL, About, ResultTables, RunFacts
from .sweeps import Disagreement

OF_ALL = ("benchmark", "version", "images_fingerprint")
"""Columns that are the same in every row, and fields of `About`."""
OF_DETECTOR = ("model", "model_key", "transform_key", "run", "detector", "params", "chosen_on")


def disagreements(results: ResultTables) -> Iterator[Disagreement]:
    """Yield where rows of results contradict ``about.json``, a detector's label, or the record of a sweep."""
    about, table = results.about, results.results
    for name in OF_ALL:
        due = getattr(about, name)
        for value in table[name].unique().to_pylist():
            if value != due:
                yield "every row", name, value, due
    pairs = results.sweeps.select(["detector", "run"]).group_by(["detector", "run"]).aggregate([])
    swept = {(row["detector"], row["run"]) for row in pairs.to_pylist()}  # of as many rows as anyone likes
    used: dict[tuple[str, int], dict[str, Any]] = {}
    for values in dict.fromkeys(zip(*(table[name].to_pylist() for name in OF_DETECTOR), strict=True)):
        row = dict(zip(OF_DETECTOR, values, strict=True))
        place = f"{row['detector']}, {row['run']}"
        first = used.setdefault((row["detector"], row["run"]), row)
        yield from ((place, name, row[name], first[name]) for name in OF_DETECTOR if row[name] != first[name])
        if first is row:
            yield from _of_model(place, row, about)
            yield from _of_detector(place, row, (row["detector"], row["run"]) in swept)


def _of_model(place: str, row: Mapping[str, Any], about: About) -> Iterator[Disagreement]:
    facts = {run.run: run for run in about.runs}
    if row["run"] not in facts:
        yield place, "run", row["run"], "a run that about.json describes"
        return
    run = facts[row["run"]]
    together = (
        about.runs_of(run.model) if "+" in row["model_key"] else (run,)
    )  # an ensemble is of all its runs
    if row["model"] != run.model:
        yield place, "model", row["model"], run.model
    for name, due in (("model_key", _model_keys(together)), ("transform_key", _transform_keys(together))):
        if set(row[name].split("+")) != due:
            yield place, name, row[name], "+".join(sorted(due))


def _model_keys(runs: Sequence[RunFacts]) -> set[str]:
    return {run.model_key for run in runs}


def _transform_keys(runs: Sequence[RunFacts]) -> set[str]:
    return {key for run in runs for key in run.transforms}


def _of_detector(place: str, row: Mapping[str, Any], swept: bool) -> Iterator[Disagreement]:
    """Yield where the parameters are not those of the label; `sweeps` compares what a sweep chose."""
    try:
        params = parse_json(row["params"], where="params")
    except SplitsError:
        params = None
    if not isinstance(params, dict):
        yield place, "params", row["params"], "a JSON object"
    elif row["chosen_on"] is not None:
        if not swept:
            yield place, "chosen_on", row["chosen_on"], "a sweep that sweeps.parquet records"
    elif not swept and (due := _params_of(row["detector"])) is not None and params != due:
        yield place, "params", params, due


def _params_of(label: str) -> dict[str, Any] | None:
    """Return the parameters that a detector's label stands for; None where it is not registered."""
    if label == MODEL:
        return {}
    try:
        get_spec(label.partition("[")[0])
    except UnknownNameError:  # a detector of somebody's own is not imported to check results
        return None
    try:
        (chosen,) = parse_detectors(label)
    except SplitsError as error:
        return {"": error.what}
    return dict(chosen.params)
