"""Distributions of confidence and of softmax, by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Line, Lines

from ..arrays import Array
from ..detectors.parsing import as_shown, is_log_probability
from .curves import notes
from .registry import plot_kind
from .selection import Network, Selection, Sets, of_roles

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
    """Return the confidences of a run by role, those of ID by whether they are classified correctly."""
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
    panels = []
    for model, networks in selection.networks_by_model().items():
        by_role: dict[str, list[Array]] = {}
        for network in networks:
            table = network.predictions
            roles = np.array(table["role"].to_pylist(), dtype=object)
            greatest = _probabilities(table, "max_probability", network)
            right = table["prediction"].to_numpy() == table["label"].to_numpy()
            rows_of = {"correct": (roles == "id") & right, "incorrect": (roles == "id") & ~right}
            rows_of |= {role: roles == role for role in ("near", "far")}
            for name, rows in rows_of.items():
                if rows.any():
                    by_role.setdefault(name, []).append(greatest[rows])
        panels.append(density_panel(model, "greatest softmax", by_role, (0.0, 1.0)))
    return Plot(f"{selection.benchmark}: greatest softmax by role", tuple(panels), notes(selection))


@plot_kind(
    "palechor-4",
    "histograms of softmax: the target class of knowns, the greatest of negatives and unknowns",
    paper="Palechor, figure 4",
)
def target_and_greatest(selection: Selection) -> Plot:
    """Return a panel for each model."""
    panels = []
    for model, networks in selection.networks_by_model().items():
        by_set: dict[str, list[Array]] = {}
        for network in networks:
            table = network.predictions
            groups = np.array(table["group"].to_pylist(), dtype=object)
            target = table["target_probability"].to_numpy(zero_copy_only=False)
            target = target[np.array(table["role"].to_pylist(), dtype=object) == "id"]
            if np.isnan(target).any():
                raise DataError("not every ID image has a class of the model", where=network.name)
            greatest = _probabilities(table, "max_probability", network)
            of_sets = {"target of ID": target}
            of_sets |= {f"greatest of {group}": greatest[groups == group] for group in selection.roles}
            for name, values in of_sets.items():
                if len(values):
                    by_set.setdefault(name, []).append(values)
        panels.append(density_panel(model, "softmax", by_set, (0.0, 1.0)))
    return Plot(f"{selection.benchmark}: softmax of target and greatest", tuple(panels), notes(selection))


def density_panel(
    title: str,
    x_label: str,
    values: Mapping[str, Sequence[Array]],
    ends: tuple[float, float] | None = None,
) -> Lines:
    """Return histograms of equal bins, each of area 1: of several runs the mean, with a band.

    Parameters
    ----------
    values : name of a line -> the values of each run. ends : of the bins, by default those of the values.
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


def _probabilities(table: pa.Table, column: str, network: Network) -> Array:
    if table[column].null_count:
        raise DataError(f"{network.name} has images without a {column.replace('_', ' ')}")
    return np.asarray(table[column].to_numpy())
