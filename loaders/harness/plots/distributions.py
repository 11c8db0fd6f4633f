"""Distributions of confidence and of softmax, by role."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Line, Lines

from ..arrays import Array
from .registry import plot_kind
from .selection import Network, Selection

BINS = 60
KINDS = ("correct", "incorrect", "near", "far", "external")


@plot_kind("densities", "confidence by role, a panel for each detector")
def densities(selection: Selection) -> Plot:
    """Return densities of correct and wrong ID, near, far and external; sets of a role are pooled."""
    panels = []
    for entry in selection.entries:
        values: dict[str, list[Array]] = {}
        for score_set in selection.sets(entry, "id", "near", "far", "external").values():
            confidence, correct = score_set.confidence, score_set.correct
            if correct is None:
                values.setdefault(score_set.role, []).append(confidence)
            else:
                values.setdefault("correct", []).append(confidence[correct])
                values.setdefault("incorrect", []).append(confidence[~correct])
        by_role = {name: np.concatenate(parts) for name, parts in values.items()}
        panels.append(density_panel(selection.label(entry), "confidence", by_role))
    notes = (f"Confidences are {selection.first_run}.",) if selection.first_run else ()
    return Plot(f"{selection.benchmark}: confidence by role", tuple(panels), notes)


@plot_kind("kim-6", "greatest softmax of correct, incorrect, near and far images", paper="Kim, figure 6")
def greatest_softmax(selection: Selection) -> Plot:
    """Return a panel for the first run of each model."""
    panels = []
    for network in selection.first_networks():
        table = network.predictions
        roles = np.array(table["role"].to_pylist(), dtype=object)
        greatest = _probabilities(table, "max_probability", network)
        right = table["prediction"].to_numpy() == table["label"].to_numpy()
        rows_of = {"correct": (roles == "id") & right, "incorrect": (roles == "id") & ~right}
        rows_of |= {role: roles == role for role in ("near", "far")}
        by_role = {name: greatest[rows] for name, rows in rows_of.items() if rows.any()}
        panels.append(density_panel(network.name, "greatest softmax", by_role, (0.0, 1.0)))
    return Plot(f"{selection.benchmark}: greatest softmax by role", tuple(panels))


@plot_kind(
    "palechor-4",
    "histograms of softmax: the target class of knowns, the greatest of negatives and unknowns",
    paper="Palechor, figure 4",
)
def target_and_greatest(selection: Selection) -> Plot:
    """Return a panel for the first run of each model."""
    panels = []
    for network in selection.first_networks():
        table = network.predictions
        groups = np.array(table["group"].to_pylist(), dtype=object)
        roles = np.array(table["role"].to_pylist(), dtype=object)
        target = table["target_probability"].to_numpy(zero_copy_only=False)
        by_set = {"target of ID": target[roles == "id"]}
        if np.isnan(by_set["target of ID"]).any():
            raise DataError("not every ID image has a class of the model", where=network.name)
        greatest = _probabilities(table, "max_probability", network)
        by_set |= {f"greatest of {group}": greatest[groups == group] for group in selection.roles}
        scored = {name: values for name, values in by_set.items() if len(values)}
        panels.append(density_panel(network.name, "softmax", scored, (0.0, 1.0)))
    return Plot(f"{selection.benchmark}: softmax of target and greatest", tuple(panels))


def density_panel(
    title: str, x_label: str, values: dict[str, Array], ends: tuple[float, float] | None = None
) -> Lines:
    """Return histograms of equal bins, each of area 1."""
    if ends is None:
        low, high = (float(f(np.concatenate(list(values.values())))) for f in (np.min, np.max))
        ends = (low, high) if high > low else (low - 0.5, high + 0.5)
    edges = np.linspace(*ends, BINS + 1)
    lines = []
    for name in sorted(values, key=lambda kind: KINDS.index(kind) if kind in KINDS else -1):
        clipped = np.clip(values[name].astype(np.float64), *ends)  # float32 softmax may round to above 1
        if len(clipped):
            density, _ = np.histogram(clipped, bins=edges, density=True)
            lines.append(Line(f"{name} ({len(clipped):,})", edges, density))
    return Lines(title, x_label, "density", tuple(lines), steps="post")


def _probabilities(table: pa.Table, column: str, network: Network) -> Array:
    if table[column].null_count:
        raise DataError(f"{network.name} has images without a {column.replace('_', ' ')}")
    return np.asarray(table[column].to_numpy())
