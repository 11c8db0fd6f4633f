"""Curves over thresholds (risk and coverage, ROC, OSCR) and over the epochs of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Line, Lines
from wordnet_splits.metrics import aurc_unknown, auroc, oscr, oscr_curve, pool, spread

from ..arrays import Array
from .registry import plot_kind
from .selection import Selection, classified_id, of_roles

Curve = tuple[Array, Array]
GRID = 1001
"""Points of a mean over runs."""
TRAINED = "trained:"
"""Prefix of the weights of models that `unknown-eval train` trained."""
GAMMAS = (("gamma_plus", "gamma+ (ID)"), ("gamma_minus", "gamma- (negatives)"), ("gamma", "gamma"))


@plot_kind("risk-coverage", "risk of what is accepted over its share; wrong ID, near and far count as errors")
def risk_coverage(selection: Selection) -> Plot:
    """Return risk-coverage curves over the pool of ID, near and far; their mean is `aurc_unknown`."""
    lines = []
    for entry in selection.entries:
        runs, values = [], []
        for sets in selection.runs(entry):
            counts = pool([*classified_id(entry, sets), *of_roles(sets, "near", "far").values()])
            ranked = counts.unknowns
            runs.append((ranked.cum_all / ranked.cum_all[-1], ranked.cum_ood / ranked.cum_all))
            values.append(1000 * aurc_unknown(counts))
        lines.append(mean_line(selection.label(entry), runs, values, 1))
    panel = Lines("", "coverage", "risk", tuple(lines))
    title = f"{selection.benchmark}: risk and coverage, AURC x 1000"
    return Plot(title, (panel,), notes(selection))


@plot_kind("roc", "ID accepted over OOD accepted, a panel for each OOD set")
def roc(selection: Selection) -> Plot:
    """Return ROC curves; ID is the positive class."""
    panels = []
    for group in selection.roles:
        lines = []
        for entry in selection.entries:
            runs, values = [], []
            for sets in selection.runs(entry):
                if group not in of_roles(sets, "near", "far", "external"):
                    continue
                counts = pool([*of_roles(sets, "id").values(), sets[group]])
                accepted_ood = np.append(0, counts.cum_ood) / counts.n_ood
                runs.append((accepted_ood, np.append(0, counts.cum_id) / counts.n_id))
                values.append(100 * auroc(counts))
            if runs:
                lines.append(mean_line(selection.label(entry), runs, values, 1))
        chance = Line("chance", np.array([0.0, 1.0]), np.array([0.0, 1.0]), dashed=True)
        panels.append(Lines(group, "OOD accepted (FPR)", "ID accepted (TPR)", (*lines, chance)))
    return Plot(f"{selection.benchmark}: ROC, AUROC in %", tuple(panels), notes(selection))


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
            runs, values = [], []
            for sets in selection.runs(entry):
                if group not in of_roles(sets, "near", "far", "external"):
                    continue
                counts = pool([*classified_id(entry, sets), sets[group]])
                curve = oscr_curve(counts)
                drawable = curve.fpr > 0 if log_x else np.ones(len(curve.fpr), dtype=bool)
                runs.append((curve.fpr[drawable], curve.ccr[drawable]))
                values.append(oscr(counts))
            if runs:
                lines.append(mean_line(selection.label(entry), runs, values, 3, log_x=log_x))
        panels.append(Lines(group, "FPR", "CCR", tuple(lines), log_x=log_x))
    return Plot(f"{selection.benchmark}: OSCR and the area under it", tuple(panels), notes(selection))


def mean_line(
    name: str, runs: Sequence[Curve], values: Sequence[float], digits: int, *, log_x: bool = False
) -> Line:
    """Return the curve of one run as it is, or the mean of several with a band of a standard deviation.

    The mean is over y at equal x, at `GRID` x from the smallest to the greatest that all runs have.

    Parameters
    ----------
    runs : (x, y) of each run, x ascending. values : the metric of each run, for the legend.
    """
    runs_of = spread(np.array(values))
    value = f"{runs_of.mean:.{digits}f}"
    if len(runs) == 1:
        return Line(name, *runs[0], value=value)
    starts, ends = (function([x[at] for x, _ in runs]) for function, at in ((max, 0), (min, -1)))
    x = np.geomspace(starts, ends, GRID) if log_x else np.linspace(starts, ends, GRID)
    y = np.array([_at(x, *run) for run in runs])
    mean, sd = y.mean(axis=0), y.std(axis=0, ddof=1)
    band = np.clip(mean - sd, 0, 1), np.clip(mean + sd, 0, 1)
    return Line(name, x, mean, value=f"{value}±{runs_of.sd:.{digits}f}", lo=band[0], hi=band[1])


def _at(x: Array, curve_x: Array, curve_y: Array) -> Array:
    """Return the curve's y at ``x``, after any rise at that very x."""
    last = np.append(np.flatnonzero(np.diff(curve_x)), len(curve_x) - 1)
    return np.asarray(np.interp(x, curve_x[last], curve_y[last]))


def notes(selection: Selection) -> tuple[str, ...]:
    """Return what the lines and bands of a plot over several runs are."""
    if all(len(entry.runs) == 1 for entry in selection.entries):
        return ()
    return ("Lines are means over the runs of a model, bands one standard deviation.",)


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
