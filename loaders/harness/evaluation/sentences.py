"""The sentences below the tables of results, and the notes on conditions that may make figures misleading.

Inputs that are certainly wrong are refused where they are read; those that somebody may intend get a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.metrics import spread

from ..arrays import Array
from .metadata import MetricFacts
from .metric_rows import FULL_SPECTRUM, POOLED, MetricRow
from .schema import ResultTables
from .scores import MODEL
from .sets import LABELLED, NOT_CHOSEN, UserSet
from .sweeps import params_text
from .table import NOTHING

DIGITS = 2


def lines_below(results: ResultTables) -> list[str]:
    """Return the sentences printed below the tables.

    They name the models and the runs that the tables average, the parameter values chosen by sweeps, the sets
    that `aurc_unknown` pools and those missing from it, the calibration of the classifier, AURC at the stated
    prevalences, and the correlation of AUROC with nearness.
    """
    return [
        *(_model_line(results, model) for model in results.about.models),
        *_sweep_lines(results),
        *composition_lines(results),
        *_calibration_lines(results),
        *_summary_lines(results),
    ]


def _model_line(results: ResultTables, model: str) -> str:
    runs = results.about.runs_of(model)
    transforms = dict.fromkeys(words for run in runs for words in run.transforms.values() if words)
    weights = [str(run.weights) for run in runs if len(runs) == 1 and str(run.weights)]
    facts = [
        *(f"weights {origin}" for origin in weights),
        *(f"transform {words}" for words in transforms),
        *(f"on {device}" for device in dict.fromkeys(run.device for run in runs) if device),
    ]
    if len(runs) > 1:
        names = ", ".join(run.name.removeprefix(model).lstrip("-/ ") for run in runs)
        facts.insert(0, f"mean over {len(runs)} runs and their spread ({names})")
    return f"Model {model}: {'; '.join(facts) or 'one run'}."


def _sweep_lines(results: ResultTables) -> Iterator[str]:
    """Yield the parameter values that a sweep chose for each detector and run."""
    models = {facts.run: facts.model for facts in results.about.runs}
    by_detector: dict[tuple[str, str, str], dict[int, str]] = {}
    for facts in results.about.detectors:
        if facts.chosen_on is not None:
            key = (models[facts.run], facts.detector, facts.chosen_on)
            by_detector.setdefault(key, {})[facts.run] = params_text(facts.params)
    for (model, detector, criterion), by_run in by_detector.items():
        values = " | ".join(by_run.values()) if len(set(by_run.values())) > 1 else next(iter(by_run.values()))
        of_model = f" of {model}" if len(results.about.models) > 1 else ""
        yield f"Chosen for {detector}{of_model} by {criterion}: {values}."


def composition_lines(results: ResultTables) -> list[str]:
    """Return sentences on the sets that `aurc_unknown` pools and those that are missing from it."""
    pooled, missing = results.about.composition, results.about.missing
    sizes = ", ".join(f"{name} {n:,}" for name, n in pooled.sets.items())
    share = f"{pooled.prevalence:.1%} OOD"
    lines = [f"AURC+OOD pools {sizes}: {pooled.n_id:,} ID and {pooled.n_ood:,} OOD images, {share}."]
    if not_chosen := ", ".join(f"{row.group} ({row.role})" for row in missing if row.status == NOT_CHOSEN):
        lines.append(f"Not chosen (groups=, --group): {not_chosen}.")
    for row in missing:
        if row.status == NOT_CHOSEN:
            continue
        total = "" if row.expected is None else f" of {row.expected:,}"
        why = f" ({row.status})" if row.status.startswith("awaiting") else ""
        lines.append(f"Missing: {row.group} ({row.role}), {row.scored:,}{total} images scored{why}.")
    if missing:
        lines.append(
            "So this AURC+OOD is over other images than the benchmark's and is compared with no paper's."
        )
    return lines


CALIBRATION = (
    ("ECE", "ece", 100, "%"),
    ("with bins of equal mass", "ece_equal_mass", 100, "%"),
    ("Brier score", "brier_score", 1, ""),
    ("NLL", "nll", 1, ""),
)
"""Title, metric, factor and unit of the values in the line on calibration."""


def _calibration_lines(results: ResultTables) -> Iterator[str]:
    """Yield the calibration of each classifier on all ID test images."""
    for model in results.about.models:
        cells = []
        for title, metric, factor, unit in CALIBRATION:
            rows = results.rows(metric=metric, group=POOLED, role="id", detector=MODEL, model=model)
            if rows:
                cells.append(f"{title} {format_cell([row['value'] for row in rows], factor, 'sd')}{unit}")
        if cells:
            yield f"Calibration of {model} on ID test images: {', '.join(cells)}."


def _summary_lines(results: ResultTables) -> Iterator[str]:
    """Yield AURC at the stated prevalences, and the correlation of AUROC with nearness."""
    for share in results.about.options.prevalences:
        values = _by_detector(results, f"aurc_unknown[prevalence={share:g}]", 1000)
        if values:
            yield f"AURC+OOD x 1000 if {share:.0%} were OOD: {values}."
    if trend := _by_detector(results, "nearness_trend", 1):
        scope = f"rank correlation over OOD classes{_without_synset(results)}"
        yield f"AUROC against similarity to the nearest ID class ({scope}): {trend}."


def _without_synset(results: ResultTables) -> str:
    """Return how many OOD classes have no synset and so no similarity; "" for none."""
    sizes = {
        (row["group"], row["class_id"]): (row["similarity"], row["n_ood"])
        for row in results.by_class.select(["group", "class_id", "similarity", "n_ood"]).to_pylist()
    }
    unmapped = [n_ood for similarity, n_ood in sizes.values() if similarity is None]
    if not unmapped:
        return ""
    return f"; without a synset, left out: {len(unmapped):,} of {len(sizes):,} ({sum(unmapped):,} images)"


def _by_detector(results: ResultTables, metric: str, factor: float) -> str:
    name_models = len(results.about.models) > 1
    values: dict[str, list[float]] = {}
    for row in results.rows(metric=metric, group=POOLED):
        name = f"{row['model']} {row['detector']}" if name_models else row["detector"]
        values.setdefault(name, []).append(row["value"])
    cells = {name: format_cell(of_runs, factor, "sd") for name, of_runs in values.items()}
    return ", ".join(f"{name} {cell}" for name, cell in cells.items() if cell != NOTHING)


def format_cell(values: Sequence[float], factor: float, spread_kind: str) -> str:
    """Return the mean over runs, with their spread where there are several; a dash without a value."""
    if not values or any(np.isnan(values)):
        return NOTHING
    digits = DIGITS if factor > 1 else DIGITS + 2
    runs = spread(np.array(values) * factor, ddof=0 if spread_kind == "variance" else 1)
    text = f"{runs.mean:.{digits}f}"
    if runs.n == 1:
        return text
    return (
        f"{text} ({runs.sd**2:.{digits}f})" if spread_kind == "variance" else f"{text}±{runs.sd:.{digits}f}"
    )


MIN_REPEATED_SHARE = 0.01
"""Smallest share of a set's images that occur before in it and get a note; CIFAR-100 has 0.04%."""
MAX_REVERSED = 0.4
"""AUROC up to which, on every set, a user's detector seems to have the other sign."""
SHOWN = 5
"""Labels that a note lists."""
SIGMAS, MIN_GAIN = 3, 1.5
"""Accuracy within so many standard deviations of guessing, and below so many times it, gets a note."""


def user_set_notes(sets: Mapping[str, UserSet], noun: str, comparison: str = "") -> Iterator[str]:
    """Yield notes on user sets, by name: images that they repeat or share, or that have two labels.

    Parameters
    ----------
    noun : for an item of the sets, in the singular: "image". comparison : words on how items are compared.
    """
    suffix = comparison and f", {comparison}"
    digests = {name: Counter(user_set.digests) for name, user_set in sets.items()}
    yield from repetition_notes(digests, noun, suffix)
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


def repetition_notes(digests: Mapping[str, Counter[str]], noun: str, suffix: str = "") -> Iterator[str]:
    """Yield a note for every set that repeats its items, and for every two with items in common.

    Parameters
    ----------
    digests : set -> how often it has each digest.
    """
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


def accuracy_notes(predictions: pa.Table, on: str = "ID") -> Iterator[str]:
    """Yield a note where a model's accuracy on ID is hardly above that of guessing, or labels are exchanged.

    Guessing is the accuracy of its predictions if they were independent of the labels: 1/K for K classes of
    one size.

    Parameters
    ----------
    predictions : with the columns ``role``, ``label`` and ``prediction`` of one model. on : the set, as the
        note names it.
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


def sign_notes(rows: Iterable[tuple[tuple[str, int], MetricRow]]) -> Iterator[str]:
    """Yield a note on each detector whose AUROC says of every set that OOD is the more in-distribution.

    Parameters
    ----------
    rows : ((detector, run), row) of results.
    """
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
