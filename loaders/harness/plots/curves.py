"""Curves over thresholds (risk and coverage, ROC, OSCR) and over the epochs of training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Line, Lines
from wordnet_splits.metrics import aurc_unknown, auroc, oscr, oscr_curve, pool

from .registry import plot_kind
from .selection import Selection

TRAINED = "trained:"
"""Prefix of the weights of models that `unknown-eval train` trained."""
GAMMAS = (("gamma_plus", "gamma+ (ID)"), ("gamma_minus", "gamma- (negatives)"), ("gamma", "gamma"))


@plot_kind("risk-coverage", "risk of what is accepted over its share; wrong ID, near and far count as errors")
def risk_coverage(selection: Selection) -> Plot:
    """Return risk-coverage curves over the pool of ID, near and far; their mean is `aurc_unknown`."""
    lines = []
    for entry in selection.entries:
        ood_sets = selection.sets(entry, "near", "far").values()
        counts = pool([*selection.classified_id(entry), *ood_sets])
        ranked = counts.unknowns
        coverage = ranked.cum_all / ranked.cum_all[-1]
        risk = ranked.cum_ood / ranked.cum_all
        name = f"{selection.label(entry)} (AURC {1000 * aurc_unknown(counts):.1f})"
        lines.append(Line(name, coverage, risk))
    panel = Lines(selection.first_run, "coverage", "risk", tuple(lines))
    return Plot(f"{selection.benchmark}: risk and coverage", (panel,))


@plot_kind("roc", "ID accepted over OOD accepted, a panel for each OOD set")
def roc(selection: Selection) -> Plot:
    """Return ROC curves; ID is the positive class."""
    panels = []
    for group in selection.roles:
        lines = []
        for entry in selection.entries:
            ood_sets = selection.sets(entry, "near", "far", "external")
            if group not in ood_sets:
                continue
            counts = pool([*selection.sets(entry, "id").values(), ood_sets[group]])
            lines.append(
                Line(
                    f"{selection.label(entry)} ({100 * auroc(counts):.1f})",
                    np.append(0, counts.cum_ood) / counts.n_ood,
                    np.append(0, counts.cum_id) / counts.n_id,
                )
            )
        chance = Line("chance", np.array([0.0, 1.0]), np.array([0.0, 1.0]), dashed=True)
        panels.append(Lines(group, "OOD accepted (FPR)", "ID accepted (TPR)", (*lines, chance)))
    return Plot(f"{selection.benchmark}: ROC, AUROC in %", tuple(panels), _notes(selection))


@plot_kind("oscr", "correct classification over false positives, log axis", paper="Palechor, figure 2")
def oscr_log(selection: Selection) -> Plot:
    """Return a line for each model and detector, a panel for each OOD set."""
    return _oscr(selection, log_x=True)


@plot_kind(
    "oscr-linear",
    "correct classification over false positives, linear axis",
    paper="Palechor, figure 2 of the supplement",
)
def oscr_linear(selection: Selection) -> Plot:
    """Return the curves of `oscr_log` with a linear axis."""
    return _oscr(selection, log_x=False)


def _oscr(selection: Selection, *, log_x: bool) -> Plot:
    panels = []
    for group in selection.roles:
        lines = []
        for entry in selection.entries:
            ood_sets = selection.sets(entry, "near", "far", "external")
            if group not in ood_sets:
                continue
            counts = pool([*selection.classified_id(entry), ood_sets[group]])
            curve = oscr_curve(counts)
            drawable = curve.fpr > 0 if log_x else np.ones(len(curve.fpr), dtype=bool)
            name = f"{selection.label(entry)} ({oscr(counts):.3f})"
            lines.append(Line(name, curve.fpr[drawable], curve.ccr[drawable]))
        panels.append(Lines(group, "FPR", "CCR", tuple(lines), log_x=log_x))
    return Plot(f"{selection.benchmark}: OSCR and the area under it", tuple(panels), _notes(selection))


def _notes(selection: Selection) -> tuple[str, ...]:
    return (f"The curves are {selection.first_run}.",) if selection.first_run else ()


@plot_kind("palechor-3", "gamma+ and gamma- over the epochs of training", paper="Palechor, figure 3")
def gammas_over_epochs(selection: Selection) -> Plot:
    """Return a line for each run, from the ``model.json`` in the folder where it was trained."""
    from ..checkpoints.files import read_metadata

    histories = {}
    for network in selection.networks():
        weights = network.facts.weights
        if weights.startswith(TRAINED):
            histories[network.name] = read_metadata(Path(weights.removeprefix(TRAINED)))["history"]
    panels = []
    for column, label in GAMMAS:
        lines = []
        for name, history in histories.items():
            points = [(row["epoch"], row[column]) for row in history if row.get(column) is not None]
            if points:
                epochs, values = zip(*points, strict=True)
                lines.append(Line(name, np.array(epochs), np.array(values)))
        if lines:
            panels.append(Lines(label, "epoch", label, tuple(lines)))
    if not panels:
        raise DataError(
            "no model here recorded gamma while it was trained",
            where=selection.benchmark,
            hint="`unknown-eval train` does, with a recipe that has negatives (BG, EOS)",
        )
    return Plot(f"{selection.benchmark}: confidence over epochs", tuple(panels))
