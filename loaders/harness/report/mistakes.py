"""The worst mistakes of a detector: the most confident unknowns and wrong predictions."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.lazy import need
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.wordnet.similarity.pairs import path_between
from wordnet_splits.wordnet.taxonomy import Taxonomy

from ...opening import PackedFolders
from ..comparison.entries import Entry
from ..comparison.semantics import ClassName, classes_of, similarities
from ..detectors.parsing import as_shown, is_log_probability
from ..results.scores import MODEL, predicted_keys

THUMBNAIL = 96
"""Pixels of the longer side."""
ConfidentRow = tuple[float, Mapping[str, Any]]
"""(confidence, row of the predictions)."""
KINDS = {"unknown": "Unknowns taken for known", "wrong": "Wrong predictions taken for right"}


@dataclass(frozen=True)
class Mistake:
    """An image that the network or detector gets wrong.

    Attributes
    ----------
    kind : ``unknown`` or ``wrong``.
    true, predicted : class names; the latter None without a prediction.
    confidence : the detector's confidence, named by ``score_name``; for MSP a probability.
    share : share of the correctly classified ID images whose confidence is lower.
    path : names of the nodes from the true class up to the common one and down to the predicted.
    thumbnail : a PNG as a ``data:`` address, None if the image is not available.
    """

    kind: str
    group: str
    role: str
    source: str
    image_id: str
    confidence: float
    share: float
    true: str
    predicted: str | None
    similarity: float | None
    path: tuple[str, ...]
    score_name: str = "confidence"
    thumbnail: str | None = None


def worst_mistakes(entry: Entry, manifest: Manifest, limit: int) -> list[Mistake]:
    """Return up to ``limit`` mistakes of each kind of an entry's first run, most confident first.

    Parameters
    ----------
    manifest : the benchmark, for the names and synsets of classes.
    """
    evaluation, number = entry.runs[0]
    evaluation.results.require_scores("the worst mistakes")
    results, key = evaluation.results, (entry.detector, number)
    own = key in predicted_keys(results.predictions)
    rows = results.predicted(number, entry.detector if own else MODEL).to_pylist()
    confidences = results.confidences(*key).tolist()
    right: list[ConfidentRow] = []
    mistakes: dict[str, list[ConfidentRow]] = {kind: [] for kind in KINDS}
    for confident_row in zip(confidences, rows, strict=True):
        row = confident_row[1]
        if row["role"] in ("near", "far"):
            mistakes["unknown"].append(confident_row)
        elif row["role"] == "id" and row["label"] >= 0 and row["prediction"] is not None:
            (right if row["label"] == row["prediction"] else mistakes["wrong"]).append(confident_row)
    ranked = np.sort([confidence for confidence, _ in right])
    classes, labels = _names(manifest)
    taxonomy = taxonomy_of(manifest)
    worst = []
    for kind, of_kind in mistakes.items():
        of_kind.sort(key=lambda pair: (-pair[0], pair[1]["group"], pair[1]["image_id"]))
        for confidence, row in of_kind[:limit]:
            true = classes.get((row["source"], row["class_id"]))
            predicted = labels.get(-1 if row["prediction"] is None else row["prediction"])
            similarity, path = _between(true, predicted, taxonomy)
            worst.append(
                Mistake(
                    kind,
                    row["group"],
                    row["role"],
                    row["source"],
                    row["image_id"],
                    float(as_shown(entry.detector, np.array(confidence))),
                    float(np.searchsorted(ranked, confidence) / len(ranked)) if len(ranked) else float("nan"),
                    true.name if true else row["class_id"],
                    predicted.name if predicted else None,
                    similarity,
                    path,
                    "probability" if is_log_probability(entry.detector) else "confidence",
                )
            )
    return worst


def with_thumbnails(
    mistakes: Sequence[Mistake],
    manifest: Manifest,
    *,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
) -> tuple[list[Mistake], list[str]]:
    """Return mistakes with their thumbnails, and sentences on the groups without any."""
    thumbnails: dict[tuple[str, str, str], str] = {}
    notes = []
    for group in dict.fromkeys(mistake.group for mistake in mistakes):
        images = {(mistake.source, mistake.image_id) for mistake in mistakes if mistake.group == group}
        try:
            of_group, reason = _thumbnails(manifest, group, images, roots, packed)
            thumbnails |= {(group, *image): thumbnail for image, thumbnail in of_group.items()}
            notes += [f"No images of {group}: {reason}"] if reason else []
        except SplitsError as error:
            notes.append(f"No images of {group}: {error}")
    return [
        replace(mistake, thumbnail=thumbnails.get((mistake.group, mistake.source, mistake.image_id)))
        for mistake in mistakes
    ], notes


def _thumbnails(
    manifest: Manifest,
    group: str,
    images: set[tuple[str, str]],
    roots: Roots | None,
    packed: PackedFolders | None,
) -> tuple[dict[tuple[str, str], str], str]:
    """Return the thumbnails of available images, and the reasons why other images are missing."""
    need("torch", "torch", where="images of mistakes")
    from ...dataset import UnknownDetectionSet

    dataset = UnknownDetectionSet(manifest, group=group, roots=roots, packed=packed, allow_missing=True)
    columns = (dataset.table[name].to_pylist() for name in ("source", "image_id"))
    rows = [(n, image) for n, image in enumerate(zip(*columns, strict=True)) if image in images]
    reasons = dict.fromkeys(dataset.missing["reason"].to_pylist()) if len(rows) < len(images) else ()
    return {image: _as_png(dataset[n][0]) for n, image in rows}, ", ".join(reasons)


def _as_png(image: Any) -> str:
    thumbnail = image.copy()
    thumbnail.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    thumbnail.save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _between(
    true: ClassName | None, predicted: ClassName | None, taxonomy: Taxonomy
) -> tuple[float | None, tuple[str, ...]]:
    """Return the similarity of two classes, and the path between their nearest synsets."""
    if true is None or predicted is None or not true.wnids or not predicted.wnids:
        return None, ()
    pairs = [
        (ClassName("", a, "", (a,)), ClassName("", b, "", (b,)))
        for a, b in product(true.wnids, predicted.wnids)
    ]
    by_pair = similarities(pairs, taxonomy)
    best = max(pairs, key=lambda pair: (by_pair[pair] or 0.0, pair[0].class_id, pair[1].class_id))
    up, _, down = path_between(best[0].class_id, best[1].class_id, taxonomy)
    names = (taxonomy.lemmas(wnid)[0].replace("_", " ") for wnid in (*up, *down[-2::-1]))
    return by_pair[best], tuple(names)


def _names(
    manifest: Manifest,
) -> tuple[Mapping[tuple[str, str], ClassName], Mapping[int, ClassName]]:
    try:
        return classes_of(manifest)
    except SplitsError:  # no ID class has a label
        return {}, {}
