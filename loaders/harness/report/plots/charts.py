"""Scatter plots, bar charts and heat maps of metrics, classes and predictions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Bar, Bars, HeatMap, Point, Points, Ranks
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics import ClassAuroc, nearness_trend, spread

from ...comparison.accuracy import MIN_UNITS, accuracy_correlations
from ...comparison.across import across_of
from ...comparison.class_nearness import REFERENCE, nearness_of
from ...comparison.draws import against_full_spectrum, improvements
from ...comparison.ranking import Scope, list_scopes, rank_entries, require_same_images, scope_named
from ...comparison.ranking_tables import interval_notes
from ...comparison.semantics import (
    ClassMean,
    Predicted,
    id_classes_of,
    means_by,
    prediction_graph,
    predictions_by_class,
    pruned,
)
from ...data.arrays import Array
from ...detectors.registry import find_spec
from ...hierarchy.answered_images import scored_images, stored_logits
from ...models.class_map import LabelSpace
from ...results.metric_rows import MEAN, POOLED, UNKNOWN_ROLES
from ...results.tables import ResultSets
from .selection import Selection, mean_over_runs, plot_kind

MAX_NAMES = 12
"""Largest number of points whose names are next to the points; otherwise the legend lists the names."""


@plot_kind("near-far", "mean AUROC over near sets against that over far sets", paper="OpenOOD, figure 4")
def near_far(selection: Selection) -> Plot:
    """Return a point for each model and detector, the means of AUROC or another metric over runs."""
    metric = selection.metric or "auroc"
    points = []
    for entry in selection.entries:
        near, far = (100 * mean_over_runs(entry, metric, MEAN, role) for role in ("near", "far"))
        points.append(_point(selection, entry.label, near, far))
    panel = Points("", f"near {metric} in %", f"far {metric} in %", tuple(points), diagonal=True)
    return Plot(f"{selection.benchmark}: near against far", (panel,))


@plot_kind(
    "full-spectrum",
    "AUROC with covariate-shifted ID counted as ID, against without",
    paper="OpenOOD, figure 6",
)
def full_spectrum(selection: Selection) -> Plot:
    """Return a panel for near and a panel for far, with a point for each model and detector."""
    rows = against_full_spectrum(selection.draw, [selection.metric or "auroc"])
    if not rows:
        raise DataError(
            "there is no full-spectrum value: the benchmark has no covariate-shifted ID",
            where=selection.benchmark,
        )
    if len(shifted := {row.shifted for row in rows}) > 1:
        message = "a plot needs full-spectrum values with the same covariate-shifted sets"
        raise DataError(message, where=selection.benchmark, hint="plot the results one at a time")
    panels = []
    for role in dict.fromkeys(row.role for row in rows):
        points = tuple(
            _point(selection, (row.model, row.detector), 100 * row.standard, 100 * row.full_spectrum)
            for row in rows
            if row.role == role
        )
        panels.append(Points(role, "standard, in %", "full-spectrum, in %", points, diagonal=True))
    sets = ", ".join(*shifted)
    return Plot(f"{selection.benchmark}: standard against full-spectrum ({sets} count as ID)", tuple(panels))


def _point(selection: Selection, entry: tuple[str, str], x: float, y: float) -> Point:
    """Return the point of a model and detector; with more than `MAX_NAMES` points, the legend names it."""
    name = selection.labels[entry]
    if len(selection.entries) <= MAX_NAMES:
        return Point(name, x, y)
    model, detector = entry
    if len({e.model for e in selection.entries}) == 1:
        return Point(name, x, y, kind=detector, label=False)
    several = len({e.detector for e in selection.entries}) > 1
    return Point(name, x, y, kind=model, label=False, marker=detector if several else "")


@plot_kind("nearness", "AUROC of each OOD class against its similarity to the nearest ID class")
def nearness(selection: Selection) -> Plot:
    """Return a panel for each detector, AUROC a mean over runs, with the rank correlation over classes."""
    panels = []
    for entry in selection.entries:
        aurocs: dict[tuple[str, str, str], list[float]] = {}
        rows: dict[tuple[str, str, str], dict[str, Any]] = {}
        for evaluation, number in entry.runs:
            by_class = evaluation.results.by_class
            of_run = pc.and_(
                pc.equal(by_class["detector"], entry.detector), pc.equal(by_class["run"], number)
            )
            for row in by_class.filter(of_run).to_pylist():
                if None not in (row["similarity"], row["auroc"]) and row["group"] in selection.roles:
                    key = row["group"], row["source"], row["class_id"]
                    rows.setdefault(key, row)
                    aurocs.setdefault(key, []).append(row["auroc"])
        means = {key: float(np.mean(values)) for key, values in aurocs.items()}
        points = tuple(
            Point(row["class_id"], row["similarity"], 100 * means[key], row["group"], label=False)
            for key, row in rows.items()
        )
        trend = nearness_trend(
            [ClassAuroc("/".join(key), row["n_ood"], means[key]) for key, row in rows.items()],
            {"/".join(key): row["similarity"] for key, row in rows.items()},
        )
        correlation = "" if np.isnan(trend) else f" (rank correlation {trend:.3f})"
        title = f"{selection.label(entry)}{correlation}"
        panels.append(Points(title, "similarity to the nearest ID class", "AUROC in %", points))
    if not any(panel.points for panel in panels):
        raise DataError("no OOD class has a synset", where=selection.benchmark)
    return Plot(f"{selection.benchmark}: OOD classes by similarity to ID classes", tuple(panels))


@plot_kind("kim-5", "improvement of pooled AURC over MCP in %", paper="Kim, figure 5")
def improvement(selection: Selection) -> Plot:
    """Return 100 (AURC of MCP - AURC)/AURC of MCP, with intervals of the paired bootstrap."""
    scope = scope_named("pooled", ResultSets.from_results(selection.draw.first))
    ranking = rank_entries(selection.draw, "aurc_unknown", scope, replicates=selection.replicates)
    labels = selection.labels
    bars = [Bar(labels[i.model, i.detector], i.percent, i.lo, i.hi) for i in improvements(ranking)]
    panel = Bars("", "improvement over MCP in %: positive is better", tuple(bars))
    return Plot(f"{selection.benchmark}: improvement over MCP", (panel,), tuple(interval_notes(ranking)))


@plot_kind(
    "robustness",
    "a metric of each model (optimizer), mean and spread over its runs, a panel for each OOD set",
    paper="Abdelzad, figures 1 to 4",
)
def robustness(selection: Selection) -> Plot:
    """Return AUROC or another metric; the paper's figures 1 and 3 show one detector, 2 and 4 two."""
    metric = selection.metric or "auroc"
    if len({entry.model for entry in selection.entries}) < 2:
        raise DataError("robustness needs several models (optimizers), got one", where=selection.benchmark)
    panels = tuple(
        _bars_of_models(selection, metric, group, group, role) for group, role in selection.roles.items()
    )
    return Plot(f"{selection.benchmark}: {metric} over models", panels)


def _bars_of_models(selection: Selection, metric: str, title: str, group: str, role: str) -> Bars:
    """Return a bar for each model and detector, mean and standard deviation over runs."""
    bars = []
    for entry in selection.entries:
        values = entry.values(metric, group, role)
        if not values:
            raise DataError(f"{' '.join(entry.label)} has no {metric} on {title}", where=selection.benchmark)
        runs = spread(100 * np.array(values))
        sd = 0.0 if np.isnan(runs.sd) else runs.sd
        bars.append(Bar(entry.model, runs.mean, runs.mean - sd, runs.mean + sd, entry.detector))
    return Bars(title, f"{metric} in %, mean and sd over runs", tuple(bars))


def _means_or_sets(selection: Selection) -> list[Scope]:
    """Return the selected sets, if some were selected, else the means over near and over far sets."""
    scopes = list_scopes(ResultSets.from_results(selection.draw.first))
    wanted = UNKNOWN_ROLES if selection.groups is None else selection.groups
    return [scope for scope in scopes if scope.name in wanted]


@plot_kind(
    "architectures",
    "a metric of each detector over architectures (models), means over near and over far sets",
    paper="OpenOOD, figure 5",
)
def architectures(selection: Selection) -> Plot:
    """Return bars of AUROC or another metric by model, in order of accuracy, which follows its name.

    The accuracy is a mean over runs, from a detector that keeps the network's predictions.
    """
    metric = selection.metric or "auroc"
    if len({entry.model for entry in selection.entries}) < 2:
        raise DataError("architectures needs several models, got one", where=selection.benchmark)
    accuracy: dict[str, float] = {}
    for entry in selection.entries:
        spec = find_spec(entry.detector.partition("[")[0])
        if spec is not None and not hasattr(spec.implementation, "predict"):
            values = entry.values("accuracy", POOLED, "id")
            accuracy.setdefault(entry.model, float(np.mean(values)) if values else float("nan"))
    known = {model: value for model, value in accuracy.items() if not np.isnan(value)}
    columns = zip(*(entry.model for entry in selection.entries), strict=False)
    shared = "".join(column[0] for column in takewhile(lambda letters: len({*letters}) == 1, columns))
    prefix = re.sub(r"[^/-]*$", "", shared)
    names = {entry.model: entry.model.removeprefix(prefix) for entry in selection.entries}
    names |= {model: f"{names[model]} ({100 * value:.1f}%)" for model, value in known.items()}
    order = sorted(selection.entries, key=lambda entry: known.get(entry.model, 0.0))
    ordered = replace(selection, draw=replace(selection.draw, entries=tuple(order)))
    panels = []
    for scope in _means_or_sets(selection):
        require_same_images(selection.draw, metric, scope)
        panel = _bars_of_models(ordered, metric, scope.name, scope.group, scope.role)
        bars = tuple(replace(bar, category=names[bar.category]) for bar in panel.bars)
        panels.append(replace(panel, bars=bars))
    notes = ["Accuracy in brackets."] if known else ["No detector here has the accuracy of the network."]
    notes += [f"Every name begins with {prefix}."] if prefix else []
    title = f"{selection.benchmark}: {metric} over architectures"
    return Plot(title, tuple(panels), tuple(notes), columns=2)


@plot_kind(
    "accuracy",
    "a metric against accuracy over networks, and their rank correlation with its interval",
    paper="Abdelzad, section 4.7",
)
def accuracy_scatter(selection: Selection) -> Plot:
    """Return a panel for each detector and near and far (or each selected set), a point for each network."""
    metric = selection.metric or "auroc"
    scopes, panels = _means_or_sets(selection), []
    for c in accuracy_correlations(selection.draw, metric, scopes, replicates=selection.replicates):
        ends = "no interval" if c.lo is None or c.hi is None else f"{c.lo:.2f} to {c.hi:.2f}"
        rho = "undefined" if np.isnan(c.rho) else f"{c.rho:.2f} ({ends})"
        points = tuple(Point(p.model, 100 * p.accuracy, 100 * p.value, p.model, False) for p in c.points)
        title = f"{c.detector}, {c.on}: Spearman {rho}, n = {len(points)}"
        panels.append(Points(title, "accuracy in %", f"{metric} in %", points))
    note = (
        f"Spearman's rank correlation over networks; 95% intervals of {selection.replicates} bootstrap "
        f"replicates over models, each with its runs; none below {MIN_UNITS} models."
    )
    return Plot(f"{selection.benchmark}: accuracy and {metric}", tuple(panels), (note,), columns=2)


@plot_kind(
    "cliques",
    "mean ranks over benchmarks (--over classes or subtrees: over these), and what is not told apart",
    paper="Demšar, figure 1",
    across=True,
)
def critical_differences(selection: Selection) -> Plot:
    """Return a panel for near and far (or each selected set), ranked over all benchmarks that have it."""
    draws, panels, notes = (selection.draw, *selection.others), [], dict[str, None]()
    sets = [{scope.name for scope in list_scopes(ResultSets.from_results(draw.first))} for draw in draws]
    for name in UNKNOWN_ROLES if selection.groups is None else selection.groups:
        held = [draw for draw, names in zip(draws, sets, strict=True) if name in names]
        if held:
            options: Any = {"over": selection.over, "cut": selection.cut}
            found = across_of(held, metric=selection.metric, on=name, **options)
            title = f"{name}: {found.metric} over {found.unit}"
            several = len({entry.model for entry in found.entries}) > 1
            rows = tuple(f"{e.model} {e.detector}" if several else e.detector for e in found.entries)
            means = tuple(entry.mean_rank for entry in found.entries)
            difference = found.test.critical_difference
            panels.append(Ranks(title, "mean rank", rows, means, found.cliques, difference))
            notes |= dict.fromkeys(f"{name}: {sentence}" for sentence in (*found.sentences(), *found.notes))
    return Plot("Mean ranks and Nemenyi's critical difference", tuple(panels), tuple(notes), columns=2)


@plot_kind("nearness-trend", "rank correlation of nearness and AUROC over OOD classes, for each detector")
def nearness_correlations(selection: Selection) -> Plot:
    """Return Spearman's correlations with bootstrap intervals over classes, most negative on top."""
    outcome = nearness_of(selection.draw, selection.unknown_sets, bootstrap=selection.replicates)
    rows = [c for c in outcome.correlations if (c.measure, c.to) == REFERENCE]
    rows.sort(key=lambda correlation: correlation.rho)
    labels = selection.labels
    bars = tuple(Bar(labels[c.model, c.detector], c.rho, c.lo, c.hi) for c in rows)
    panel = Bars("", "rank correlation (negative: nearer is harder)", bars)
    return Plot(f"{selection.benchmark}: does nearness predict difficulty?", (panel,))


MAX_AXIS_NAMES = 120
"""Classes of an axis that get their names; more could not be read."""


@plot_kind("predictions", "share of each OOD class that is predicted as each ID class")
def predictions(selection: Selection) -> Plot:
    """Return a panel for each OOD set; predictions outside the ID classes do not count."""
    network, manifest = next(selection.first_networks()), selection.draw.manifest()
    table = network.predictions
    width = len(LabelSpace.of(manifest.classes).labels)
    panels = []
    for group in selection.roles:
        rows = table.filter(pc.equal(table["group"], group))
        if rows.num_rows:
            predicted = rows["prediction"].to_numpy()
            shares = np.zeros((rows.num_rows, width))
            valid = np.flatnonzero((predicted >= 0) & (predicted < width))
            shares[valid, predicted[valid]] = 1
            panels.append(_heat(group, rows["class_id"].to_pylist(), shares, manifest))
    return Plot(f"{selection.benchmark}: predictions of OOD classes, {network.name}", tuple(panels))


@plot_kind("kim-7", "mean softmax of each OOD class over the ID classes (--store)", paper="Kim, figure 7")
def mean_softmax(selection: Selection) -> Plot:
    """Return a panel for each OOD set, from the logits that the first network's evaluation stored."""
    network, manifest = next(selection.first_networks()), selection.draw.manifest()
    if selection.store is None:
        raise DataError(
            "the results hold no softmax",
            where="kim-7",
            hint="give the folder of activations, --store DIR, or plot `predictions`",
        )
    panels = []
    for group in selection.roles:
        table = scored_images(network.results.results, manifest, group)
        logits = stored_logits(network.facts, manifest, group, table, selection.store, "kim-7")
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax = exponents / exponents.sum(axis=1, keepdims=True)
        panels.append(_heat(group, table["class_id"].to_pylist(), softmax, manifest))
    return Plot(f"{selection.benchmark}: mean softmax of OOD classes, {network.name}", tuple(panels))


def _heat(group: str, class_ids: Sequence[str], values: Array, manifest: Manifest) -> HeatMap:
    """Return the mean row of each class's images, classes ordered by their nearest ID class."""
    labels = LabelSpace.of(manifest.classes).labels
    classes, of_image = np.unique(class_ids, return_inverse=True)
    sums = np.zeros((len(classes), values.shape[1]))
    np.add.at(sums, of_image.reshape(-1), values)
    means = sums / np.bincount(of_image.reshape(-1))[:, None]
    rows = manifest.classes.filter(pc.equal(manifest.classes["group"], group)).to_pylist()
    column_of = {label.class_id: n for n, label in enumerate(labels)}
    nearest = {row["class_id"]: column_of.get(row["nearest_id"], len(labels)) for row in rows}
    names = {row["class_id"]: row["name"] for row in rows}
    order = sorted(range(len(classes)), key=lambda n: (nearest.get(classes[n], len(labels)), classes[n]))
    return HeatMap(
        group,
        "ID class",
        "OOD class",
        _axis_names([str(names.get(classes[n], classes[n])) for n in order]),
        _axis_names([label.name for label in labels]),
        means[order],
    )


def _axis_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names) if len(names) <= MAX_AXIS_NAMES else ("",) * len(names)


CLASSES = 10
LABEL = "mean similarity of true and predicted class"


@plot_kind(
    "recalcati-2", "true classes whose predictions are nearest in the hierarchy", paper="Recalcati, figure 2"
)
def nearest_true(selection: Selection) -> Plot:
    """Return the ten best true classes of all sets, for the first network."""
    best = means_by(_predictions(selection), predicted=False)[:CLASSES]
    return Plot(f"{selection.benchmark}: best true classes", (_panel("true class", best),))


@plot_kind(
    "recalcati-3", "predicted classes whose OOD images are nearest, and farthest", paper="Recalcati, figure 3"
)
def best_and_worst(selection: Selection) -> Plot:
    """Return the ten best and ten worst predicted classes over the OOD sets, for the first network."""
    ood = [
        prediction for prediction in _predictions(selection) if prediction.role in ("near", "far", "external")
    ]
    means = means_by(ood, predicted=True)
    if not means:
        raise DataError("no OOD class has a synset", where=selection.benchmark)
    panels = (_panel("best", means[:CLASSES]), _panel("worst", means[-CLASSES:]))
    return Plot(f"{selection.benchmark}: predicted classes, over OOD", panels)


def pruned_graph(selection: Selection) -> list[Predicted]:
    """Return the edges of Recalcati's figure 4 (`semantics.pruned`); raise DataError if none is left."""
    edges = pruned(prediction_graph(_predictions(selection)), id_classes_of(selection.draw.manifest()))
    if not edges:
        raise DataError(
            "pruning leaves no edge: the OOD sets are of the ID source", where=selection.benchmark
        )
    return edges


def _predictions(selection: Selection) -> list[Predicted]:
    network = next(selection.first_networks())
    return predictions_by_class(network.predictions, selection.draw.manifest())


def _panel(title: str, means: Sequence[ClassMean]) -> Bars:
    return Bars(title, LABEL, tuple(Bar(f"{m.of.label} ({m.images:,})", m.similarity) for m in means))
