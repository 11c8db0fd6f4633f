"""HeatMap maps of ID class against OOD class: what is predicted, and the mean softmax."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.plotting import Plot
from wordnet_splits.base.shapes import HeatMap
from wordnet_splits.manifest import Manifest

from ..arrays import CHUNK, Array
from ..model.class_map import LabelSpace
from .registry import plot_kind
from .selection import Network, Subject

MOST_NAMED = 120
"""Classes of a side that are named; more could not be read."""


@plot_kind("predictions", "share of each OOD class that is predicted as each ID class")
def predictions(subject: Subject) -> Plot:
    """A panel for each OOD set, of the first network; a prediction outside the ID classes counts nowhere."""
    network, manifest = next(subject.first_networks()), subject.draw.manifest()
    table = network.predictions
    width = len(LabelSpace.of(manifest.classes).labels)
    panels = []
    for group in subject.roles:
        rows = table.filter(pc.equal(table["group"], group))
        if rows.num_rows:
            said = rows["prediction"].to_numpy()
            shares = np.zeros((rows.num_rows, width))
            inside = np.flatnonzero((said >= 0) & (said < width))
            shares[inside, said[inside]] = 1
            panels.append(_heat(group, rows["class_id"].to_pylist(), shares, manifest))
    return Plot(f"{subject.benchmark}: predictions of OOD classes, {network.name}", tuple(panels))


@plot_kind("kim-7", "mean softmax of each OOD class over the ID classes (--store)", paper="Kim, figure 7")
def mean_softmax(subject: Subject) -> Plot:
    """A panel for each OOD set, of the first network, from the logits that its evaluation stored."""
    network, manifest = next(subject.first_networks()), subject.draw.manifest()
    if subject.store is None:
        raise DataError(
            "the results hold no softmax",
            where="kim-7",
            hint="give the folder of activations, --store DIR, or plot `predictions`",
        )
    panels = []
    for group in subject.roles:
        table, logits = _stored_logits(network, manifest, group, subject.store)
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax = exponents / exponents.sum(axis=1, keepdims=True)
        panels.append(_heat(group, table["class_id"].to_pylist(), softmax, manifest))
    return Plot(f"{subject.benchmark}: mean softmax of OOD classes, {network.name}", tuple(panels))


def _heat(group: str, class_ids: Sequence[str], values: Array, manifest: Manifest) -> HeatMap:
    """Mean of the images' rows by class; classes in the order of the ID class that each is nearest to."""
    labels = LabelSpace.of(manifest.classes).labels
    classes, of_image = np.unique(class_ids, return_inverse=True)
    sums = np.zeros((len(classes), values.shape[1]))
    np.add.at(sums, of_image.reshape(-1), values)
    means = sums / np.bincount(of_image.reshape(-1))[:, None]
    rows = manifest.classes.filter(pc.equal(manifest.classes["group"], group)).to_pylist()
    column_of = {label.class_id: n for n, label in enumerate(labels)}
    place = {row["class_id"]: column_of.get(row["nearest_id"], len(labels)) for row in rows}
    names = {row["class_id"]: row["name"] for row in rows}
    order = sorted(range(len(classes)), key=lambda n: (place.get(classes[n], len(labels)), classes[n]))
    return HeatMap(
        group,
        "ID class",
        "OOD class",
        _named([str(names.get(classes[n], classes[n])) for n in order]),
        _named([label.name for label in labels]),
        means[order],
    )


def _named(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names) if len(names) <= MOST_NAMED else ("",) * len(names)


def _stored_logits(network: Network, manifest: Manifest, group: str, store: Path) -> tuple[pa.Table, Array]:
    """Return the images that were scored and their logits (n, K).

    Raises
    ------
    DataError : the store does not hold them, or the columns of the model are not the labels.
    """
    from ..activations.store import FORWARD, Store
    from ..backend.keys import list_key

    (run,) = [one for one in network.source.tables.about.runs if one.run == network.run]
    width = len(LabelSpace.of(manifest.classes).labels)
    if run.class_map is None or run.class_map.of != width or run.class_map.background is not None:
        raise DataError(f"{network.name} has other columns than the {width} ID classes", where="kim-7")
    predicted = network.predictions
    scored = set(predicted.filter(pc.equal(predicted["group"], group))["image_id"].to_pylist())
    images = manifest.images("test", group)
    images = images.filter(pa.array([name in scored for name in images["image_id"].to_pylist()], pa.bool_()))
    for key in run.transforms:
        held = Store(store).group(run.model_key, key, list_key(images), n=images.num_rows)
        if held.begun and not held.missing(FORWARD):
            logits = held.open(FORWARD)["logits"]
            parts = [np.asarray(logits[n : n + CHUNK]) for n in range(0, images.num_rows, CHUNK)]
            return images, np.concatenate(parts).astype(np.float64)
    hint = "give the --store of the evaluation"
    raise DataError(f"no activations of {network.name} on {group}", where=str(store), hint=hint)
