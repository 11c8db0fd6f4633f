"""Notes on an evaluation: what may make its figures other than they seem, as sentences below its tables.

What is certain to be wrong is refused where it is read. What somebody may mean is computed, and said here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .user_sets import LABELLED, OwnSet

SIGMAS, LEAST_GAIN = 3, 1.5
"""Of guessing: accuracy within so many standard deviations, and below so many times it, is not told apart."""


def own_set_notes(sets: Mapping[str, OwnSet], noun: str, equal: str = "") -> Iterator[str]:
    """Yield notes on a user's own sets, by name: images that two of them share, or that have two labels.

    Parameters
    ----------
    noun : what the sets are of, in the singular: "image". equal : by what two of them are equal, in words.
    """
    by = equal and f", {equal}"
    digests = {text: Counter(one.digests) for text, one in sets.items()}
    for a, b in combinations(digests, 2):
        n = sum((digests[a] & digests[b]).values())
        if n:
            yield f"{a} and {b} have {_count(n, noun)} in common{by}"
    first: dict[str, int] = {}
    several: set[str] = set()
    labelled = [text for text, one in sets.items() if one.role in LABELLED]
    for text in labelled:
        for digest, label in zip(sets[text].digests, sets[text].labels.tolist(), strict=True):
            if first.setdefault(digest, label) != label:
                several.add(digest)
    if several:
        holders = " and ".join(text for text in labelled if several & digests[text].keys())
        occur = "occurs" if len(several) == 1 else "occur"
        yield f"{_count(len(several), noun)} of {holders} {occur} with more than one label{by}"


def _count(n: int, noun: str) -> str:
    return f"1 {noun}" if n == 1 else f"{n:,} {noun}s"


def size_notes(shapes: Mapping[str, tuple[int, ...] | None]) -> Iterator[str]:
    """Yield a note where the images of some sets are of other sizes than those of others.

    Parameters
    ----------
    shapes : set -> (3, h, w) of its images as the model gets them; None or () where it is not known.
    """
    groups: dict[tuple[int, ...], list[str]] = {}
    for group, shape in shapes.items():
        if shape:
            groups.setdefault(tuple(shape), []).append(group)
    if len(groups) > 1:
        sizes = "; ".join(f"{' x '.join(map(str, s))} in {', '.join(named)}" for s, named in groups.items())
        yield f"the model gets images of different sizes ({sizes}), which alone may tell these sets apart"


def accuracy_notes(predictions: pa.Table) -> Iterator[str]:
    """Yield a note where a model's predictions on ID are no better than guessing, or not told apart from it.

    Guessing is the accuracy that its predictions would have if they had nothing to do with the labels: 1/K
    for K classes of one size.

    Parameters
    ----------
    predictions : `rows.PREDICTIONS` of one model.
    """
    known = predictions.filter(
        pc.and_(pc.equal(predictions["role"], "id"), pc.is_valid(predictions["prediction"]))
    )
    labels, predicted = known["label"].to_numpy(), known["prediction"].to_numpy()
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
    elif accuracy < min(guessing + SIGMAS * np.sqrt(guessing * (1 - guessing) / n), LEAST_GAIN * guessing):
        told = f"not told apart from guessing ({guessing:.1%}) on {n:,} images"
        yield f"accuracy on ID is {accuracy:.1%}, {told}: too few images, {usual}"


def run_notes(notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield notes on the sets of one run: those on every set once, without its name.

    Parameters
    ----------
    notes : set -> notes on it.
    """
    sets: dict[str, list[str]] = {}
    for group, several in notes.items():
        for note in several:
            sets.setdefault(note, []).append(group)
    for note, groups in sets.items():
        yield from [note] if len(groups) == len(notes) else (f"{group}: {note}" for group in groups)
