"""The logits behind results: of the activation store, of the network in memory, or given as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics.counts import to_numpy

from ..data.arrays import CHUNK, Array
from ..detectors.softmax import log_softmax
from ..models.class_map import LabelSpace
from ..results.metadata import RunFacts
from ..results.schema import ResultTables

Reopen = Callable[[int], Mapping[str, Any]]
"""Run -> the arguments of its evaluation, see `Results.reopen`."""
TOLERANCE = 1e-3
"""Greatest difference between a network's logits on different devices."""
MAX_LOG_RATIO = 0.05
"""Greatest difference of the logarithms of a stored and a given probability; half precision reaches 0.02."""
LEAST_PROBABILITY = 1e-30
"""Below it float32 has too few digits to compare."""
ABSENT = "give the --store of the evaluation (store=), or logits= in Python"


def scored_images(results: ResultTables, manifest: Manifest, group: str) -> pa.Table:
    """Return the scored test images of a group, in the order of the benchmark."""
    results.require_scores("an answer for each image")
    scored = set(results.scores.filter(pc.equal(results.scores["group"], group))["image_id"].to_pylist())
    images = manifest.images("test", group)
    return images.filter(pa.array([name in scored for name in images["image_id"].to_pylist()], pa.bool_()))


def stored_logits(
    run: RunFacts, manifest: Manifest, group: str, images: pa.Table, store: Path, where: str
) -> Array:
    """Return the logits (n, K) of images that an evaluation stored.

    Raises
    ------
    DataError : the store lacks them, or the columns of the model are not the labels.
    """
    from ..extraction.store import Store, image_names
    from ..extraction.stored_list import FORWARD

    width = len(LabelSpace.of(manifest.classes).labels)
    if run.class_map is None or run.class_map.of != width or run.class_map.background is not None:
        raise DataError(f"{run.name} has other columns than the {width} ID classes", where=where)
    names = image_names(images)
    for key in run.transforms:
        stored = Store(store).model(run.model_key, key)
        if not len(stored.places(names, FORWARD).missing):
            logits = stored.open(names, FORWARD)["logits"]
            parts = [np.asarray(logits[n : n + CHUNK]) for n in range(0, images.num_rows, CHUNK)]
            return np.concatenate(parts).astype(np.float64)
    hint = "give the --store of the evaluation"
    raise DataError(f"no activations of {run.name} on {group}", where=str(store), hint=hint)


def probabilities_of(
    results: ResultTables,
    reopen: Reopen | None,
    run: RunFacts,
    manifest: Manifest,
    images: Mapping[str, pa.Table],
    store: str | Path | None,
    logits: Mapping[str, npt.ArrayLike] | None,
) -> Array:
    """Return the softmax (n, K) over the ID classes of the images of all groups, in order.

    Raises
    ------
    DataError : no source of logits, a group without them, or other images or classes than the results'.
    """
    where = results.about.benchmark
    if logits is not None:
        if not isinstance(logits, Mapping):
            raise DataError(f"logits must be given by group, got {type(logits).__name__}", where=where)
        absent = [group for group in images if group not in logits]
        if absent:
            raise DataError(f"no logits of {', '.join(absent)}", where=where)
        parts = [to_numpy(logits[group], where=group) for group in images]
    elif store is not None:
        tables = images.items()
        parts = [stored_logits(run, manifest, g, table, Path(store), "hierarchy") for g, table in tables]
    elif reopen is not None and reopen(run.run)["model"] is not None:
        parts = _network_logits(reopen(run.run), images)
    else:
        raise DataError("results hold no logits", where=where, hint=ABSENT)
    width = len(LabelSpace.of(manifest.classes).labels)
    for (group, table), part in zip(images.items(), parts, strict=True):
        if part.shape != (table.num_rows, width) or part.dtype.kind not in "fiu":
            raise DataError(
                f"logits of shape {part.shape} and type {part.dtype}, where {table.num_rows:,} images and "
                f"{width} ID classes need numbers of shape {(table.num_rows, width)}",
                where=group,
            )
    values = np.concatenate(parts).astype(np.float64)
    if not np.isfinite(values).all():
        raise DataError("logits hold NaN or infinity", where=where)
    log_probabilities = log_softmax(values)
    _check_predictions(results, run, images, log_probabilities)
    return np.exp(log_probabilities)


def _network_logits(arguments: Mapping[str, Any], images: Mapping[str, pa.Table]) -> list[Array]:
    """Return the logits of a network that was evaluated, by forward passes or its store.

    Parameters
    ----------
    arguments : of the evaluation, see `Results.reopen`.
    """
    from ..extraction.batches import with_transform
    from ..extraction.extractor import BenchmarkImages, Extractor
    from ..extraction.store import Store
    from ..models import load_model

    loading = dict(arguments)
    manifest, transform = loading.pop("benchmark"), loading.pop("transform")
    roots, packed, folder = (loading.pop(name) for name in ("roots", "packed", "store"))
    batch_size, workers = loading.pop("batch_size"), loading.pop("workers")
    network = load_model(loading.pop("model"), **loading)
    if transform is not None:
        network = with_transform(network, transform, manifest.data.recipe)
    opened = BenchmarkImages(manifest, roots, packed, allow_missing=True)
    opened.test(list(images))
    with TemporaryDirectory() as temporary:
        store = Store(Path(folder or temporary), permanent=folder is not None)
        outputs = Extractor(network, opened, store, batch_size, workers).run()
        groups = [outputs.group("test", group, {"logits"}) for group in images]
        return [
            np.concatenate([np.asarray(chunk["logits"], np.float64) for chunk in group.arrays.chunks(CHUNK)])
            for group in groups
        ]


def _check_predictions(
    results: ResultTables, run: RunFacts, images: Mapping[str, pa.Table], log_probabilities: Array
) -> None:
    """Raise DataError if the logits contradict the results: other images, another network or another scale.

    Predicted classes do not change if logits are multiplied or replaced by their ranks; probabilities do. If
    the stored softmax has more columns than the ID classes, only ratios are comparable.
    """
    table = results.predicted(run.run)
    names = ("label", "prediction", "max_probability", "target_probability")
    keys = zip(table["group"].to_pylist(), table["image_id"].to_pylist(), strict=True)
    rows = {key: n for n, key in enumerate(keys)}
    order = [rows.get((group, i), -1) for group, part in images.items() for i in part["image_id"].to_pylist()]
    columns = {name: np.append(table[name].to_numpy(zero_copy_only=False), np.nan)[order] for name in names}
    predicted = np.flatnonzero(columns["prediction"] >= 0)
    labels = columns["prediction"][predicted].astype(np.int64)
    gaps = log_probabilities[predicted].max(axis=1) - log_probabilities[predicted, labels]
    different = int((gaps > TOLERANCE).sum())
    problem = "the logits predict another class than the results"
    if not different:
        problem = "the softmax of the logits differs from the results"
        different = int((_log_ratios(columns, log_probabilities, run) > MAX_LOG_RATIO).sum())
    if different:
        raise DataError(
            f"{problem} for {different:,} of {len(order):,} images",
            where=results.about.benchmark,
            hint="give rows in the order of the benchmark's test images (`image_ids`), and values as the "
            "network gave them, before any softmax or temperature",
        )


def _log_ratios(columns: Mapping[str, Array], log_probabilities: Array, run: RunFacts) -> Array:
    """Return the differences (n,) between logarithms of stored and given probabilities, NaN if unknown.

    If the stored softmax has more columns, a given probability is an upper bound of the stored probability.
    """
    greatest = log_probabilities.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        stored = np.log(columns["max_probability"].astype(np.float64))
        if not run.other_columns:
            return np.asarray(np.abs(stored - greatest))
        target = columns["target_probability"].astype(np.float64)
        stored -= np.log(np.where(target > LEAST_PROBABILITY, target, np.nan))
        labels = np.where(columns["label"] >= 0, columns["label"], 0).astype(np.int64)
        given = greatest - log_probabilities[np.arange(len(labels)), labels]
        bound = np.log(columns["max_probability"]) - greatest
        return np.asarray(np.fmax(np.abs(stored - given), bound))
