"""Curves over thresholds and over the epochs of training, and densities of confidence and softmax by role."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Line, Lines
from wordnet_splits.metrics import aurc_unknown, auroc, oscr, oscr_curve, pool, spread

from ...comparison.entries import Entry
from ...data.arrays import Array
from ...detectors.parsing import as_shown, is_log_probability
from ...hierarchy.named_answers import name_unknowns
from .selection import Network, Selection, Sets, classified_id, of_roles, plot_kind

Curve = tuple[Array, Array]
OOD_ROLES = ("near", "far", "external")
GRID = 1001
"""Points of a mean over runs."""
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

    def curve(entry: Entry, sets: Sets, group: str) -> tuple[Curve, float]:
        counts = pool([*of_roles(sets, "id").values(), sets[group]])
        accepted_ood = np.append(0, counts.cum_ood) / counts.n_ood
        return (accepted_ood, np.append(0, counts.cum_id) / counts.n_id), 100 * auroc(counts)

    chance = Line("chance", np.array([0.0, 1.0]), np.array([0.0, 1.0]), dashed=True)
    panels = [
        Lines(group, "OOD accepted (FPR)", "ID accepted (TPR)", (*lines, chance))
        for group, lines in _lines_by_set(selection, curve, 1)
    ]
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
    def curve(entry: Entry, sets: Sets, group: str) -> tuple[Curve, float]:
        counts = pool([*classified_id(entry, sets), sets[group]])
        points = oscr_curve(counts)
        drawable = points.fpr > 0 if log_x else np.ones(len(points.fpr), dtype=bool)
        return (points.fpr[drawable], points.ccr[drawable]), oscr(counts)

    panels = [
        Lines(group, "FPR", "CCR", tuple(lines), log_x=log_x)
        for group, lines in _lines_by_set(selection, curve, 3, log_x=log_x)
    ]
    return Plot(f"{selection.benchmark}: OSCR and the area under it", tuple(panels), notes(selection))


def _lines_by_set(
    selection: Selection,
    curve: Callable[[Entry, Sets, str], tuple[Curve, float]],
    digits: int,
    *,
    log_x: bool = False,
) -> Iterator[tuple[str, list[Line]]]:
    """Yield each OOD set with a line for every entry; ``curve`` returns a run's curve and its metric."""
    for group in selection.roles:
        lines = []
        for entry in selection.entries:
            scored = [sets for sets in selection.runs(entry) if group in of_roles(sets, *OOD_ROLES)]
            if scored:
                runs, values = zip(*(curve(entry, sets, group) for sets in scored), strict=True)
                lines.append(mean_line(selection.label(entry), runs, values, digits, log_x=log_x))
        yield group, lines


def mean_line(
    name: str, runs: Sequence[Curve], values: Sequence[float], digits: int, *, log_x: bool = False
) -> Line:
    """Return the curve of a single run, or the mean of several runs with a band of a standard deviation.

    The mean is over y at equal x, at `GRID` x from the smallest to the greatest that all runs have.

    Parameters
    ----------
    runs : (x, y) of each run, x ascending.
    values : the metric of each run, for the legend.
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
    """Return notes that explain the lines and bands of a plot over several runs."""
    if all(len(entry.runs) == 1 for entry in selection.entries):
        return ()
    return ("Lines are means over the runs of a model, bands one standard deviation.",)


@plot_kind("palechor-3", "gamma+ and gamma- over the epochs of training", paper="Palechor, figure 3")
def gammas_over_epochs(selection: Selection) -> Plot:
    """Return a line for each run, from the ``model.json`` in the folder where it was trained."""
    from ...training.checkpoint import read_metadata

    histories = {}
    for network in selection.networks():
        if folder := network.facts.weights.folder:
            histories[network.name] = read_metadata(Path(folder))["history"]
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
            "no model recorded gamma during training",
            where=selection.benchmark,
            hint="`unknown-eval train` does, with a recipe that has negatives (BG, EOS)",
        )
    return Plot(f"{selection.benchmark}: confidence over epochs", tuple(panels))


BINS = 60
KINDS = ("correct", "incorrect", "near", "far", "external")


@plot_kind("densities", "confidence by role, a panel for each detector")
def densities(selection: Selection) -> Plot:
    """Return densities of correct and wrong ID, near, far and external; sets of a role are pooled."""
    panels = []
    for entry in selection.entries:
        runs = [_by_role(sets, entry.detector) for sets in selection.runs(entry)]
        by_role = {name: [run[name] for run in runs if name in run] for name in runs[0]}
        is_probability = is_log_probability(entry.detector)
        ends = (0.0, 1.0) if is_probability else None
        x_label = "probability" if is_probability else "confidence"
        panels.append(density_panel(selection.label(entry), x_label, by_role, ends))
    return Plot(f"{selection.benchmark}: confidence by role", tuple(panels), notes(selection))


def _by_role(sets: Sets, detector: str) -> dict[str, Array]:
    """Return the confidences of a run by role, with ID split into correctly and wrongly classified images."""
    values: dict[str, list[Array]] = {}
    for score_set in of_roles(sets, "id", "near", "far", "external").values():
        confidence, correct = as_shown(detector, score_set.confidence), score_set.correct
        if correct is None:
            values.setdefault(score_set.role, []).append(confidence)
        else:
            values.setdefault("correct", []).append(confidence[correct])
            values.setdefault("incorrect", []).append(confidence[~correct])
    return {name: np.concatenate(parts) for name, parts in values.items()}


@plot_kind("kim-6", "greatest softmax of correct, incorrect, near and far images", paper="Kim, figure 6")
def greatest_softmax(selection: Selection) -> Plot:
    """Return a panel for each model."""

    def by_role(network: Network) -> dict[str, Array]:
        table = network.predictions
        roles = np.array(table["role"].to_pylist(), dtype=object)
        right = table["prediction"].to_numpy() == table["label"].to_numpy()
        rows_of = {"correct": (roles == "id") & right, "incorrect": (roles == "id") & ~right}
        rows_of |= {role: roles == role for role in ("near", "far")}
        greatest = _greatest(network)
        return {name: greatest[rows] for name, rows in rows_of.items()}

    panels = _panels_of_models(selection, "greatest softmax", by_role)
    return Plot(f"{selection.benchmark}: greatest softmax by role", panels, notes(selection))


@plot_kind(
    "palechor-4",
    "histograms of softmax: the target class of knowns, the greatest of negatives and unknowns",
    paper="Palechor, figure 4",
)
def target_and_greatest(selection: Selection) -> Plot:
    """Return a panel for each model."""

    def by_set(network: Network) -> dict[str, Array]:
        table = network.predictions
        groups = np.array(table["group"].to_pylist(), dtype=object)
        target = table["target_probability"].to_numpy(zero_copy_only=False)
        target = target[np.array(table["role"].to_pylist(), dtype=object) == "id"]
        if np.isnan(target).any():
            raise DataError("not every ID image has a class of the model", where=network.name)
        greatest = _greatest(network)
        of_groups = {f"greatest of {group}": greatest[groups == group] for group in selection.roles}
        return {"target of ID": target, **of_groups}

    panels = _panels_of_models(selection, "softmax", by_set)
    return Plot(f"{selection.benchmark}: softmax of target and greatest", panels, notes(selection))


def _panels_of_models(
    selection: Selection, x_label: str, values_of: Callable[[Network], Mapping[str, Array]]
) -> tuple[Lines, ...]:
    """Return the densities of each model, given the probabilities of a network by name."""
    panels = []
    for model, networks in selection.networks_by_model().items():
        by_name: dict[str, list[Array]] = {}
        for network in networks:
            for name, values in values_of(network).items():
                if len(values):
                    by_name.setdefault(name, []).append(values)
        panels.append(density_panel(model, x_label, by_name, (0.0, 1.0)))
    return tuple(panels)


def _greatest(network: Network) -> Array:
    column = network.predictions["max_probability"]
    if column.null_count:
        raise DataError(f"{network.name} has images without a max probability")
    return np.asarray(column.to_numpy())


def density_panel(
    title: str,
    x_label: str,
    values: Mapping[str, Sequence[Array]],
    ends: tuple[float, float] | None = None,
) -> Lines:
    """Return histograms with equal bins and area 1; several runs give the mean with a band.

    Parameters
    ----------
    values : name of a line -> the values of each run.
    ends : (low, high) of the bins, by default the smallest
        and greatest value.
    """
    if ends is None:
        every = np.concatenate([run for runs in values.values() for run in runs])
        low, high = float(np.min(every)), float(np.max(every))
        ends = (low, high) if high > low else (low - 0.5, high + 0.5)
    edges = np.linspace(*ends, BINS + 1)
    lines = []
    for name in sorted(values, key=lambda kind: KINDS.index(kind) if kind in KINDS else -1):
        # float32 softmax may round to above 1
        clipped = [np.clip(run.astype(np.float64), *ends) for run in values[name] if len(run)]
        if clipped:
            densities = np.array([np.histogram(run, bins=edges, density=True)[0] for run in clipped])
            mean, lo, hi = densities.mean(axis=0), None, None
            if len(clipped) > 1:
                sd = densities.std(axis=0, ddof=1)
                lo, hi = np.maximum(mean - sd, 0), mean + sd
            counts = sorted({len(run) for run in clipped})
            sizes = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
            lines.append(Line(name, edges, mean, value=sizes, lo=lo, hi=hi))
    return Lines(title, x_label, "density", tuple(lines), steps="post")


@plot_kind("hierarchy", "specificity against accuracy of answers at its nodes, by stopping rule (--store)")
def hierarchy_curves(selection: Selection) -> Plot:
    """Return a panel for ID, near and far, each with a line for every rule alone, for the first network."""
    network = next(selection.first_networks())
    tables = network.results.results
    run, manifest = network.facts.run, selection.draw.manifest()
    report = name_unknowns(tables, detectors=(), run=run, benchmark=manifest, store=selection.store)
    curves = report.curves()
    panels = tuple(
        Lines(
            role,
            "specificity: information of the answer / log2 K",
            "accuracy: answers at or above the truth",
            tuple(Line(c.rule, c.specificity, c.correct) for c in curves if c.role == role),
        )
        for role in report.images.present
    )
    title = f"answers in {report.images.hierarchy.taxonomy.called}, {network.name}"
    return Plot(f"{selection.benchmark}: {title}", panels)
