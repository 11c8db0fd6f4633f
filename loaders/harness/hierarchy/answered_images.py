"""The images of an evaluation as answers need them: probabilities, true nodes, verdicts of detectors.

Logits come from the activation store, from the network in memory, or as arrays.

Detector thresholds and conformal sets are cross-calibrated on ID test images: a hash of its name puts each
image into half 0 or 1, and each half is judged by thresholds from the ID images of the opposite half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.digests import sampling_key
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hierarchy import ClassHierarchy, Rule, balanced_means
from wordnet_splits.metrics.conformal import ConformalGuarantee
from wordnet_splits.metrics.counts import to_numpy

from ..data.arrays import CHUNK, Array
from ..detectors.softmax import log_softmax
from ..models.class_map import LabelSpace
from ..results.metadata import RunFacts
from ..results.scores import ResultTables

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
    """Return the logits (n, K) of images that an evaluation stored."""
    from ..extraction.outputs import Store, image_names
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
    """Return the softmax (n, K) over the ID classes of the images of all groups, in order."""
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
    from ..extraction.extractor import BenchmarkImages, Extractor
    from ..extraction.outputs import Store
    from ..models.loading import load_model
    from ..models.transforms import with_transform

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


ROLES = ("id", "near", "far")
KEY = ("group", "source", "image_id")
FOLDS = (0, 1)


@dataclass(frozen=True, eq=False)
class AnsweredImages:
    """The n ID, near and far test images of an evaluation, and a network's outputs on these images.

    Attributes
    ----------
    table : their rows of the benchmark, with the group.
    roles : (n,) role of each.
    sizes : group -> number of images; groups follow each other.
    probabilities : (n, K) softmax over the ID classes.
    truth : (n,) true node.
    folds : (n,) half of the cross-calibration, 0 or 1.
    """

    benchmark: str
    network: str
    hierarchy: ClassHierarchy
    table: pa.Table
    roles: Array
    sizes: Mapping[str, int]
    probabilities: Array
    truth: Array
    folds: Array

    @classmethod
    def from_results(
        cls,
        results: ResultTables,
        network: RunFacts,
        benchmark: Manifest | str | Path | None = None,
        *,
        store: str | Path | None,
        logits: Mapping[str, npt.ArrayLike] | None,
        tree: bool,
    ) -> AnsweredImages:
        """Read the logits of a network, and the true node of every image; see `name_unknowns`."""
        about = results.about
        if about.custom_sets:
            hint = "evaluate on a benchmark, whose classes have synsets"
            raise DataError("sets given in Python have no class table", where=about.benchmark, hint=hint)
        reopen = getattr(results, "reopen", None)  # results that were read have none
        if benchmark is None:
            benchmark = about.benchmark if reopen is None else reopen(network.run)["benchmark"]
        manifest = load_manifest(benchmark)
        if manifest.version != about.version:
            message = f"the results are of version {about.version}, and version {manifest.version} is here"
            raise DataError(message, where=about.benchmark)
        roles = _roles(results, network)
        tables = {group: scored_images(results, manifest, group) for group in roles}
        probabilities = probabilities_of(results, reopen, network, manifest, tables, store, logits)
        taxonomy = taxonomy_of(manifest)
        if tree and not taxonomy.is_wordnet:
            message = f"the tree is ImageNet's, and the classes are in {taxonomy.title}"
            raise DataError(message, where=about.benchmark, hint="leave out --tree (tree=)")
        labels = LabelSpace.of(manifest.classes).labels
        unmapped = [label.name for label in labels if not label.wnids]
        if unmapped:
            message = (
                f"ID classes without a {taxonomy.noun}: {', '.join(unmapped[:3])} ({len(unmapped)} in all)"
            )
            raise DataError(message, where=about.benchmark, hint="map them in the catalog")
        hierarchy = ClassHierarchy.of(
            [label.wnids for label in labels], taxonomy.tree() if tree else taxonomy
        )
        table = pa.concat_tables(tables.values())
        names = list(
            zip(*(table[name].to_pylist() for name in ("source", "class_id", "image_id")), strict=True)
        )
        columns = (manifest.classes[name].to_pylist() for name in ("source", "class_id", "wnids"))
        nodes = {(s, c): hierarchy.truth(wnids or ()) for s, c, wnids in zip(*columns, strict=True)}
        return cls(
            about.benchmark,
            network.model
            if len(about.runs_of(network.model)) == 1
            else f"{network.model}, run {network.run}",
            hierarchy,
            table,
            np.array([roles[group] for group in table["group"].to_pylist()]),
            {group: part.num_rows for group, part in tables.items()},
            probabilities,
            np.array([nodes[key[:2]] for key in names]),
            np.array([sampling_key("hierarchy", 0, *name)[0] & 1 for name in names]),
        )

    @property
    def present(self) -> list[str]:
        """The roles that have images."""
        return [role for role in ROLES if (self.roles == role).any()]

    def names(self) -> list[str]:
        """Return ``GROUP/SOURCE/IMAGE_ID`` of each image."""
        return ["/".join(row) for row in zip(*(self.table[n].to_pylist() for n in KEY), strict=True)]

    def means(self, values: Array, weights: Array | None = None) -> Array:
        """Return (roles + 1, r, m) means of values (n, m), balanced over true nodes; the last is their mean.

        ``weights`` (r, n) : image weights of r replicates.
        """
        by_role = []
        for role in self.present:
            rows = self.roles == role
            part = None if weights is None else weights[:, rows]
            by_role.append(balanced_means(values[rows], self.truth[rows], part))
        return np.array([*by_role, np.mean(by_role, axis=0)])

    def answers(self, rule: Rule, outside: Array | None = None) -> Array:
        """Return the node (n,) of a rule for all images; or inner nodes for those ``outside``, else -1."""
        labels = self.table["label"].to_numpy()
        answers = np.full(len(self.truth), -1)
        for fold in FOLDS:
            labelled = (self.roles == "id") & (labels >= 0)  # the classifier may lack an ID class
            calibrating = np.flatnonzero((self.folds != fold) & labelled)
            rows = (self.folds == fold) & (True if outside is None else outside)
            answers[rows] = rule.answers(
                self.hierarchy,
                self.probabilities[rows],
                calibration=self.probabilities[calibrating, labels[calibrating]],
                unknown=outside is not None,
            )
        return answers

    def verdicts(
        self, results: ResultTables, network: RunFacts, detectors: Sequence[str], false_alarms: float
    ) -> Iterator[tuple[str, Array]]:
        """Yield the images (n,) that each detector calls unknown."""
        keys = list(zip(*(self.table[name].to_pylist() for name in KEY), strict=True))
        scored = zip(*(results.scores[name].to_pylist() for name in KEY), strict=True)
        row_of = {key: row for row, key in enumerate(scored)}
        rows_of_images = np.array([row_of[key] for key in keys])
        for name in detectors:
            confidences = results.confidences(name, network.run)[rows_of_images]
            outside = np.zeros(len(keys), dtype=bool)
            for fold in FOLDS:
                calibration = np.sort(confidences[(self.folds != fold) & (self.roles == "id")])
                rank = ConformalGuarantee.for_rate(false_alarms, len(calibration), where=self.benchmark).rank
                rows = self.folds == fold
                outside[rows] = confidences[rows] < calibration[rank - 1]
            yield name, outside


def _roles(results: ResultTables, network: RunFacts) -> dict[str, str]:
    """Return group -> role of the ID, near and far sets that were scored, ID first."""
    pairs = dict(zip(results.scores["group"].to_pylist(), results.scores["role"].to_pylist(), strict=True))
    roles = {group: role for ordered in ROLES for group, role in pairs.items() if role == ordered}
    if "id" not in roles.values():
        raise DataError(f"no ID images of {network.name}", where=results.about.benchmark)
    return roles
