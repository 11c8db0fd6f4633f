"""Abdelzad's tables 2 to 10 over any results of several models: see ``robustness.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    Robustness,
    Spread,
    get_metric,
    mixture_moments,
    robustness_score,
    run_moments,
    spread,
)
from wordnet_splits.metrics.robustness import CV, Formula

from ..results.metric_rows import label_of
from ..results.table import NOTHING, Table
from ..results.tables import ResultSets
from .entries import BenchmarkResults

TableSpec = Mapping[str, Any]
Position = Mapping[str, str]
"""Axis -> value."""
Cell = tuple[str, Any]
"""(text, unrounded value)."""
AXES = ("model", "detector", "group")
PERCENT = 100
DEFAULT = (4, 5, 6, 8, 9, 10)
"""Numbers of the tables printed by default; each further number is a table per detector and set."""


@cache
def layout() -> Mapping[str, Any]:
    """Return the content of ``robustness.toml``."""
    return tomllib.loads((files(str(__package__)) / "robustness.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class Cells:
    """Metrics in percent of every model, detector and OOD set of a draw.

    Attributes
    ----------
    values : (model, detector, group) -> metric -> values of its runs.
    axes : axis -> its values in order.
    formula : of the scores, as of `robustness_score`.
    """

    values: Mapping[tuple[str, str, str], Mapping[str, Sequence[float]]]
    axes: Mapping[str, tuple[str, ...]]
    formula: Formula | str = CV

    @property
    def formula_words(self) -> str:
        """The formula in titles."""
        function = self.formula
        named = function if isinstance(function, str) else getattr(function, "__name__", repr(function))
        return "eq. 8" if named == CV else f"formula {named}"

    @classmethod
    def from_draw(cls, draw: BenchmarkResults, formula: Formula | str = CV) -> Cells:
        """Read them from the rows of single OOD sets."""
        sets = ResultSets.from_results(draw.first)
        metrics = {name for names in layout()["metrics"].values() for name in names}
        values: dict[tuple[str, str, str], dict[str, list[float]]] = {}
        for entry in draw.entries:
            for group, role in sets.roles.items():
                by_metric = {name: entry.values(name, group, role) for name in metrics}
                if all(by_metric.values()):
                    percent = {name: [PERCENT * v for v in runs] for name, runs in by_metric.items()}
                    values[(*entry.label, group)] = percent
        axes = {axis: tuple(dict.fromkeys(key[n] for key in values)) for n, axis in enumerate(AXES)}
        return cls(values, axes, formula)

    def moments(self, position: Position, metric: str, over: str | None = None) -> tuple[float, float] | None:
        """Return mean and variance over runs, or of the mixture over an axis; None if a cell is absent."""
        if over is None:
            runs = self.values.get(_key(position))
            return None if runs is None else run_moments(runs[metric])
        parts = [self.moments({**position, over: value}, metric) for value in self.axes[over]]
        present = [part for part in parts if part is not None]
        if len(present) < len(parts) or not present:
            return None  # a mixture of fewer components is another score
        means, variances = zip(*present, strict=True)
        return mixture_moments(means, variances)

    def unweighted(self, position: Position, metric: str, over: str) -> Spread | None:
        """Return mean and sample sd over all runs of an axis, unweighted; None if a cell is absent."""
        cells = [self.values.get(_key({**position, over: value})) for value in self.axes[over]]
        present = [cell for cell in cells if cell is not None]
        if len(present) < len(cells) or not present:
            return None
        return spread([value for cell in present for value in cell[metric]])

    def robustness(self, position: Position, metric: str, over: str) -> Robustness | None:
        """Return the robustness score over an axis; None if a cell is absent."""
        moments = self.moments(position, metric, over)
        if moments is None:
            return None
        higher = get_metric(metric).higher_is_better
        if self.formula == CV and higher and moments[0] == 0:
            return None
        score = robustness_score(*moments, higher_is_better=higher, formula=self.formula)
        return Robustness(*moments, score)


def _key(position: Position) -> tuple[str, str, str]:
    return position["model"], position["detector"], position["group"]


def robustness_tables(
    draw: BenchmarkResults, numbers: Sequence[int] = DEFAULT, formula: Formula | str = CV
) -> list[Table]:
    """Return tables by their numbers, each in the paper's convention and then in this package's.

    A table of mixtures is followed by a table of unweighted means and standard deviations: a mixture weights
    models by the inverse of the sd of their runs, and few runs give a poor estimate of the sd.

    Raises
    ------
    DataError : fewer than two models, no OOD set, or a number not between 2 and 10.
    """
    specs = {spec["number"]: spec for spec in layout()["table"]}
    if unknown := [number for number in numbers if number not in specs]:
        raise DataError(f"no robustness table {unknown[0]}", where="--robustness", hint="they are 2 to 10")
    cells = Cells.from_draw(draw, formula)
    if len(cells.axes["model"]) < 2:
        raise DataError(
            "robustness needs several models (optimizers), got one",
            where=draw.benchmark,
            hint="evaluate several --model, each with its seeds as runs",
        )
    return [
        table
        for convention, metrics in layout()["metrics"].items()
        for number in numbers
        for table in _tables(cells, specs[number], convention, metrics)
    ]


def robustness_notes(draw: BenchmarkResults) -> list[str]:
    """Return caveats on robustness scores of these results."""
    if all(len(entry.runs) == 1 for entry in draw.entries):
        return [
            "Robustness: each model has one run, so variances over runs are 0 and the models weigh alike."
        ]
    return []


def _tables(cells: Cells, spec: TableSpec, convention: str, metrics: Sequence[str]) -> Iterator[Table]:
    convention_words = {"paper": "the paper's convention", "ours": "our convention, ID positive"}[convention]
    for values in product(*(cells.axes[axis] for axis in spec["per"])):
        fixed = dict(zip(spec["per"], values, strict=True))
        unit = "in %" if spec.get("show") == "moments" else f"score ({cells.formula_words}) of values in %"
        title = f"Table {spec['number']}: {spec['title'].format(**fixed)}, {unit} ({convention_words})"
        if "best" in spec:
            columns: tuple[str, ...] = (spec["rows"], f"best {spec['of']}", label_of(metrics[0]))
            rows = list(_best(cells, spec, metrics[0]))
        else:
            columns = (spec["rows"], *(label_of(metric) for metric in metrics))
            rows = list(_rows(cells, spec, fixed, metrics))
        keys = {"table": spec["number"], "convention": convention, **fixed}
        if rows:
            yield _table(title, columns, rows, keys)
        if rows and spec.get("show") == "moments" and "over" in spec:
            subject = f"{spec['plain'].format(**fixed)}, mean and standard deviation of all runs"
            rows = []
            for value in cells.axes[spec["rows"]]:
                position = {**fixed, spec["rows"]: value}
                runs = [cells.unweighted(position, metric, spec["over"]) for metric in metrics]
                rows.append([(value, value), *map(_mean_and_sd, runs)])
            title = f"Table {spec['number']}, unweighted: {subject}, {unit} ({convention_words})"
            yield _table(title, columns, rows, {**keys, "unweighted": True})


def _table(
    title: str, columns: tuple[str, ...], rows: Sequence[Sequence[Cell]], keys: Mapping[str, Any]
) -> Table:
    texts = tuple(tuple(text for text, _ in row) for row in rows)
    values = [{**keys, **dict(zip(columns, (value for _, value in row), strict=True))} for row in rows]
    return Table(title, columns, texts, tuple(values))


def _rows(cells: Cells, spec: TableSpec, fixed: Position, metrics: Sequence[str]) -> Iterator[list[Cell]]:
    axis = spec["rows"]
    if axis == "run":
        runs = cells.values.get(_key(fixed))
        if runs is None:
            return
        for n in range(len(runs[metrics[0]])):
            yield [(str(n), n), *((f"{runs[m][n]:.3f}", runs[m][n]) for m in metrics)]
        yield [("mean | variance",) * 2, *(_moments(cells.moments(fixed, m)) for m in metrics)]
        return
    for value in cells.axes[axis]:
        position = {**fixed, axis: value}
        if spec["show"] == "score":
            row = [_score(cells.robustness(position, m, spec["over"])) for m in metrics]
        else:
            row = [_moments(cells.moments(position, m, spec.get("over"))) for m in metrics]
        yield [(value, value), *row]
    if spec.get("last"):
        yield [("mixture", "mixture"), *(_moments(cells.moments(fixed, m, axis)) for m in metrics)]


def _best(cells: Cells, spec: TableSpec, metric: str) -> Iterator[list[Cell]]:
    for value in cells.axes[spec["rows"]]:
        by_name = {
            name: cells.robustness({spec["rows"]: value, spec["of"]: name}, metric, spec["over"])
            for name in cells.axes[spec["of"]]
        }
        scores = {name: robustness.score for name, robustness in by_name.items() if robustness is not None}
        best = sorted(scores, key=lambda name: scores[name])[: spec["best"]]
        if best:
            best_scores = [scores[name] for name in best]
            score_text = ", ".join(f"{score:.3f}" for score in best_scores)
            yield [(value, value), (", ".join(best), best), (score_text, best_scores)]


def _moments(moments: tuple[float, float] | None) -> Cell:
    return (NOTHING, None) if moments is None else (f"{moments[0]:.3f} | {moments[1]:.3f}", moments)


def _mean_and_sd(runs: Spread | None) -> Cell:
    if runs is None:
        return NOTHING, None
    if np.isnan(runs.sd):  # a single run
        return f"{runs.mean:.3f}", (runs.mean, None)
    return f"{runs.mean:.3f} ± {runs.sd:.3f}", (runs.mean, runs.sd)


def _score(robustness: Robustness | None) -> Cell:
    return (NOTHING, None) if robustness is None else (f"{robustness.score:.3f}", robustness.score)
