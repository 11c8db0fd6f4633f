"""Plots by name, and the results that a plot is of: entries, sets and metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.registry import Registry
from wordnet_splits.benchmark.clusters import Level
from wordnet_splits.metrics import ScoreSet

from ...comparison.entries import (
    BenchmarkResults,
    Entry,
    NamedResults,
    ResultsOrFolder,
    as_sequence,
    draws_of,
)
from ...comparison.side_by_side import ComparisonOptions, compare_draws_of
from ...results.metadata import RunFacts
from ...results.metric_rows import UNKNOWN_ROLES
from ...results.tables import ResultSets

REPLICATES = 200
Sets = Mapping[str, ScoreSet]
"""Name -> confidences of a set of images."""


@dataclass(frozen=True)
class Network:
    """One run of a model in the results."""

    model: str
    name: str
    results: NamedResults
    facts: RunFacts

    @property
    def predictions(self) -> pa.Table:
        """The run's predictions for every image (`scores.PREDICTED`); raises DataError without logits."""
        self.results.results.require_scores("this plot")
        rows = self.results.results.predicted(self.facts.run)
        if rows["prediction"].null_count:
            raise DataError(f"{self.name} gives no predictions", where=self.results.name)
        return rows


@dataclass(frozen=True)
class SelectionOptions:
    """The part of results to plot.

    Attributes
    ----------
    detectors : labels, all by default.
    groups : OOD sets, all by default.
    metric : replaces AUROC, for kinds of plots with a choice.
    store : folder of activations, for ``kim-7``
        and ``hierarchy``.
    best : number of models to plot, the best by the primary metric of the benchmark's paper; all by default.
    replicates : of the bootstrap behind intervals.
    over, cut : blocks of ``cliques``: ``images`` (benchmarks), ``classes``, ``subtrees`` (`compare_across`).
    """

    detectors: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    metric: str | None = None
    store: str | Path | None = None
    best: int | None = None
    replicates: int = REPLICATES
    over: Level = "images"
    cut: int | None = None


@dataclass(frozen=True, eq=False)
class Selection:
    """Results on one benchmark or resampled draw, and the part to plot.

    Attributes
    ----------
    draw : the entries of the selected detectors.
    groups : selected OOD sets, None for all.
    metric : replaces the plot's own metric, or None.
    store : folder of activations, or None.
    replicates : of the bootstrap behind intervals; 0 for none.
    left_out : sentence on the models that are not plotted, or "".
    others : the results on further benchmarks or draws, for the kinds that are across these.
    over, cut : see `SelectionOptions`.
    """

    draw: BenchmarkResults
    groups: tuple[str, ...] | None = None
    metric: str | None = None
    store: Path | None = None
    replicates: int = REPLICATES
    left_out: str = ""
    others: tuple[BenchmarkResults, ...] = ()
    over: Level = "images"
    cut: int | None = None

    @classmethod
    def from_results(
        cls, results: Sequence[ResultsOrFolder] | ResultsOrFolder, *, across: bool = False, **options: Any
    ) -> Selection:
        """Read results, on several benchmarks if ``across``; options are `SelectionOptions`."""
        part = SelectionOptions(**options)
        draws = draws_of(as_sequence(results), part.detectors, across=across)
        if len(draws) > 1 and not across:
            names = ", ".join(draw.benchmark for draw in draws)
            raise DataError(f"a plot needs results on one draw, got {names}", hint="`compare` is over draws")
        roles = ResultSets.from_results(draws[0].first).roles
        for name in part.groups or ():
            if name not in roles:
                raise unknown("set", name, roles, where="--group")
        if part.over != "images" and not across:
            raise DataError("this kind of plot has no levels", where="--over", hint="`cliques` has")
        if part.best is not None and len(draws) > 1:
            raise DataError("the best models are those of one benchmark", where="--best")
        groups = None if part.groups is None else tuple(part.groups)
        store = None if part.store is None else Path(part.store)
        others, shown = tuple(draws[1:]), (groups, part.metric, store, part.replicates)
        selection = cls(draws[0], *shown, others=others, over=part.over, cut=part.cut)
        return selection if part.best is None else selection.best_models(part.best)

    def best_models(self, count: int) -> Selection:
        """Return the part of the ``count`` best models, whose entries are in order of rank."""
        comparison = compare_draws_of([self.draw], ComparisonOptions(bootstrap=0))
        ranked = [(row["model"], row["detector"]) for row in comparison.rows()]
        models = list(dict.fromkeys(model for model, _ in ranked))
        of_best = [label for label in ranked if label[0] in models[:count]]
        by_label = {entry.label: entry for entry in self.entries}
        entries = tuple(by_label[label] for label in of_best)
        left_out = (
            ""
            if count >= len(models)
            else (f"The {count} best of {len(models)} models by {comparison.metric} on {comparison.on}.")
        )
        return replace(self, draw=replace(self.draw, entries=entries), left_out=left_out)

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return self.draw.benchmark

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The selected detectors, each on the runs of a model."""
        return self.draw.entries

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """Selected OOD set -> role."""
        roles = ResultSets.from_results(self.draw.first).roles
        return {name: role for name, role in roles.items() if self.groups is None or name in self.groups}

    @cached_property
    def unknown_sets(self) -> tuple[str, ...]:
        """The selected near and far sets; raises DataError if the selection is empty."""
        names = tuple(name for name, role in self.roles.items() if role in UNKNOWN_ROLES)
        if not names:
            raise DataError("none of the selected sets is near or far", where=self.benchmark)
        return names

    def label(self, entry: Entry) -> str:
        """Return an entry's name in a legend, as short as the other entries allow."""
        parts = []
        if len({e.model for e in self.entries}) > 1:
            parts.append(entry.model)
        if len({e.detector for e in self.entries}) > 1 or not parts:
            parts.append(entry.detector)
        return " ".join(parts)

    @property
    def labels(self) -> Mapping[tuple[str, str], str]:
        """(model, detector) -> name in a legend."""
        return {entry.label: self.label(entry) for entry in self.entries}

    def runs(self, entry: Entry) -> list[Sets]:
        """Return the sets of each run of an entry, by name: all ID sets and the selected OOD sets."""
        return [
            {name: each for name, each in run.items() if each.is_id or name in self.roles}
            for run in entry.scored()
        ]

    def networks(self) -> list[Network]:
        """Return the runs of all models."""
        return [
            Network(evaluation.labels[run.model], run.name, evaluation, run)
            for evaluation in self.draw.results
            for run in evaluation.results.about.runs
        ]

    def networks_by_model(self) -> Mapping[str, Sequence[Network]]:
        """Return the runs of each plotted model."""
        by_model: dict[str, list[Network]] = {entry.model: [] for entry in self.entries}
        for network in self.networks():
            by_model.get(network.model, []).append(network)
        return by_model

    def first_networks(self) -> Iterator[Network]:
        """Yield the first run of each model."""
        models = set()
        for network in self.networks():
            if network.model not in models:
                models.add(network.model)
                yield network


def of_roles(sets: Sets, *roles: str) -> Sets:
    """Return the sets that have one of the roles."""
    return {name: score_set for name, score_set in sets.items() if score_set.role in roles}


def classified_id(entry: Entry, sets: Sets) -> list[ScoreSet]:
    """Return the ID sets of a run, with the correctness of predictions."""
    id_sets = list(of_roles(sets, "id").values())
    if any(score_set.correct is None for score_set in id_sets):
        raise DataError(
            "cannot tell correct from wrong predictions: labels or predictions are missing",
            where=" ".join(entry.label),
        )
    return id_sets


def mean_over_runs(entry: Entry, metric: str, group: str, role: str) -> float:
    """Return the mean of a metric over an entry's runs; raise DataError if the group lacks a value."""
    values = entry.values(metric, group, role)
    if not values:
        raise DataError(
            f"no {metric} of {' '.join(entry.label)} on {group} ({role})", where=entry.runs[0][0].name
        )
    return float(np.mean(values))


PlotFunction = Callable[[Selection], Plot]


@dataclass(frozen=True)
class PlotKind:
    """A registered plot.

    Attributes
    ----------
    title : one sentence.
    paper : the figure that it reproduces, or "".
    function : results -> numbers.
    across : whether the results may be on several benchmarks.
    """

    name: str
    title: str
    paper: str
    function: PlotFunction
    across: bool = False

    def plot(self, selection: Selection) -> Plot:
        """Return the numbers of the plot; raise DataError if the results lack data for it."""
        plot = self.function(selection)
        if not plot.panels:
            raise DataError(
                f"{self.name} needs an OOD set, and the results have none", where=selection.benchmark
            )
        return replace(plot, notes=(selection.left_out, *plot.notes)) if selection.left_out else plot


PLOTS: Final = Registry[PlotKind]("plot", str(__package__), "wordnet_splits.plots")


def plot_kind(
    name: str, title: str, *, paper: str = "", across: bool = False
) -> Callable[[PlotFunction], PlotFunction]:
    """Register the decorated function as the plot called ``name``."""

    return PLOTS.register(name, lambda function: PlotKind(name, title, paper, function, across))


def list_plots() -> tuple[PlotKind, ...]:
    """Return every kind of plot, sorted by name."""
    return tuple(PLOTS.entries().values())


def get_plot(name: str) -> PlotKind:
    """Return the kind of plot called ``name``.

    Raises
    ------
    UnknownNameError : no such plot; the message offers similar names.
    """
    return PLOTS.find(name, where="--what")


def plot_data(results: Sequence[ResultsOrFolder] | ResultsOrFolder, kind: str, **options: Any) -> Plot:
    """Return a plot as numbers.

    Parameters
    ----------
    kind : name of the plot (`list_plots`).
    options : see `SelectionOptions`.

    Raises
    ------
    UnknownNameError : no such kind or set. DataError : the results lack data for the kind.
    """
    found = get_plot(kind)
    return found.plot(Selection.from_results(results, across=found.across, **options))
