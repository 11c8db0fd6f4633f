"""From stored confidences and predictions to all rows of results, for evaluation and checking alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.metrics import ScoreSet, composition, gamma, gamma_minus, gamma_plus

from ..arrays import Array
from .metric_rows import POOLED, UNKNOWN_ROLES, BinRow, ClassRow, Members, MetricRow, by_nearness, measure
from .schema import MODEL, MetricOptions, RunFacts

DetectorRun = tuple[str, int]
"""(detector, run)."""
ClassKey = tuple[str, str]
"""(source, class_id)."""
MOST_BLOCKS = 10_000


@dataclass(frozen=True, eq=False)
class Derived:
    """Rows by detector and run, in the order of the scores."""

    results: list[tuple[DetectorRun, MetricRow]] = field(default_factory=list)
    classes: list[tuple[DetectorRun, ClassRow]] = field(default_factory=list)
    bins: list[tuple[DetectorRun, BinRow]] = field(default_factory=list)
    composition: dict[str, Any] = field(default_factory=dict)


def derive(
    scores: pa.Table,
    predictions: pa.Table,
    similarity: Mapping[ClassKey, float | None],
    options: MetricOptions,
    runs: Sequence[RunFacts],
    *,
    with_intervals: Collection[DetectorRun] | None = None,
    progress: Progress | None = None,
) -> Derived:
    """Compute every row from the two stored tables (`rows.SCORES`, `rows.PREDICTIONS`).

    Parameters
    ----------
    similarity : of each class to its nearest ID class. runs : the networks that were scored.
    with_intervals : the detectors and runs whose intervals are computed, where the options ask for any; by
        default all.

    Raises
    ------
    DataError : scores hold an image that predictions lack, or the other way round; NaN among scores; a run
        that is not described, or more than `MOST_BLOCKS` pairs of detector and run.
    """
    derived = Derived()
    facts = {one.run: one for one in runs}
    said = predicted_images(predictions)
    for (detector, run), images in said.items():
        if not detector:
            if run not in facts:
                raise DataError(f"run {run} is not described", where="about.json")
            derived.results.extend(((MODEL, run), row) for row in _gammas(images, facts[run]))
    scored = list(blocks(scores, "scores"))
    for key, table in _watched(scored, progress or Silent()):
        images, confidence = _scored(key, table, said)
        sets = [images.score_set(group, confidence) for group in images.groups]
        members = {group: images.members(group, similarity) for group in images.groups}
        found, bins, trend = by_nearness(sets, members, options)
        chosen = options
        if with_intervals is not None and key not in with_intervals:
            chosen = options.model_copy(update={"replicates": 0})
        derived.results.extend((key, row) for row in [*measure(sets, chosen), *trend])
        derived.classes.extend((key, row) for row in found)
        derived.bins.extend((key, row) for row in bins)
        if not derived.composition:
            pooled = [part for part in sets if part.role in ("id", *UNKNOWN_ROLES)]
            derived.composition.update(composition(pooled)._asdict())
    return derived


def block_sizes(scores: pa.Table) -> dict[DetectorRun, int]:
    """Return how many images each detector scored in each run."""
    counted = scores.select(["detector", "run"]).group_by(["detector", "run"]).aggregate([([], "count_all")])
    return {(row["detector"], row["run"]): row["count_all"] for row in counted.to_pylist()}


def similarities(by_class: pa.Table) -> dict[ClassKey, float | None]:
    """Return the similarity of each class to its nearest ID class, from `rows.BY_CLASS`."""
    rows = by_class.select(["source", "class_id", "similarity"]).to_pylist()
    return {(row["source"], row["class_id"]): row["similarity"] for row in rows}


def predicted_images(predictions: pa.Table) -> dict[DetectorRun, ScoredImages]:
    """Return the images of each run, and of each ensemble that predicts together."""
    return {key: ScoredImages(table) for key, table in blocks(predictions, "predictions")}


def scored_images(
    scores: pa.Table, predictions: pa.Table
) -> Iterator[tuple[DetectorRun, ScoredImages, Array]]:
    """Yield the images and confidences, in one order, of every detector and run."""
    said = predicted_images(predictions)
    for key, table in blocks(scores, "scores"):
        yield (key, *_scored(key, table, said))


def _scored(
    key: DetectorRun, table: pa.Table, said: Mapping[DetectorRun, ScoredImages]
) -> tuple[ScoredImages, Array]:
    if key not in said and ("", key[1]) not in said:
        raise DataError(f"no predictions of run {key[1]}", where="predictions")
    images = said[key if key in said else ("", key[1])]
    return images, images.aligned(table, f"{key[0]}, run {key[1]}")


def _watched(
    scored: list[tuple[DetectorRun, pa.Table]], progress: Progress
) -> Iterator[tuple[DetectorRun, pa.Table]]:
    with progress.task("detectors measured", len(scored)) as task:
        for block in scored:
            yield block
            task.advance()


class ScoredImages:
    """The images of one run with their labels and what the model, or an ensemble, predicts for them."""

    def __init__(self, table: pa.Table) -> None:
        self.keys = _keys(table)
        if len(set(self.keys)) < len(self.keys):  # one image's score could pass for another's
            raise DataError("an image occurs twice", where="predictions")
        self._group = np.array(table["group"].to_pylist(), dtype=object)
        self._columns = {
            name: table[name].to_numpy() for name in ("label", "target_probability", "max_probability")
        }
        self._prediction = np.array(table["prediction"].to_pylist(), dtype=object)
        self._class = np.array(table["class_id"].to_pylist(), dtype=object)
        first: dict[str, tuple[str, str]] = {}
        for group, role, source in zip(
            self._group, table["role"].to_pylist(), table["source"].to_pylist(), strict=True
        ):
            first.setdefault(str(group), (role, source))
        self.groups = tuple(first)
        self.roles = {group: role for group, (role, _) in first.items()}
        self.sources = {group: source for group, (_, source) in first.items()}
        self._rows = {group: np.flatnonzero(self._group == group) for group in first}

    def aligned(self, scores: pa.Table, where: str) -> Array:
        """Return the confidences in the order of these images."""
        keys = _keys(scores)
        confidence = np.asarray(scores["confidence"].to_numpy())
        if np.array_equal(keys, self.keys):
            return confidence
        mine, theirs = np.argsort(self.keys, kind="stable"), np.argsort(keys, kind="stable")
        if not np.array_equal(self.keys[mine], keys[theirs]):
            different = sorted(set(self.keys) ^ set(keys)) or ["an image twice"]
            raise DataError(
                f"scores and predictions hold different images, e.g. {different[0].replace(chr(31), ' ')}",
                where=where,
            )
        out = np.empty_like(confidence)
        out[mine] = confidence[theirs]
        return out

    def score_set(self, group: str, confidence: Array) -> ScoreSet:
        """Return one group's confidences, with correctness where every image of an ID group has a label."""
        rows, role = self._rows[group], self.roles[group]
        label, predicted = self._columns["label"][rows], self._prediction[rows]
        known = role in ("id", "csid") and (label >= 0).all() and all(p is not None for p in predicted)
        return ScoreSet(group, role, confidence[rows], (predicted == label) if known else None)

    def names(self, group: str) -> Array:
        """Return what names each of one group's images, its label included, sorted."""
        rows = self._rows[group]
        labels = self._columns["label"][rows]
        return np.sort([f"{key}\x1f{label}" for key, label in zip(self.keys[rows], labels, strict=True)])

    def by_name(self, group: str, confidence: Array) -> ScoreSet:
        """Return `score_set` with the images sorted by name, as `names`: rows that detectors share."""
        found = self.score_set(group, confidence)
        order = np.argsort(self.keys[self._rows[group]], kind="stable")
        correct = None if found.correct is None else found.correct[order]
        return ScoreSet(found.name, found.role, found.confidence[order], correct)

    def members(self, group: str, similarity: Mapping[ClassKey, float | None]) -> Members:
        """Return the classes of one group's images."""
        ids, source = self._class[self._rows[group]], self.sources[group]
        return Members(source, ids, {str(i): similarity.get((source, str(i))) for i in set(ids)})

    def probabilities(self, group: str, column: str) -> Array:
        """Return the softmax probabilities of one group's images, NaN where there is none."""
        return np.asarray(self._columns[column][self._rows[group]], dtype=np.float64)


def _gammas(images: ScoredImages, run: RunFacts) -> Iterator[MetricRow]:
    """Palechor's validation confidences on these images: of ID, of each OOD set, and their mean."""
    inside = [group for group in images.groups if images.roles[group] == "id"]
    outside = [group for group in images.groups if images.roles[group] not in ("id", "csid")]
    target = np.concatenate([images.probabilities(g, "target_probability") for g in inside] or [np.empty(0)])
    if not len(target) or np.isnan(target).any():
        return
    n = len(target)
    yield MetricRow(POOLED, "id", "gamma_plus", gamma_plus(target), None, None, n, 0)
    for group in outside:
        greatest = images.probabilities(group, "max_probability")
        if not len(greatest):
            continue
        role, n_ood = images.roles[group], len(greatest)
        options: dict[str, Any] = {"classes": run.known_classes, "background": run.other_columns}
        minus, both = gamma_minus(greatest, **options), gamma(target, greatest, **options)
        yield MetricRow(group, role, "gamma_minus", minus, None, None, 0, n_ood)
        yield MetricRow(group, role, "gamma", both, None, None, n, n_ood)


def _keys(table: pa.Table) -> Array:
    """One string per row naming its image in its group."""
    columns = (table[name].to_pylist() for name in ("group", "source", "image_id"))
    return np.array(["\x1f".join(row) for row in zip(*columns, strict=True)], dtype=object)


def blocks(table: pa.Table, where: str) -> Iterator[tuple[DetectorRun, pa.Table]]:
    """Yield the rows of each (detector, run), in the order in which they first appear."""
    names = table["detector"].combine_chunks().dictionary_encode()
    codes = np.asarray(names.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    runs = np.asarray(table["run"].to_numpy(), dtype=np.int64)
    pairs, first, inverse = np.unique(
        np.column_stack([codes, runs]), axis=0, return_index=True, return_inverse=True
    )
    if len(pairs) > MOST_BLOCKS:
        raise DataError(f"{len(pairs):,} pairs of detector and run, at most {MOST_BLOCKS:,}", where=where)
    for number in np.argsort(first):
        code, run = pairs[number]
        rows = np.flatnonzero(inverse.reshape(-1) == number)
        yield (names.dictionary[int(code)].as_py(), int(run)), table.take(pa.array(rows))
