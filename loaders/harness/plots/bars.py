"""Values with their ranges: improvement over MCP, and robustness over models."""

from __future__ import annotations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Bar, Bars
from wordnet_splits.metrics import spread

from ..comparison.class_nearness import OURS, nearness_of
from ..comparison.improvements import improvements
from ..comparison.ranking import rank_entries
from ..comparison.scopes import place_of
from ..evaluation.tables import Sets
from .registry import plot_kind
from .selection import Subject


@plot_kind("kim-5", "improvement of pooled AURC over MCP in %", paper="Kim, figure 5")
def improvement(subject: Subject) -> Plot:
    """100 (AURC of MCP - AURC)/AURC of MCP, with intervals of the paired bootstrap."""
    place = place_of("pooled", Sets.of(subject.draw.first))
    ranking = rank_entries(subject.draw, "aurc_unknown", place, replicates=subject.replicates)
    names = {entry.label: subject.label(entry) for entry in subject.entries}
    bars = [Bar(names[one.model, one.detector], one.percent, one.lo, one.hi) for one in improvements(ranking)]
    panel = Bars("", "improvement over MCP in %: positive is better", tuple(bars))
    return Plot(f"{subject.benchmark}: improvement over MCP", (panel,))


@plot_kind(
    "robustness",
    "a metric of each model (optimizer), mean and spread over its runs, a panel for each OOD set",
    paper="Abdelzad, figures 1 to 4",
)
def robustness(subject: Subject) -> Plot:
    """Their figures 1 and 3 are of one detector on uniform noise, 2 and 4 of two; AUROC by default."""
    metric = subject.metric or "auroc"
    if len({entry.model for entry in subject.entries}) < 2:
        raise DataError("robustness is over models (optimizers), and there is one", where=subject.benchmark)
    panels = []
    for group, role in subject.roles.items():
        bars = []
        for entry in subject.entries:
            values = entry.values(metric, group, role)
            if not values:
                raise DataError(
                    f"{' '.join(entry.label)} has no {metric} on {group}", where=subject.benchmark
                )
            found = spread(100 * np.array(values))
            sd = 0.0 if np.isnan(found.sd) else found.sd
            bars.append(Bar(entry.model, found.mean, found.mean - sd, found.mean + sd, entry.detector))
        panels.append(Bars(group, f"{metric} in %, mean and sd over runs", tuple(bars)))
    return Plot(f"{subject.benchmark}: {metric} over models", tuple(panels))


@plot_kind("nearness-trend", "rank correlation of nearness and AUROC over OOD classes, for each detector")
def nearness_trend(subject: Subject) -> Plot:
    """Spearman's, with intervals of the bootstrap over classes; strongest (most negative) on top."""
    found = nearness_of(subject.draw, subject.unknown_sets, bootstrap=subject.replicates)
    names = {entry.label: subject.label(entry) for entry in subject.entries}
    ours = sorted((c for c in found.correlations if (c.measure, c.to) == OURS), key=lambda one: one.rho)
    bars = tuple(Bar(names[one.model, one.detector], one.rho, one.lo, one.hi) for one in ours)
    panel = Bars("", "rank correlation (negative: nearer is harder)", bars)
    return Plot(f"{subject.benchmark}: does nearness predict difficulty?", (panel,))
