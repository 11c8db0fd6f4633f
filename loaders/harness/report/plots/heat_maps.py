"""Plots of classes: shares of predictions, mean softmax, and Recalcati's semantic similarity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Bar, Bars, HeatMap, Line, Lines
from wordnet_splits.benchmark.manifest import Manifest

from ...comparison.semantics import (
    ClassMean,
    Predicted,
    id_classes_of,
    means_by,
    prediction_graph,
    predictions_by_class,
    pruned,
)
from ...data.arrays import Array
from ...hierarchy.class_probabilities import scored_images, stored_logits
from ...hierarchy.named_answers import name_unknowns
from ...models.class_map import LabelSpace
from .selection import Selection, plot_kind

MAX_NAMES = 120
"""Classes of an axis that get their names; more could not be read."""


@plot_kind("predictions", "share of each OOD class that is predicted as each ID class")
def predictions(selection: Selection) -> Plot:
    """Return a panel for each OOD set; predictions outside the ID classes do not count."""
    network, manifest = next(selection.first_networks()), selection.draw.manifest()
    table = network.predictions
    width = len(LabelSpace.of(manifest.classes).labels)
    panels = []
    for group in selection.roles:
        rows = table.filter(pc.equal(table["group"], group))
        if rows.num_rows:
            predicted = rows["prediction"].to_numpy()
            shares = np.zeros((rows.num_rows, width))
            valid = np.flatnonzero((predicted >= 0) & (predicted < width))
            shares[valid, predicted[valid]] = 1
            panels.append(_heat(group, rows["class_id"].to_pylist(), shares, manifest))
    return Plot(f"{selection.benchmark}: predictions of OOD classes, {network.name}", tuple(panels))


@plot_kind("kim-7", "mean softmax of each OOD class over the ID classes (--store)", paper="Kim, figure 7")
def mean_softmax(selection: Selection) -> Plot:
    """Return a panel for each OOD set, from the logits that the first network's evaluation stored."""
    network, manifest = next(selection.first_networks()), selection.draw.manifest()
    if selection.store is None:
        raise DataError(
            "the results hold no softmax",
            where="kim-7",
            hint="give the folder of activations, --store DIR, or plot `predictions`",
        )
    panels = []
    for group in selection.roles:
        table = scored_images(network.results.results, manifest, group)
        logits = stored_logits(network.facts, manifest, group, table, selection.store, "kim-7")
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax = exponents / exponents.sum(axis=1, keepdims=True)
        panels.append(_heat(group, table["class_id"].to_pylist(), softmax, manifest))
    return Plot(f"{selection.benchmark}: mean softmax of OOD classes, {network.name}", tuple(panels))


def _heat(group: str, class_ids: Sequence[str], values: Array, manifest: Manifest) -> HeatMap:
    """Return the mean row of each class's images, classes ordered by their nearest ID class."""
    labels = LabelSpace.of(manifest.classes).labels
    classes, of_image = np.unique(class_ids, return_inverse=True)
    sums = np.zeros((len(classes), values.shape[1]))
    np.add.at(sums, of_image.reshape(-1), values)
    means = sums / np.bincount(of_image.reshape(-1))[:, None]
    rows = manifest.classes.filter(pc.equal(manifest.classes["group"], group)).to_pylist()
    column_of = {label.class_id: n for n, label in enumerate(labels)}
    nearest = {row["class_id"]: column_of.get(row["nearest_id"], len(labels)) for row in rows}
    names = {row["class_id"]: row["name"] for row in rows}
    order = sorted(range(len(classes)), key=lambda n: (nearest.get(classes[n], len(labels)), classes[n]))
    return HeatMap(
        group,
        "ID class",
        "OOD class",
        _axis_names([str(names.get(classes[n], classes[n])) for n in order]),
        _axis_names([label.name for label in labels]),
        means[order],
    )


def _axis_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names) if len(names) <= MAX_NAMES else ("",) * len(names)


CLASSES = 10
LABEL = "mean similarity of true and predicted class"


@plot_kind(
    "recalcati-2", "true classes whose predictions are nearest in WordNet", paper="Recalcati, figure 2"
)
def nearest_true(selection: Selection) -> Plot:
    """Return the ten best true classes of all sets, for the first network."""
    best = means_by(_predictions(selection), predicted=False)[:CLASSES]
    return Plot(f"{selection.benchmark}: best true classes", (_panel("true class", best),))


@plot_kind(
    "recalcati-3", "predicted classes whose OOD images are nearest, and farthest", paper="Recalcati, figure 3"
)
def best_and_worst(selection: Selection) -> Plot:
    """Return the ten best and ten worst predicted classes over the OOD sets, for the first network."""
    ood = [
        prediction for prediction in _predictions(selection) if prediction.role in ("near", "far", "external")
    ]
    means = means_by(ood, predicted=True)
    if not means:
        raise DataError("no OOD class has a synset, so none has a similarity", where=selection.benchmark)
    panels = (_panel("best", means[:CLASSES]), _panel("worst", means[-CLASSES:]))
    return Plot(f"{selection.benchmark}: predicted classes, over OOD", panels)


@plot_kind("hierarchy", "specificity against accuracy of answers in WordNet, by stopping rule (--store)")
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
    return Plot(f"{selection.benchmark}: answers in WordNet, {network.name}", panels)


def pruned_graph(selection: Selection) -> list[Predicted]:
    """Return the edges of Recalcati's figure 4 (`semantics.pruned`); raise DataError if none is left."""
    edges = pruned(prediction_graph(_predictions(selection)), id_classes_of(selection.draw.manifest()))
    if not edges:
        raise DataError(
            "pruning leaves no edge: the OOD sets are of the ID source", where=selection.benchmark
        )
    return edges


def _predictions(selection: Selection) -> list[Predicted]:
    network = next(selection.first_networks())
    return predictions_by_class(network.predictions, selection.draw.manifest())


def _panel(title: str, means: Sequence[ClassMean]) -> Bars:
    return Bars(title, LABEL, tuple(Bar(f"{m.of.label} ({m.images:,})", m.similarity) for m in means))
