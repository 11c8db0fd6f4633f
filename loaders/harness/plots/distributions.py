"""Distributions of confidence and of softmax, by role."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Line, Lines

from ..arrays import Array
from .registry import plot_kind
from .selection import Network, Subject

BINS = 60
KINDS = ("correct", "incorrect", "near", "far", "external")


@plot_kind("densities", "confidence by role, a panel for each detector")
def densities(subject: Subject) -> Plot:
    """Correct and wrong ID, near, far and external; OOD sets of a role are pooled."""
    panels = []
    for entry in subject.entries:
        values: dict[str, list[Array]] = {}
        for part in subject.sets(entry, "id", "near", "far", "external"):
            if part.correct is None:
                values.setdefault(part.role, []).append(part.confidence)
            else:
                values.setdefault("correct", []).append(part.confidence[part.correct])
                values.setdefault("incorrect", []).append(part.confidence[~part.correct])
        of_role = {name: np.concatenate(parts) for name, parts in values.items()}
        panels.append(density_panel(subject.label(entry), "confidence", of_role))
    notes = (f"Confidences are {subject.first_run}.",) if subject.first_run else ()
    return Plot(f"{subject.benchmark}: confidence by role", tuple(panels), notes)


@plot_kind("kim-6", "greatest softmax of correct, incorrect, near and far images", paper="Kim, figure 6")
def greatest_softmax(subject: Subject) -> Plot:
    """A panel for each model, of its first run."""
    panels = []
    for network in subject.first_networks():
        table = network.predictions
        roles = np.array(table["role"].to_pylist(), dtype=object)
        greatest = _probabilities(table, "max_probability", network)
        right = table["prediction"].to_numpy() == table["label"].to_numpy()
        wanted = {"correct": (roles == "id") & right, "incorrect": (roles == "id") & ~right}
        wanted |= {role: roles == role for role in ("near", "far")}
        of_role = {name: greatest[rows] for name, rows in wanted.items() if rows.any()}
        panels.append(density_panel(network.name, "greatest softmax", of_role, (0.0, 1.0)))
    return Plot(f"{subject.benchmark}: greatest softmax by role", tuple(panels))


@plot_kind(
    "palechor-4",
    "histograms of softmax: the target class of knowns, the greatest of negatives and unknowns",
    paper="Palechor, figure 4",
)
def target_and_greatest(subject: Subject) -> Plot:
    """A panel for each model, of its first run."""
    panels = []
    for network in subject.first_networks():
        table = network.predictions
        groups = np.array(table["group"].to_pylist(), dtype=object)
        roles = np.array(table["role"].to_pylist(), dtype=object)
        target = table["target_probability"].to_numpy(zero_copy_only=False)
        of_set = {"target of ID": target[roles == "id"]}
        if np.isnan(of_set["target of ID"]).any():
            raise DataError("not every ID image has a class of the model", where=network.name)
        greatest = _probabilities(table, "max_probability", network)
        of_set |= {f"greatest of {group}": greatest[groups == group] for group in subject.roles}
        held = {name: values for name, values in of_set.items() if len(values)}
        panels.append(density_panel(network.name, "softmax", held, (0.0, 1.0)))
    return Plot(f"{subject.benchmark}: softmax of target and greatest", tuple(panels))


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
        of_it = np.clip(values[name].astype(np.float64), *ends)  # float32 softmax may exceed 1 by a rounding
        if len(of_it):
            density, _ = np.histogram(of_it, bins=edges, density=True)
            lines.append(Line(f"{name} ({len(of_it):,})", edges, density))
    return Lines(title, x_label, "density", tuple(lines), steps="post")


def _probabilities(table: pa.Table, column: str, network: Network) -> Array:
    if table[column].null_count:
        raise DataError(f"{network.name} has images without a {column.replace('_', ' ')}")
    return np.asarray(table[column].to_numpy())
