"""Curves over thresholds: risk and coverage, ROC, OSCR."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Line, Lines
from wordnet_splits.metrics import aurc_unknown, auroc, oscr, oscr_curve, pool

from .registry import plot_kind
from .selection import Subject


@plot_kind("risk-coverage", "risk of what is accepted over its share; wrong ID, near and far count as errors")
def risk_coverage(subject: Subject) -> Plot:
    """Over the pool of ID, near and far; its mean over coverage is `aurc_unknown`."""
    lines = []
    for entry in subject.entries:
        counts = pool([*subject.inside(entry), *subject.sets(entry, "near", "far")])
        ranked = counts.unknowns
        coverage = ranked.cum_all / ranked.cum_all[-1]
        risk = ranked.cum_ood / ranked.cum_all
        name = f"{subject.label(entry)} (AURC {1000 * aurc_unknown(counts):.1f})"
        lines.append(Line(name, coverage, risk))
    panel = Lines(subject.first_run, "coverage", "risk", tuple(lines))
    return Plot(f"{subject.benchmark}: risk and coverage", (panel,))


@plot_kind("roc", "ID accepted over OOD accepted, a panel for each OOD set")
def roc(subject: Subject) -> Plot:
    """ID is the positive class."""
    panels = []
    for group in subject.roles:
        lines = []
        for entry in subject.entries:
            held = {part.name: part for part in subject.sets(entry, "id", "near", "far", "external")}
            if group not in held:
                continue
            counts = pool([*(part for part in held.values() if part.role == "id"), held[group]])
            lines.append(
                Line(
                    f"{subject.label(entry)} ({100 * auroc(counts):.1f})",
                    np.append(0, counts.cum_ood) / counts.n_ood,
                    np.append(0, counts.cum_id) / counts.n_id,
                )
            )
        chance = Line("chance", np.array([0.0, 1.0]), np.array([0.0, 1.0]), dashed=True)
        panels.append(Lines(group, "OOD accepted (FPR)", "ID accepted (TPR)", (*lines, chance)))
    return Plot(f"{subject.benchmark}: ROC, AUROC in %", tuple(panels), _notes(subject))


@plot_kind("oscr", "correct classification over false positives, log axis", paper="Palechor, figure 2")
def oscr_log(subject: Subject) -> Plot:
    """Palechor's figure 2: a line for each model and detector, a panel for each OOD set."""
    return _oscr(subject, log_x=True)


@plot_kind(
    "oscr-linear",
    "correct classification over false positives, linear axis",
    paper="Palechor, figure 2 of the supplement",
)
def oscr_linear(subject: Subject) -> Plot:
    """The same with a linear axis."""
    return _oscr(subject, log_x=False)


def _oscr(subject: Subject, *, log_x: bool) -> Plot:
    panels = []
    for group in subject.roles:
        lines = []
        for entry in subject.entries:
            held = {part.name: part for part in subject.sets(entry, "near", "far", "external")}
            if group not in held:
                continue
            counts = pool([*subject.inside(entry), held[group]])
            curve = oscr_curve(counts)
            shown = curve.fpr > 0 if log_x else np.ones(len(curve.fpr), dtype=bool)
            name = f"{subject.label(entry)} ({oscr(counts):.3f})"
            lines.append(Line(name, curve.fpr[shown], curve.ccr[shown]))
        panels.append(Lines(group, "FPR", "CCR", tuple(lines), log_x=log_x))
    return Plot(f"{subject.benchmark}: OSCR and the area under it", tuple(panels), _notes(subject))


def _notes(subject: Subject) -> tuple[str, ...]:
    return (f"The curves are {subject.first_run}.",) if subject.first_run else ()


SPECIFICATION = "trained:"
COLUMNS = (("gamma_plus", "gamma+ (ID)"), ("gamma_minus", "gamma- (negatives)"), ("gamma", "gamma"))


@plot_kind("palechor-3", "gamma+ and gamma- over the epochs of training", paper="Palechor, figure 3")
def gammas_over_epochs(subject: Subject) -> Plot:
    """A line for each run; its record (``model.json``) must still lie where it was trained."""
    from ..checkpoints.files import read_metadata

    histories = {}
    for network in subject.networks():
        (about,) = [one for one in network.source.tables.about.runs if one.run == network.run]
        if about.weights.startswith(SPECIFICATION):
            histories[network.name] = read_metadata(Path(about.weights.removeprefix(SPECIFICATION)))[
                "history"
            ]
    panels = []
    for column, label in COLUMNS:
        lines = []
        for name, history in histories.items():
            held = [(row["epoch"], row[column]) for row in history if row.get(column) is not None]
            if held:
                epochs, values = zip(*held, strict=True)
                lines.append(Line(name, np.array(epochs), np.array(values)))
        if lines:
            panels.append(Lines(label, "epoch", label, tuple(lines)))
    if not panels:
        raise DataError(
            "no model here recorded gamma while it was trained",
            where=subject.benchmark,
            hint="`unknown-eval train` does, with a recipe that has negatives (BG, EOS)",
        )
    return Plot(f"{subject.benchmark}: confidence over epochs", tuple(panels))
