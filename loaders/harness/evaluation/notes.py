"""Notes below the tables of an evaluation, on conditions that may make its figures misleading.

Inputs that are certainly wrong are refused where they are read; those that somebody may intend get a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .metric_rows import FULL_SPECTRUM, MetricRow
from .schema import MetricFacts
from .user_sets import LABELLED, UserSet

SIGMAS, MIN_GAIN = 3, 1.5
"""Accuracy within so many standard deviations of guessing, and below so many times it, gets a note."""


def user_set_notes(sets: Mapping[str, UserSet], noun: str, comparison: str = "") -> Iterator[str]:
    """Yield notes on user sets, by name: images that two of them share, or that have two labels.

    Parameters
    ----------
    noun : for an item of the sets, in the singular: "image". comparison : words on how items are compared.
    """
    suffix = comparison and f", {comparison}"
    digests = {name: Counter(user_set.digests) for name, user_set in sets.items()}
    for a, b in combinations(digests, 2):
        n = sum((digests[a] & digests[b]).values())
        if n:
            yield f"{a} and {b} have {_count(n, noun)} in common{suffix}"
    labels: dict[str, int] = {}
    ambiguous: set[str] = set()
    labelled = [name for name, user_set in sets.items() if user_set.role in LABELLED]
    for name in labelled:
        for digest, label in zip(sets[name].digests, sets[name].labels.tolist(), strict=True):
            if labels.setdefault(digest, label) != label:
                ambiguous.add(digest)
    if ambiguous:
        names = " and ".join(name for name in labelled if ambiguous & digests[name].keys())
        occur = "occurs" if len(ambiguous) == 1 else "occur"
        yield f"{_count(len(ambiguous), noun)} of {names} {occur} with more than one label{suffix}"


def _count(n: int, noun: str) -> str:
    return f"1 {noun}" if n == 1 else f"{n:,} {noun}s"


def size_notes(shapes: Mapping[str, tuple[int, ...] | None]) -> Iterator[str]:
    """Yield a note where the sizes of images differ between sets.

    Parameters
    ----------
    shapes : set -> (3, h, w) of its images as the model gets them; None or () where unknown.
    """
    groups: dict[tuple[int, ...], list[str]] = {}
    for group, shape in shapes.items():
        if shape:
            groups.setdefault(tuple(shape), []).append(group)
    if len(groups) > 1:
        sizes = "; ".join(f"{' x '.join(map(str, s))} in {', '.join(names)}" for s, names in groups.items())
        yield f"the model gets images of different sizes ({sizes}), which alone may tell these sets apart"


def accuracy_notes(predictions: pa.Table) -> Iterator[str]:
    """Yield a note where a model's accuracy on ID is at most that of guessing, or hardly above it.

    Guessing is the accuracy of its predictions if they were independent of the labels: 1/K for K classes of
    one size.

    Parameters
    ----------
    predictions : `schema.PREDICTIONS` of one model.
    """
    rows = predictions.filter(
        pc.and_(pc.equal(predictions["role"], "id"), pc.is_valid(predictions["prediction"]))
    )
    labels, predicted = rows["label"].to_numpy(), rows["prediction"].to_numpy()
    classes, sizes = np.unique(labels, return_counts=True)
    if len(classes) < 2 or classes[0] < 0:
        return
    n = len(labels)
    accuracy = float(np.mean(labels == predicted))
    guessing = (
        sum(size * np.count_nonzero(predicted == label) for label, size in zip(classes, sizes, strict=True))
        / n**2
    )
    usual = "an untrained head, or labels in another order than its columns"
    if accuracy <= guessing:
        yield f"accuracy on ID is {accuracy:.1%}, no better than guessing ({guessing:.1%}): {usual}"
    elif accuracy < min(guessing + SIGMAS * np.sqrt(guessing * (1 - guessing) / n), MIN_GAIN * guessing):
        verdict = f"not told apart from guessing ({guessing:.1%}) on {n:,} images"
        yield f"accuracy on ID is {accuracy:.1%}, {verdict}: too few images, {usual}"


def run_notes(notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield notes on the sets of one run; a note on all of them once, without a name.

    Parameters
    ----------
    notes : set -> notes on it.
    """
    sets: dict[str, list[str]] = {}
    for group, group_notes in notes.items():
        for note in group_notes:
            sets.setdefault(note, []).append(group)
    for note, groups in sets.items():
        yield from [note] if len(groups) == len(notes) else (f"{group}: {note}" for group in groups)


def undefined_notes(
    rows: Sequence[tuple[tuple[str, int], MetricRow]], metrics: Sequence[MetricFacts]
) -> Iterator[str]:
    """Yield a note on each user's metric that is NaN somewhere: tables show a dash for it.

    Parameters
    ----------
    rows : ((detector, run), row) of all results.
    """
    for facts in metrics:
        of_metric = [(key, row) for key, row in rows if row.metric.removesuffix(FULL_SPECTRUM) == facts.name]
        undefined = [(key, row) for key, row in of_metric if np.isnan(row.value)]
        if undefined:
            (detector, _), row = undefined[0]
            counts = f"{len(undefined):,} of {len(of_metric):,} values"
            yield f"{facts.name} ({facts.origin}) is NaN in {counts}, first for {detector} on {row.group}"
