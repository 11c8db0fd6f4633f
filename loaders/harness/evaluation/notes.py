"""Checks of sets and outputs, and sentences on conditions that may make figures misleading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import UnusableError
from wordnet_splits.benchmark.manifest import Part

from ..data.array_checks import logit_notes, refuse_probabilities
from ..data.arrays import CHUNK, Array, Arrays
from ..extraction.outputs import GroupOutputs, ModelRun, predict
from ..results.metadata import MetricFacts
from ..results.metric_rows import FULL_SPECTRUM, MetricRow
from ..results.scores import CALIBRATION_COLUMNS, PREDICTED
from .scoring import Data, Fitted, confidence
from .sets import LABELLED, CustomSet

MIN_REPEATED_SHARE = 0.01
"""Smallest share of a set's images that occur before in it and get a note; CIFAR-100 has 0.04%."""
MAX_REVERSED = 0.4
"""A detector with a smaller AUROC on every set is noted: its sign may be wrong."""
SHOWN = 5
"""Labels that a note lists."""
SIGMAS, MIN_GAIN = 3, 1.5
"""Accuracy within so many standard deviations of guessing, and below so many times it, gets a note."""


def custom_set_notes(sets: Mapping[str, CustomSet], noun: str, comparison: str = "") -> Iterator[str]:
    """Yield notes on user sets, by name: images that they repeat or share, or that have two labels."""
    suffix = comparison and f", {comparison}"
    digests = {name: Counter(custom_set.digests) for name, custom_set in sets.items()}
    yield from repetition_notes(digests, noun, suffix)
    labels: dict[str, int] = {}
    ambiguous: set[str] = set()
    labelled = [name for name, custom_set in sets.items() if custom_set.role in LABELLED]
    for name in labelled:
        for digest, label in zip(sets[name].digests, sets[name].labels.tolist(), strict=True):
            if labels.setdefault(digest, label) != label:
                ambiguous.add(digest)
    if ambiguous:
        names = " and ".join(name for name in labelled if ambiguous & digests[name].keys())
        occur = "occurs" if len(ambiguous) == 1 else "occur"
        yield f"{_count(len(ambiguous), noun)} of {names} {occur} with more than one label{suffix}"


def repetition_notes(digests: Mapping[str, Counter[str]], noun: str, suffix: str = "") -> Iterator[str]:
    """Yield a note for every set that repeats its items, and for every two with items in common."""
    for name, counts in digests.items():
        n, repeated = counts.total(), counts.total() - len(counts)
        if repeated > MIN_REPEATED_SHARE * n:
            yield f"{name} holds {_count(n, noun)}, and {repeated:,} are repetitions{suffix}"
    for a, b in combinations(digests, 2):
        n = (digests[a] & digests[b]).total()
        if n:
            yield f"{a} and {b} have {_count(n, noun)} in common{suffix}"


def _count(n: int, noun: str) -> str:
    return f"1 {noun}" if n == 1 else f"{n:,} {noun}s"


def size_notes(shapes: Mapping[str, tuple[int, ...] | None]) -> Iterator[str]:
    """Yield a note if the sizes of images differ between sets."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for group, shape in shapes.items():
        if shape:
            groups.setdefault(tuple(shape), []).append(group)
    if len(groups) > 1:
        sizes = "; ".join(f"{' x '.join(map(str, s))} in {', '.join(names)}" for s, names in groups.items())
        yield f"the model gets images of different sizes ({sizes}), which alone may tell these sets apart"


def accuracy_notes(predictions: pa.Table, on: str = "ID") -> Iterator[str]:
    """Yield a note if a model's accuracy on ID is hardly better than guessing, or labels are exchanged.

    Guessing is the accuracy of its predictions if they were independent of the labels: 1/K for K classes of
    one size.

    Parameters
    ----------
    predictions : a model's table with the columns ``role``, ``label`` and ``prediction``.
    on : the set, as
        the note names it.
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
        yield f"accuracy on {on} is {accuracy:.1%}, no better than guessing ({guessing:.1%}): {usual}"
    elif accuracy < min(guessing + SIGMAS * np.sqrt(guessing * (1 - guessing) / n), MIN_GAIN * guessing):
        verdict = f"not told apart from guessing ({guessing:.1%}) on {n:,} images"
        yield f"accuracy on {on} is {accuracy:.1%}, {verdict}: too few images, {usual}"
    elif moved := _exchanged_labels(labels, predicted, classes):
        pairs = ", ".join(f"{label} as {other}" for label, other in moved[:SHOWN])
        more = ", ..." if len(moved) > SHOWN else ""
        yield (
            f"most images of {len(moved)} classes of {on} are predicted as another of these, one for one "
            f"(labels {pairs}{more}): labels in another order than its columns?"
        )


def _exchanged_labels(labels: Array, predicted: Array, classes: Array) -> list[tuple[int, int]]:
    """Return (label, prediction) of classes whose images are mostly predicted as each other, one for one."""
    moved = []
    for label in classes.tolist():
        found, counts = np.unique(predicted[labels == label], return_counts=True)
        if (other := int(found[counts.argmax()])) != label and 2 * counts.max() > counts.sum():
            moved.append((label, other))
    one_for_one = sorted(label for label, _ in moved) == sorted(other for _, other in moved)
    return moved if one_for_one else []


def run_notes(notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield notes on the sets of a run; a note on all sets appears once, without a name."""
    sets: dict[str, list[str]] = {}
    for group, group_notes in notes.items():
        for note in group_notes:
            sets.setdefault(note, []).append(group)
    for note, groups in sets.items():
        yield from [note] if len(groups) == len(notes) else (f"{group}: {note}" for group in groups)


def sign_notes(rows: Iterable[tuple[tuple[str, int], MetricRow]]) -> Iterator[str]:
    """Yield a note on each detector whose AUROC is below `MAX_REVERSED` on every set: a wrong sign?."""
    values: dict[tuple[str, int], dict[str, float]] = {}
    for key, row in rows:
        if row.metric == "auroc" and not row.group.startswith("("):
            values.setdefault(key, {})[row.group] = row.value
    for (detector, _), of_sets in values.items():
        if max(of_sets.values()) < MAX_REVERSED:
            cells = ", ".join(f"{value:.2f} on {group}" for group, value in of_sets.items())
            yield (
                f"{detector}: AUROC is below 0.5 for every set ({cells}): confidences are higher for what is "
                "more in-distribution; does it return a distance or an OOD score?"
            )


def undefined_notes(
    rows: Sequence[tuple[tuple[str, int], MetricRow]], metrics: Sequence[MetricFacts]
) -> Iterator[str]:
    """Yield a note on each user's metric that is NaN somewhere: tables show a dash for it."""
    for facts in metrics:
        of_metric = [(key, row) for key, row in rows if row.metric.removesuffix(FULL_SPECTRUM) == facts.name]
        undefined = [(key, row) for key, row in of_metric if np.isnan(row.value)]
        if undefined:
            (detector, _), row = undefined[0]
            counts = f"{len(undefined):,} of {len(of_metric):,} values"
            yield f"{facts.name} ({facts.origin}) is NaN in {counts}, first for {detector} on {row.group}"


CHECKED_ROWS = 10_000
"""Largest number of images of a set whose outputs are checked, evenly spread."""


def checked_outputs(outputs: GroupOutputs, run: ModelRun) -> list[str]:
    """Return the notes on a network's outputs on a set; outputs given as arrays were checked before.

    Raises
    ------
    DataError : its logits are probabilities or percentages, which eight images may leave open.
    """
    if not run.device or "logits" not in outputs.arrays:
        return list(outputs.notes)
    logits = np.asarray(_some(outputs).arrays["logits"])
    refuse_probabilities(logits, where=run.title, hint="leave out the model's final softmax")
    return list(dict.fromkeys([*outputs.notes, *logit_notes(logits)]))


def training_accuracy_notes(fitted_on: Mapping[Part, GroupOutputs], title: str) -> Iterator[str]:
    """Yield a note for every ID set whose labels detectors fit on and the model does not predict."""
    for (split, group), outputs in fitted_on.items():
        few = _some(outputs)
        if few.arrays.n and "logits" in few.arrays and few.table["role"][0].as_py() == "id":
            predictions = predicted_table(few, title)["prediction"]
            rows = {"role": few.table["role"], "label": few.table["label"], "prediction": predictions}
            yield from accuracy_notes(pa.table(rows), f"{group}/{split}")


def _some(outputs: GroupOutputs) -> GroupOutputs:
    """Return at most `CHECKED_ROWS` images and their logits."""
    rows = np.arange(outputs.arrays.n)[:: max(1, -(-outputs.arrays.n // CHECKED_ROWS))]
    logits = {name: outputs.arrays[name][rows] for name in ("logits",) if name in outputs.arrays}
    arrays = logits or {"none": np.empty((len(rows), 0))}
    return replace(outputs, table=outputs.table.take(rows), arrays=Arrays(arrays))


MAX_ROWS = 1000
"""Largest number of images of a set that are scored again: half of a small set, fewer of a large one."""
SPREAD_TOLERANCE, SIZE_TOLERANCE = 1e-3, 1e-5
"""Largest change of a confidence by arithmetic, in standard deviations and in the greatest absolute value."""


def rescoring_notes(fitted: Fitted, data: Mapping[str, Data], scores: Mapping[str, Array]) -> Iterator[str]:
    """Score some images of each set again, in reverse order, and yield a note if confidences differ."""
    changed: dict[str, int] = {}
    scored_again = 0
    for group, of_group in data.items():
        first = np.asarray(scores[group], np.float64)
        rows = np.arange(len(first))[::-1][:: max(2, -(-len(first) // MAX_ROWS))]
        scored_again += len(rows)
        try:
            again = confidence(fitted, _taken(of_group, rows), on=group)
        except UnusableError:  # the detector needs all rows
            again = np.full(len(rows), np.nan)
        tolerance = SPREAD_TOLERANCE * first.std() + SIZE_TOLERANCE * np.abs(first).max(initial=0)
        count = int(np.count_nonzero(~(np.abs(again - first[rows]) <= tolerance)))
        changed |= {group: count} if count else {}
    if changed:
        yield (
            f"{fitted.configured.label}: {sum(changed.values()):,} of {scored_again:,} images get another "
            f"confidence when they are scored again among fewer (in {', '.join(changed)}): it depends on the "
            "other images of a set, on their order or on chance, and so do its figures"
        )


def _taken(data: Data, rows: Array) -> Any:
    if isinstance(data, Arrays):
        return Arrays({name: view[rows] for name, view in data.items()})
    return [_taken(of_model, rows) for of_model in data]


def predicted_table(outputs: GroupOutputs, name: str) -> pa.Table:
    """Return the columns `PREDICTED` of a set, filled with nulls if the model lacks logits."""
    predictions = predict(outputs, name)
    if predictions is None:
        return pa.table({field.name: pa.nulls(outputs.arrays.n, field.type) for field in PREDICTED})
    of_label = (predictions.of_predicted, predictions.log_target, predictions.squared_norm)
    columns = {
        "prediction": pa.array(predictions.label, pa.int32()),
        "target_probability": pa.array(predictions.of_target, mask=np.isnan(predictions.of_target)),
        "max_probability": pa.array(predictions.greatest, mask=np.isnan(predictions.greatest)),
    }
    for column, values in zip(CALIBRATION_COLUMNS, of_label, strict=True):
        columns[column] = pa.array(values, mask=np.isnan(predictions.of_target) | np.isnan(values))
    return pa.table(columns, schema=PREDICTED)


ROUNDED = 2.0**-8
"""Largest difference of a row and its copy, as a share of the row's length: bfloat16's rounding."""
TRIED_ROWS = 64
"""Number of rows of an OOD set that are compared with all rows of the ID sets."""
MIN_COLUMNS = 8
"""Smallest number of columns that makes equal rows of different images unlikely by chance."""
MIN_SHARE = 0.5


def rounding_notes(sets: Mapping[str, CustomSet], data: Mapping[str, Arrays]) -> Iterator[str]:
    """Yield a note for every OOD set whose first rows mostly repeat rows of an ID set, up to rounding.

    Other checks note rows that are equal bit for bit.
    """
    tests = {name: custom_set for name, custom_set in sets.items() if custom_set.split == "test"}
    for id_name in (name for name, custom_set in tests.items() if custom_set.role == "id"):
        known = set(sets[id_name].digests)
        for name in (name for name, custom_set in tests.items() if custom_set.role != "id"):
            kind = next(
                (kind for kind in ("features", "logits") if kind in data[name] and kind in data[id_name]), ""
            )
            tried = sets[name].digests[:TRIED_ROWS]
            rows = [row for row, digest in enumerate(tried) if digest not in known]
            if not kind or data[name][kind].shape[1] < MIN_COLUMNS or not rows:
                continue
            copies = count_copies(np.asarray(data[name][kind])[rows], np.asarray(data[id_name][kind]))
            if copies >= MIN_SHARE * len(tried):
                yield (
                    f"{copies} of the first {len(tried)} rows of {name} are rows of {id_name} up to rounding "
                    "(a copy in another precision?)"
                )


def count_copies(values: Array, others: Array) -> int:
    """Return the number of rows of values (n, D) that a row of others (m, D) equals up to rounding."""
    wide = values.astype(np.float64)
    squares = np.square(wide).sum(axis=1)[:, None]
    copied = np.zeros(len(wide), bool)
    for start in range(0, len(others), CHUNK):
        part = others[start : start + CHUNK].astype(np.float64)
        distances = squares + np.square(part).sum(axis=1) - 2 * wide @ part.T
        copied |= (distances <= ROUNDED**2 * squares).any(axis=1)
    return int((copied & (squares[:, 0] > 0)).sum())
