"""Scatter plots and bar charts: near and far, full-spectrum, improvement, robustness, nearness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Bar, Bars, Point, Points
from wordnet_splits.metrics import ClassAuroc, nearness_trend, spread

from ...comparison.class_nearness import REFERENCE, nearness_of
from ...comparison.draws import against_full_spectrum, improvements
from ...comparison.ranking import rank_entries, scope_named
from ...results.metric_rows import MEAN
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
    panels = []
    for role in dict.fromkeys(row.role for row in rows):
        points = tuple(
            _point(selection, (row.model, row.detector), 100 * row.standard, 100 * row.full_spectrum)
            for row in rows
            if row.role == role
        )
        panels.append(Points(role, "standard, in %", "full-spectrum, in %", points, diagonal=True))
    return Plot(f"{selection.benchmark}: standard against full-spectrum", tuple(panels))


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
        raise DataError("no OOD class has a synset, so none has a similarity", where=selection.benchmark)
    return Plot(f"{selection.benchmark}: is detection harder nearby?", tuple(panels))


@plot_kind("kim-5", "improvement of pooled AURC over MCP in %", paper="Kim, figure 5")
def improvement(selection: Selection) -> Plot:
    """Return 100 (AURC of MCP - AURC)/AURC of MCP, with intervals of the paired bootstrap."""
    scope = scope_named("pooled", ResultSets.of(selection.draw.first))
    ranking = rank_entries(selection.draw, "aurc_unknown", scope, replicates=selection.replicates)
    labels = selection.labels
    bars = [Bar(labels[i.model, i.detector], i.percent, i.lo, i.hi) for i in improvements(ranking)]
    panel = Bars("", "improvement over MCP in %: positive is better", tuple(bars))
    return Plot(f"{selection.benchmark}: improvement over MCP", (panel,))


@plot_kind(
    "robustness",
    "a metric of each model (optimizer), mean and spread over its runs, a panel for each OOD set",
    paper="Abdelzad, figures 1 to 4",
)
def robustness(selection: Selection) -> Plot:
    """Return AUROC or another metric; the paper's figures 1 and 3 show one detector, 2 and 4 two."""
    metric = selection.metric or "auroc"
    if len({entry.model for entry in selection.entries}) < 2:
        raise DataError("robustness is over models (optimizers), and there is one", where=selection.benchmark)
    panels = []
    for group, role in selection.roles.items():
        bars = []
        for entry in selection.entries:
            values = entry.values(metric, group, role)
            if not values:
                raise DataError(
                    f"{' '.join(entry.label)} has no {metric} on {group}", where=selection.benchmark
                )
            runs = spread(100 * np.array(values))
            sd = 0.0 if np.isnan(runs.sd) else runs.sd
            bars.append(Bar(entry.model, runs.mean, runs.mean - sd, runs.mean + sd, entry.detector))
        panels.append(Bars(group, f"{metric} in %, mean and sd over runs", tuple(bars)))
    return Plot(f"{selection.benchmark}: {metric} over models", tuple(panels))


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
