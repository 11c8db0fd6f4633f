"""The images of an evaluation as answers need them: probabilities, true nodes, verdicts of detectors.

Detector thresholds and conformal sets are cross-calibrated on ID test images: a hash of its name puts each
image into half 0 or 1, and each half is judged by thresholds from the ID images of the opposite half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.sampling import sampling_key
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hierarchy import ClassHierarchy, Rule, balanced_means
from wordnet_splits.metrics.conformal import Promise
from wordnet_splits.wordnet.taxonomy import Taxonomy

from ..data.arrays import Array
from ..models.class_map import LabelSpace
from ..results.metadata import ResultsMetadata, RunFacts
from ..results.schema import ResultTables
from .class_probabilities import probabilities_of, scored_images

ROLES = ("id", "near", "far")
KEY = ("group", "source", "image_id")
FOLDS = (0, 1)


@dataclass(frozen=True, eq=False)
class AnsweredImages:
    """The n ID, near and far test images of an evaluation, and a network's outputs on these images.

    Attributes
    ----------
    table : their rows of the benchmark, with the group. roles : (n,) role of each.
    sizes : group -> number of images; groups follow each other.
    probabilities : (n, K) softmax over the ID classes. truth : (n,) true node.
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
    def of(
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
        taxonomy = Taxonomy.embedded()
        labels = LabelSpace.of(manifest.classes).labels
        unmapped = [label.name for label in labels if not label.wnids]
        if unmapped:
            message = f"ID classes without a synset: {', '.join(unmapped[:3])} ({len(unmapped)} in all)"
            raise DataError(message, where=about.benchmark, hint="map them in the catalog")
        hierarchy = ClassHierarchy.of(
            [label.wnids for label in labels], taxonomy.tree() if tree else taxonomy
        )
        table = pa.concat_tables(tables.values())
        names = zip(*(table[name].to_pylist() for name in ("source", "class_id", "image_id")), strict=True)
        return cls(
            about.benchmark,
            _title(about, network),
            hierarchy,
            table,
            np.array([roles[group] for group in table["group"].to_pylist()]),
            {group: part.num_rows for group, part in tables.items()},
            probabilities,
            _true_nodes(table, manifest, hierarchy),
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
                rank = Promise.of(false_alarms, len(calibration), where=self.benchmark).rank
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


def _true_nodes(table: pa.Table, manifest: Manifest, hierarchy: ClassHierarchy) -> Array:
    columns = (manifest.classes[name].to_pylist() for name in ("source", "class_id", "wnids"))
    nodes = {(source, c): hierarchy.truth(wnids or ()) for source, c, wnids in zip(*columns, strict=True)}
    keys = zip(table["source"].to_pylist(), table["class_id"].to_pylist(), strict=True)
    return np.array([nodes[key] for key in keys])


def _title(about: ResultsMetadata, network: RunFacts) -> str:
    """Return the name of a network in tables: its model, and its number if the model has several runs."""
    return network.model if len(about.runs_of(network.model)) == 1 else f"{network.model}, run {network.run}"
