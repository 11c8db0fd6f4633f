"""Recalcati's semantic analysis: which classes are taken for something near them."""

from __future__ import annotations

from collections.abc import Sequence

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import Bar, Bars

from ..semantics import (
    ClassMean,
    Edge,
    Predicted,
    id_classes_of,
    means_by,
    prediction_graph,
    predictions_by_class,
    pruned,
)
from .registry import plot_kind
from .selection import Subject

SHOWN = 10
LABEL = "mean similarity of true and predicted class"


@plot_kind(
    "recalcati-2", "true classes whose predictions are nearest in WordNet", paper="Recalcati, figure 2"
)
def nearest_true(subject: Subject) -> Plot:
    """The ten best true classes of all sets, of the first network."""
    best = means_by(_found(subject), predicted=False)[:SHOWN]
    return Plot(f"{subject.benchmark}: best true classes", (_panel("true class", best),))


@plot_kind(
    "recalcati-3", "predicted classes whose OOD images are nearest, and farthest", paper="Recalcati, figure 3"
)
def best_and_worst(subject: Subject) -> Plot:
    """The ten best and ten worst predicted classes over the OOD sets, of the first network."""
    outside = [one for one in _found(subject) if one.role in ("near", "far", "external")]
    means = means_by(outside, predicted=True)
    if not means:
        raise DataError("no OOD class has a synset, so none has a similarity", where=subject.benchmark)
    panels = (_panel("best", means[:SHOWN]), _panel("worst", means[-SHOWN:]))
    return Plot(f"{subject.benchmark}: predicted classes, over OOD", panels)


def pruned_graph(subject: Subject) -> list[Edge]:
    """Return Recalcati's figure 4 as edges: see `semantics.pruned`.

    Raises
    ------
    DataError : pruning leaves nothing.
    """
    edges = pruned(prediction_graph(_found(subject)), id_classes_of(subject.draw.manifest()))
    if not edges:
        raise DataError("pruning leaves no edge: the OOD sets are of the ID source", where=subject.benchmark)
    return edges


def _found(subject: Subject) -> list[Predicted]:
    network = next(subject.first_networks())
    return predictions_by_class(network.predictions, subject.draw.manifest())


def _panel(title: str, means: Sequence[ClassMean]) -> Bars:
    return Bars(title, LABEL, tuple(Bar(f"{m.of.label} ({m.images:,})", m.similarity) for m in means))
