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

from ..evaluation.tables import NOTHING, Sets, Table
from .entries import Draw

TableSpec = Mapping[str, Any]
Where = Mapping[str, str]
"""Axis -> value."""
Cell = tuple[str, Any]
"""(as printed, as it is)."""
AXES = ("model", "detector", "group")
PERCENT = 100
DEFAULT = (4, 5, 6, 8, 9, 10)
"""Tables printed unless others are named: the rest are one for each detector and set."""


@cache
def layout() -> Mapping[str, Any]:
    """Return what ``robustness.toml`` holds."""
    return tomllib.loads((files(str(__package__)) / "robustness.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class Cells:
    """Metrics in percent of every model, detector and OOD set of a draw.

    Attributes
    ----------
    values : (model, detector, group) -> metric -> values of its runs. axes : axis -> its values in order.
    """

    values: Mapping[tuple[str, str, str], Mapping[str, Sequence[float]]]
    axes: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, draw: Draw) -> Cells:
        """Read them from the rows of single OOD sets."""
        sets = Sets.of(draw.first)
        metrics = {name for several in layout()["metrics"].values() for name in several}
        values: dict[tuple[str, str, str], dict[str, list[float]]] = {}
        for entry in draw.entries:
            for group, role in sets.roles.items():
                found = {name: entry.values(name, group, role) for name in metrics}
                if all(found.values()):
                    percent = {name: [PERCENT * v for v in runs] for name, runs in found.items()}
                    values[(*entry.label, group)] = percent
        axes = {axis: tuple(dict.fromkeys(key[n] for key in values)) for n, axis in enumerate(AXES)}
        return cls(values, axes)

    def moments(self, where: Where, metric: str, over: str | None = None) -> tuple[float, float] | None:
        """Return mean and variance over runs, or of the mixture over an axis; None where a cell is absent."""
        if over is None:
            runs = self.values.get(_key(where))
            return None if runs is None else run_moments(runs[metric])
        parts = [self.moments({**where, over: value}, metric) for value in self.axes[over]]
        held = [part for part in parts if part is not None]
        if len(held) < len(parts) or not held:
            return None  # a mixture of fewer components is another score
        means, variances = zip(*held, strict=True)
        return mixture_moments(means, variances)

    def plain(self, where: Where, metric: str, over: str) -> Spread | None:
        """Return mean and sample sd over all runs of an axis, unweighted; None where a cell is absent."""
        cells = [self.values.get(_key({**where, over: value})) for value in self.axes[over]]
        held = [cell for cell in cells if cell is not None]
        if len(held) < len(cells) or not held:
            return None
        return spread([value for cell in held for value in cell[metric]])

    def robustness(self, where: Where, metric: str, over: str) -> Robustness | None:
        """Return the robustness score over an axis; None where a cell is absent."""
        found = self.moments(where, metric, over)
        if found is None:
            return None
        higher = get_metric(metric).higher_is_better
        if higher and found[0] == 0:
            return None
        return Robustness(*found, robustness_score(*found, higher_is_better=higher))


def _key(where: Where) -> tuple[str, str, str]:
    return where["model"], where["detector"], where["group"]


def robustness_tables(draw: Draw, numbers: Sequence[int] = DEFAULT) -> list[Table]:
    """Return the tables of these numbers, each in the paper's convention and then in ours.

    A table of mixtures is followed by one of plain means and standard deviations: a mixture weighs models by
    the inverse of the sd of their runs, which few runs estimate badly.

    Raises
    ------
    DataError : fewer than two models, or no OOD set, or a number that is none of 2 to 10.
    """
    specs = {spec["number"]: spec for spec in layout()["table"]}
    if absent := [number for number in numbers if number not in specs]:
        raise DataError(f"no robustness table {absent[0]}", where="--robustness", hint="they are 2 to 10")
    cells = Cells.of(draw)
    if len(cells.axes["model"]) < 2:
        raise DataError(
            "robustness is over models (optimizers), and there is one",
            where=draw.benchmark,
            hint="evaluate several --model, each with its seeds as runs",
        )
    return [
        table
        for convention, metrics in layout()["metrics"].items()
        for number in numbers
        for table in _tables(cells, specs[number], convention, metrics)
    ]


def notes_of(draw: Draw) -> list[str]:
    """Return what has to be said of robustness scores of these results."""
    if all(len(entry.runs) == 1 for entry in draw.entries):
        return [
            "Robustness: each model has one run, so variances over runs are 0 and the models weigh alike."
        ]
    return []


def _tables(cells: Cells, spec: TableSpec, convention: str, metrics: Sequence[str]) -> Iterator[Table]:
    names = layout()["titles"]
    about = {"paper": "the paper's convention", "ours": "our convention, ID positive"}[convention]
    for values in product(*(cells.axes[axis] for axis in spec["per"])):
        fixed = dict(zip(spec["per"], values, strict=True))
        unit = "in %" if spec.get("show") == "moments" else "score (eq. 8) of values in %"
        title = f"Table {spec['number']}: {spec['title'].format(**fixed)}, {unit} ({about})"
        if "best" in spec:
            columns: tuple[str, ...] = (spec["rows"], f"best {spec['of']}", names[metrics[0]])
            rows = list(_best(cells, spec, metrics[0]))
        else:
            columns = (spec["rows"], *(names[metric] for metric in metrics))
            rows = list(_rows(cells, spec, fixed, metrics))
        known = {"table": spec["number"], "convention": convention, **fixed}
        if rows:
            yield _table(title, columns, rows, known)
        if rows and spec.get("show") == "moments" and "over" in spec:
            what = f"{spec['plain'].format(**fixed)}, mean and standard deviation of all runs"
            plain = list(_plain_rows(cells, spec, fixed, metrics))
            title = f"Table {spec['number']}, unweighted: {what}, {unit} ({about})"
            yield _table(title, columns, plain, {**known, "unweighted": True})


def _table(
    title: str, columns: tuple[str, ...], rows: Sequence[Sequence[Cell]], known: Mapping[str, Any]
) -> Table:
    texts = tuple(tuple(text for text, _ in row) for row in rows)
    numbers = [
        {**known} | {name: value for name, (_, value) in zip(columns, row, strict=True)} for row in rows
    ]
    return Table(title, columns, texts, tuple(numbers))


def _rows(cells: Cells, spec: TableSpec, fixed: Where, metrics: Sequence[str]) -> Iterator[list[Cell]]:
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
        where = {**fixed, axis: value}
        if spec["show"] == "score":
            shown = [_score(cells.robustness(where, m, spec["over"])) for m in metrics]
        else:
            shown = [_moments(cells.moments(where, m, spec.get("over"))) for m in metrics]
        yield [(value, value), *shown]
    if spec.get("last"):
        yield [("mixture", "mixture"), *(_moments(cells.moments(fixed, m, axis)) for m in metrics)]


def _plain_rows(cells: Cells, spec: TableSpec, fixed: Where, metrics: Sequence[str]) -> Iterator[list[Cell]]:
    for value in cells.axes[spec["rows"]]:
        where = {**fixed, spec["rows"]: value}
        yield [(value, value), *(_mean_and_sd(cells.plain(where, m, spec["over"])) for m in metrics)]


def _best(cells: Cells, spec: TableSpec, metric: str) -> Iterator[list[Cell]]:
    for value in cells.axes[spec["rows"]]:
        found = {
            name: cells.robustness({spec["rows"]: value, spec["of"]: name}, metric, spec["over"])
            for name in cells.axes[spec["of"]]
        }
        held = {name: one.score for name, one in found.items() if one is not None}
        best = sorted(held, key=lambda name: held[name])[: spec["best"]]
        if best:
            scores = [held[name] for name in best]
            yield [(value, value), (", ".join(best), best), (", ".join(f"{s:.3f}" for s in scores), scores)]


def _moments(found: tuple[float, float] | None) -> Cell:
    return (NOTHING, None) if found is None else (f"{found[0]:.3f} | {found[1]:.3f}", found)


def _mean_and_sd(found: Spread | None) -> Cell:
    if found is None:
        return NOTHING, None
    if np.isnan(found.sd):  # of one run
        return f"{found.mean:.3f}", (found.mean, None)
    return f"{found.mean:.3f} ± {found.sd:.3f}", (found.mean, found.sd)


def _score(found: Robustness | None) -> Cell:
    return (NOTHING, None) if found is None else (f"{found.score:.3f}", found.score)
