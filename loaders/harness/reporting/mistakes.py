"""The worst mistakes of a detector: the unknowns and the wrong predictions that it is surest of."""

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
from wordnet_splits.manifest import Manifest
from wordnet_splits.similarity.similarity import path_between
from wordnet_splits.sources.roots import Roots
from wordnet_splits.taxonomy import Taxonomy

from ...opening import PackedFolders
from ..comparison.entries import Entry
from ..semantics import ClassName, classes_of, similarities

THUMBNAIL = 96
"""Pixels of the longer side."""
Sure = tuple[float, Mapping[str, Any]]
"""(confidence, row of the predictions)."""
KINDS = {"unknown": "Unknowns taken for known", "wrong": "Wrong predictions taken for right"}


@dataclass(frozen=True)
class Mistake:
    """One image.

    Attributes
    ----------
    kind : ``unknown`` or ``wrong``. true, predicted : names; the latter None where nothing is predicted.
    share : of the rightly classified ID images, those of less confidence.
    way : the path in WordNet from the true up to the common class and down to the predicted one, as names.
    picture : a PNG as a ``data:`` address, None where the image is not at hand.
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
    way: tuple[str, ...]
    picture: str | None = None


def worst_mistakes(entry: Entry, manifest: Manifest, most: int) -> list[Mistake]:
    """Return the ``most`` mistakes of each kind of an entry's first run, surest first.

    Parameters
    ----------
    manifest : the benchmark, for the names and synsets of classes.
    """
    source, number = entry.runs[0]
    source.tables.require_scores("the worst mistakes")
    scores, said = source.tables.scores.to_pylist(), source.tables.predictions.to_pylist()
    own = [r for r in said if r["run"] == number and r["detector"] == entry.detector]
    own = own or [r for r in said if r["run"] == number and not r["detector"]]
    confidence = {
        (row["group"], row["source"], row["image_id"]): row["confidence"]
        for row in scores
        if row["run"] == number and row["detector"] == entry.detector
    }
    classes, labels = _names(manifest)
    right: list[Sure] = []
    unknown: list[Sure] = []
    wrong: list[Sure] = []
    for row in own:
        sure = confidence[row["group"], row["source"], row["image_id"]]
        if row["role"] in ("near", "far"):
            unknown.append((sure, row))
        elif row["role"] == "id" and row["label"] >= 0 and row["prediction"] is not None:
            (right if row["label"] == row["prediction"] else wrong).append((sure, row))
    ranked = np.sort([sure for sure, _ in right])
    found = []
    for kind, rows in (("unknown", unknown), ("wrong", wrong)):
        rows.sort(key=lambda pair: (-pair[0], pair[1]["group"], pair[1]["image_id"]))
        for sure, row in rows[:most]:
            true = classes.get((row["source"], row["class_id"]))
            predicted = labels.get(-1 if row["prediction"] is None else row["prediction"])
            similarity, way = _between(true, predicted)
            found.append(
                Mistake(
                    kind,
                    row["group"],
                    row["role"],
                    row["source"],
                    row["image_id"],
                    sure,
                    float(np.searchsorted(ranked, sure) / len(ranked)) if len(ranked) else float("nan"),
                    true.name if true else row["class_id"],
                    predicted.name if predicted else None,
                    similarity,
                    way,
                )
            )
    return found


def with_pictures(
    mistakes: Sequence[Mistake],
    manifest: Manifest,
    *,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
) -> tuple[list[Mistake], list[str]]:
    """Return mistakes with their thumbnails, and why those of some groups are absent, as sentences."""
    pictures: dict[tuple[str, str, str], str] = {}
    notes = []
    for group in dict.fromkeys(one.group for one in mistakes):
        wanted = {(one.source, one.image_id) for one in mistakes if one.group == group}
        try:
            made, why = _pictures(manifest, group, wanted, roots, packed)
            pictures |= {(group, *key): picture for key, picture in made.items()}
            notes += [f"No pictures of {group}: {why}"] if why else []
        except SplitsError as error:
            notes.append(f"No pictures of {group}: {error}")
    return [
        replace(one, picture=pictures.get((one.group, one.source, one.image_id))) for one in mistakes
    ], notes


def _pictures(
    manifest: Manifest,
    group: str,
    wanted: set[tuple[str, str]],
    roots: Roots | None,
    packed: PackedFolders | None,
) -> tuple[dict[tuple[str, str], str], str]:
    """Return the pictures of images that are at hand, and why others are not."""
    need("torch", "torch", where="pictures of mistakes")
    from ...dataset import UnknownDetectionSet

    images = UnknownDetectionSet(manifest, group=group, roots=roots, packed=packed, allow_missing=True)
    columns = (images.table[name].to_pylist() for name in ("source", "image_id"))
    rows = [(n, key) for n, key in enumerate(zip(*columns, strict=True)) if key in wanted]
    absent = (
        "" if len(rows) == len(wanted) else ", ".join(dict.fromkeys(images.missing["reason"].to_pylist()))
    )
    return {key: _as_png(images[n][0]) for n, key in rows}, absent


def _as_png(image: Any) -> str:
    small = image.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    small.save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _between(true: ClassName | None, predicted: ClassName | None) -> tuple[float | None, tuple[str, ...]]:
    """Return the similarity of two classes, and the way between their nearest synsets."""
    if true is None or predicted is None or not true.wnids or not predicted.wnids:
        return None, ()
    pairs = [
        (ClassName("", a, "", (a,)), ClassName("", b, "", (b,)))
        for a, b in product(true.wnids, predicted.wnids)
    ]
    known = similarities(pairs)
    best = max(pairs, key=lambda pair: (known[pair] or 0.0, pair[0].class_id, pair[1].class_id))
    up, _, down = path_between(best[0].class_id, best[1].class_id)
    taxonomy = Taxonomy.embedded()
    return known[best], tuple(taxonomy.lemmas(wnid)[0].replace("_", " ") for wnid in (*up, *down[-2::-1]))


def _names(
    manifest: Manifest,
) -> tuple[Mapping[tuple[str, str], ClassName], Mapping[int, ClassName]]:
    try:
        return classes_of(manifest)
    except SplitsError:  # no ID class has a label
        return {}, {}
