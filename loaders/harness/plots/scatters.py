"""Scatter plots: near against far, standard against full-spectrum, AUROC of a class against its nearness."""

from __future__ import annotations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Point, Points
from wordnet_splits.metrics import ClassAuroc, nearness_trend

from ..comparison.improvements import against_full_spectrum
from ..evaluation.metric_rows import MEAN
from .registry import plot_kind
from .selection import Selection, mean_over_runs


@plot_kind("near-far", "mean AUROC over near sets against that over far sets", paper="OpenOOD, figure 4")
def near_far(selection: Selection) -> Plot:
    """Return a point for each model and detector, the means of AUROC or another metric over runs."""
    metric = selection.metric or "auroc"
    points = []
    for entry in selection.entries:
        near, far = (100 * mean_over_runs(entry, metric, MEAN, role) for role in ("near", "far"))
        points.append(Point(selection.label(entry), near, far))
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
    labels = selection.labels
    panels = []
    for role in dict.fromkeys(row.role for row in rows):
        points = tuple(
            Point(labels[row.model, row.detector], 100 * row.standard, 100 * row.full_spectrum)
            for row in rows
            if row.role == role
        )
        panels.append(Points(role, "standard, in %", "full-spectrum, in %", points, diagonal=True))
    return Plot(f"{selection.benchmark}: standard against full-spectrum", tuple(panels))


@plot_kind("nearness", "AUROC of each OOD class against its similarity to the nearest ID class")
def nearness(selection: Selection) -> Plot:
    """Return a panel for each detector and its first run, with the rank correlation over the classes."""
    panels = []
    for entry in selection.entries:
        evaluation, number = entry.runs[0]
        rows = [
            row
            for row in evaluation.results.by_class.to_pylist()
            if (row["detector"], row["run"]) == (entry.detector, number)
            and row["similarity"] is not None
            and row["auroc"] is not None
            and row["group"] in selection.roles
        ]
        points = tuple(
            Point(row["class_id"], row["similarity"], 100 * row["auroc"], row["group"], label=False)
            for row in rows
        )
        trend = nearness_trend(
            [ClassAuroc(str(n), row["n_ood"], row["auroc"]) for n, row in enumerate(rows)],
            {str(n): row["similarity"] for n, row in enumerate(rows)},
        )
        correlation = "" if np.isnan(trend) else f" (rank correlation {trend:.3f})"
        title = f"{selection.label(entry)}{correlation}"
        panels.append(Points(title, "similarity to the nearest ID class", "AUROC in %", points))
    if not any(panel.points for panel in panels):
        raise DataError("no OOD class has a synset, so none has a similarity", where=selection.benchmark)
    return Plot(f"{selection.benchmark}: is detection harder nearby?", tuple(panels))
