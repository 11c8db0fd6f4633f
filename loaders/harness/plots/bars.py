"""Bar charts with intervals: improvement over MCP, robustness over models, and trends with nearness."""

from __future__ import annotations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Bar, Bars
from wordnet_splits.metrics import spread

from ..comparison.class_nearness import REFERENCE, nearness_of
from ..comparison.improvements import improvements
from ..comparison.ranking import rank_entries
from ..comparison.scopes import scope_named
from ..evaluation.tables import ResultSets
from .registry import plot_kind
from .selection import Selection


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
def nearness_trend(selection: Selection) -> Plot:
    """Return Spearman's correlations with bootstrap intervals over classes, most negative on top."""
    outcome = nearness_of(selection.draw, selection.unknown_sets, bootstrap=selection.replicates)
    rows = [c for c in outcome.correlations if (c.measure, c.to) == REFERENCE]
    rows.sort(key=lambda correlation: correlation.rho)
    labels = selection.labels
    bars = tuple(Bar(labels[c.model, c.detector], c.rho, c.lo, c.hi) for c in rows)
    panel = Bars("", "rank correlation (negative: nearer is harder)", bars)
    return Plot(f"{selection.benchmark}: does nearness predict difficulty?", (panel,))
