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
from .selection import Subject, mean_over_runs


@plot_kind("near-far", "mean AUROC over near sets against that over far sets", paper="OpenOOD, figure 4")
def near_far(subject: Subject) -> Plot:
    """A point for each model and detector, means over runs; another --metric in place of AUROC."""
    metric = subject.metric or "auroc"
    points = [
        Point(
            subject.label(entry),
            100 * mean_over_runs(entry, metric, MEAN, "near"),
            100 * mean_over_runs(entry, metric, MEAN, "far"),
        )
        for entry in subject.entries
    ]
    panel = Points("", f"near {metric} in %", f"far {metric} in %", tuple(points), diagonal=True)
    return Plot(f"{subject.benchmark}: near against far", (panel,))


@plot_kind(
    "full-spectrum",
    "AUROC with covariate-shifted ID counted as ID, against without",
    paper="OpenOOD, figure 6",
)
def full_spectrum(subject: Subject) -> Plot:
    """A panel for near and one for far, a point for each model and detector."""
    rows = against_full_spectrum(subject.draw, [subject.metric or "auroc"])
    if not rows:
        raise DataError(
            "there is no full-spectrum value: the benchmark has no covariate-shifted ID",
            where=subject.benchmark,
        )
    names = {entry.label: subject.label(entry) for entry in subject.entries}
    panels = []
    for role in dict.fromkeys(row.role for row in rows):
        points = tuple(
            Point(names[row.model, row.detector], 100 * row.standard, 100 * row.full_spectrum)
            for row in rows
            if row.role == role
        )
        panels.append(Points(role, "standard, in %", "full-spectrum, in %", points, diagonal=True))
    return Plot(f"{subject.benchmark}: standard against full-spectrum", tuple(panels))


@plot_kind("nearness", "AUROC of each OOD class against its similarity to the nearest ID class")
def nearness(subject: Subject) -> Plot:
    """A panel for each detector, of its first run; the rank correlation is over the classes drawn."""
    panels = []
    for entry in subject.entries:
        source, number = entry.runs[0]
        rows = [
            row
            for row in source.tables.by_class.to_pylist()
            if (row["detector"], row["run"]) == (entry.detector, number)
            and row["similarity"] is not None
            and row["auroc"] is not None
            and row["group"] in subject.roles
        ]
        points = tuple(
            Point(row["class_id"], row["similarity"], 100 * row["auroc"], row["group"], label=False)
            for row in rows
        )
        trend = nearness_trend(
            [ClassAuroc(str(n), row["n_ood"], row["auroc"]) for n, row in enumerate(rows)],
            {str(n): row["similarity"] for n, row in enumerate(rows)},
        )
        told = "" if np.isnan(trend) else f" (rank correlation {trend:.3f})"
        title = f"{subject.label(entry)}{told}"
        panels.append(Points(title, "similarity to the nearest ID class", "AUROC in %", points))
    if not any(panel.points for panel in panels):
        raise DataError("no OOD class has a synset, so none has a similarity", where=subject.benchmark)
    return Plot(f"{subject.benchmark}: is detection harder nearby?", tuple(panels))
