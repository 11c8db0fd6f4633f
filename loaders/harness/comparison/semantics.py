"""Recalcati's semantic analysis: similarity of predictions to the true class, and their graph.

The measure is `mean2` = (path + Wu-Palmer)/2 of the best pair of synsets in the benchmark's hierarchy. The
network assigns an ID class of the benchmark to every image, including OOD images.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.wordnet.similarity import similarity_matrix
from wordnet_splits.wordnet.taxonomy import Taxonomy

MEASURE = "mean2"
MIN_IMAGES = 5
"""Pruning drops edges of fewer images; the paper does not state its number."""


@dataclass(frozen=True)
class ClassName:
    """A class of the benchmark: ``label`` in the paper's figures is source and name."""

    source: str
    class_id: str
    name: str
    wnids: tuple[str, ...]

    @property
    def label(self) -> str:
        """Source and name, as ``sun397: fountain``."""
        return f"{self.source}: {self.name}"

    @property
    def key(self) -> str:
        """An identifier, different for every class."""
        return f"{self.source}/{self.class_id}"


@dataclass(frozen=True)
class Predicted:
    """Number of images with a given role and true class that received a given ID class as prediction.

    Attributes
    ----------
    similarity : similarity between the two classes, or None if either lacks a synset.
    """

    true: ClassName
    role: str
    predicted: ClassName
    images: int
    similarity: float | None


@dataclass(frozen=True)
class ClassMean:
    """The mean similarity over images, of a true or a predicted class."""

    of: ClassName
    images: int
    similarity: float


def predictions_by_class(predictions: pa.Table, manifest: Manifest) -> list[Predicted]:
    """Count a network's predictions by true class, role and predicted class.

    Parameters
    ----------
    predictions : a network's predictions (`Results.predicted`). Predictions outside the ID classes are left
        out.
    """
    classes, labels = classes_of(manifest)
    columns = (predictions[name].to_pylist() for name in ("source", "class_id", "role", "prediction"))
    counts: dict[tuple[str, str, str, int], int] = {}
    for key in zip(*columns, strict=True):
        counts[key] = counts.get(key, 0) + 1
    unknown = {(s, c) for s, c, _, p in counts if (s, c) not in classes or (p >= 0 and p not in labels)}
    if unknown:
        source, class_id = min(unknown)
        raise DataError(f"{source} {class_id}, or its prediction, is not a class of {manifest.name}")
    pairs = {(classes[s, c], labels[p]) for s, c, _, p in counts if p >= 0}
    by_pair = similarities(pairs, taxonomy_of(manifest))
    return [
        Predicted(classes[s, c], role, labels[p], n, by_pair[classes[s, c], labels[p]])
        for (s, c, role, p), n in counts.items()
        if p >= 0
    ]


def similarities(
    pairs: Iterable[tuple[ClassName, ClassName]], taxonomy: Taxonomy, measure: str = MEASURE
) -> dict[tuple[ClassName, ClassName], float | None]:
    """Return the greatest similarity over the synsets of each pair of classes, None without synsets."""
    unique = list(dict.fromkeys(pairs))
    rows = list(dict.fromkeys(wnid for a, _ in unique for wnid in a.wnids))
    columns = list(dict.fromkeys(wnid for _, b in unique for wnid in b.wnids))
    if not rows or not columns:
        return dict.fromkeys(unique)
    table = similarity_matrix(measure, rows, columns, taxonomy)
    row_of = {wnid: n for n, wnid in enumerate(rows)}
    column_of = {wnid: n for n, wnid in enumerate(columns)}
    return {
        (a, b): (
            float(table[np.ix_([row_of[w] for w in a.wnids], [column_of[w] for w in b.wnids])].max())
            if a.wnids and b.wnids
            else None
        )
        for a, b in unique
    }


def means_by(predictions: Iterable[Predicted], *, predicted: bool) -> list[ClassMean]:
    """Return the mean similarity over the images of each true (or predicted) class, greatest first."""
    total: dict[ClassName, float] = {}
    images: dict[ClassName, int] = {}
    for prediction in predictions:
        if prediction.similarity is not None:
            name = prediction.predicted if predicted else prediction.true
            total[name] = total.get(name, 0.0) + prediction.images * prediction.similarity
            images[name] = images.get(name, 0) + prediction.images
    means = [ClassMean(name, images[name], total[name] / images[name]) for name in total]
    return sorted(means, key=lambda mean: (-mean.similarity, mean.of.key))


def prediction_graph(predictions: Iterable[Predicted]) -> list[Predicted]:
    """Return the edges of the whole graph, from true to predicted class; all roles together, as ""."""
    edges: dict[tuple[ClassName, ClassName], Predicted] = {}
    for prediction in predictions:
        key = (prediction.true, prediction.predicted)
        images = edges[key].images if key in edges else 0
        edges[key] = replace(prediction, role="", images=images + prediction.images)
    return list(edges.values())


def pruned(
    edges: Iterable[Predicted], id_classes: Iterable[ClassName], *, min_images: int = MIN_IMAGES
) -> list[Predicted]:
    """Return the edges that Recalcati et al. keep; nodes that lose all edges are dropped too.

    They drop edges from a class to itself, between ID classes, between classes of equal names, from the
    source of the predicted classes, and of fewer than ``min_images`` images.
    """
    id_class_set = set(id_classes)
    return [
        edge
        for edge in edges
        if edge.true != edge.predicted
        and edge.true not in id_class_set
        and edge.true.name != edge.predicted.name
        and edge.true.source != edge.predicted.source
        and edge.images >= min_images
    ]


def id_classes_of(manifest: Manifest) -> set[ClassName]:
    """Return the classes whose role is ID."""
    return {
        _class_of(row)
        for row in manifest.classes.select(["source", "class_id", "name", "wnids", "role"]).to_pylist()
        if row["role"] == "id"
    }


def graphml(edges: Sequence[Predicted]) -> bytes:
    """Return edges as GraphML: nodes with source, name and synsets, edges with images and similarity."""
    root = ElementTree.Element("graphml", xmlns="http://graphml.graphdrawing.org/xmlns")
    kinds = {"source": "node", "name": "node", "wnids": "node", "images": "edge", "similarity": "edge"}
    types = {"images": "int", "similarity": "double"}
    for name, of in kinds.items():
        attributes = {"id": name, "for": of, "attr.name": name, "attr.type": types.get(name, "string")}
        ElementTree.SubElement(root, "key", attributes)
    graph = ElementTree.SubElement(root, "graph", edgedefault="directed")
    nodes = dict.fromkeys(node for edge in edges for node in (edge.true, edge.predicted))
    for node in nodes:
        element = ElementTree.SubElement(graph, "node", id=_plain(node.key))
        _data(element, {"source": node.source, "name": node.name, "wnids": " ".join(node.wnids)})
    for edge in edges:
        ends = {"source": _plain(edge.true.key), "target": _plain(edge.predicted.key)}
        element = ElementTree.SubElement(graph, "edge", ends)
        _data(element, {"images": edge.images, "similarity": edge.similarity})
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _data(element: ElementTree.Element, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        if value is not None:
            ElementTree.SubElement(element, "data", key=name).text = _plain(str(value))


def _plain(text: str) -> str:
    """Return ``text`` without the control characters that XML cannot hold."""
    return "".join(c if c.isprintable() else " " for c in text)


def classes_of(manifest: Manifest) -> tuple[dict[tuple[str, str], ClassName], dict[int, ClassName]]:
    """Return the classes by (source, class_id) and by label; raise DataError if no ID class has a label."""
    classes: dict[tuple[str, str], ClassName] = {}
    labels: dict[int, ClassName] = {}
    columns = ["source", "class_id", "name", "wnids", "role", "label"]
    for row in manifest.classes.select(columns).to_pylist():
        name = classes.setdefault((row["source"], row["class_id"]), _class_of(row))
        if row["role"] == "id" and row["label"] is not None and row["label"] >= 0:
            labels.setdefault(row["label"], name)
    if not labels:
        raise DataError("no ID class has a label, so nothing is predicted", where=manifest.name)
    return classes, labels


def _class_of(row: Mapping[str, object]) -> ClassName:
    wnids = row["wnids"]
    synsets = tuple(str(wnid) for wnid in wnids) if isinstance(wnids, list) else ()
    return ClassName(str(row["source"]), str(row["class_id"]), str(row["name"]), synsets)
