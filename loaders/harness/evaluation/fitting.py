"""What detectors fit on, and choosing their parameters: training and validation images, never test ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import auroc

from ..activations.runs import ModelRun
from ..arrays import Array, Arrays, Head
from ..detectors import ConfiguredDetector
from ..detectors.registry import SPLITS, FitOn
from ..plugins import Value, format_named
from .scoring import Fitted, UnusableError, confidences, fit, named, narrowed, shares_work
from .sets import EvaluatedSets


def groups_of(split: FitOn, sets: EvaluatedSets) -> tuple[str, list[str]]:
    """Return the benchmark's split and the groups that a detector's split stands for."""
    if split == "ood-val":
        return "val", sets.of_role("val", "external") or sets.of_role("val", "near", "far")
    return split, sets.of_role(split, "id")


def usable(
    chosen: Sequence[ConfiguredDetector], sets: EvaluatedSets, run: ModelRun
) -> tuple[list[ConfiguredDetector], list[str]]:
    """Return the detectors that lack nothing on a model and a benchmark, and a note on each other.

    Raises
    ------
    DataError : one that is not optional lacks something.
    """
    kept, notes = [], []
    for one in chosen:
        reason = why_not(one, sets, run)
        if not reason:
            kept.append(one)
        elif one.optional:
            notes.append(passed_over(one, f"it {reason}"))
        else:
            where = sets.manifest.name if "images" in reason else run.name
            raise DataError(f"{named(one)} {reason}", where=where, hint="leave the detector out")
    return kept, notes


def passed_over(chosen: ConfiguredDetector, why: str) -> str:
    """Say that a detector of a preset is left out, and why."""
    return f"{chosen.label} is left out: {why}"


def why_not(chosen: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun) -> str:
    """Return what a detector lacks on a model and a benchmark, "" where it lacks nothing."""
    for split in chosen.spec.splits:
        if not groups_of(split, sets)[1]:
            return f"fits on {SPLITS[split]} images, and there are none"
    return run.lacks("test", next(iter(sets.test)), chosen.needs)


def fit_data(
    chosen: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun
) -> Arrays | dict[str, Arrays] | None:
    """Return the arrays that a detector fits on, with labels; by split for several; None for nothing.

    Raises
    ------
    DataError : the benchmark has no such images.
    """
    found: dict[str, Arrays] = {}
    for part in chosen.spec.splits:
        split, groups = groups_of(part, sets)
        if not groups:
            raise UnusableError(
                f"{named(chosen)} fits on {SPLITS[part]} images, and there are none",
                where=sets.manifest.name,
                hint="leave the detector out",
            )
        found[part] = Arrays.concat([run.group(split, group, chosen.needs).arrays for group in groups])
    return found[chosen.spec.fit_on] if isinstance(chosen.spec.fit_on, str) else found or None


def read_ahead(chosen: Iterable[ConfiguredDetector], sets: EvaluatedSets, run: ModelRun) -> None:
    """Read what detectors fit on, each group once with what all of them need: one pass over the images."""
    needs: dict[tuple[str, str], set[Any]] = {}
    for one in chosen:
        for part in one.spec.splits:
            split, groups = groups_of(part, sets)
            for group in groups:
                needs.setdefault((split, group), set()).update(one.needs)
    for (split, group), names in needs.items():
        run.group(split, group, names)


def images_of(chosen: Iterable[ConfiguredDetector], sets: EvaluatedSets, *, sweep: bool) -> int:
    """Return how many images detectors are fitted, chosen and scored on, as far as is known."""
    parts = {("test", group) for group in sets.test}
    for one in chosen:
        for part in (*one.spec.splits, *(("val", "ood-val") if sweep and one.sweep else ())):
            split, groups = groups_of(part, sets)
            parts.update((split, group) for group in groups)
    rows = [row for row in sets.manifest.groups if (row.split, row.group) in parts]
    return sum(row.actual or row.expected or 0 for row in rows)


def learn(chosen: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun, head: Head | None) -> Fitted:
    """Fit a detector on a benchmark; one that calibrates, with its own probes on ID validation images.

    Raises
    ------
    UnusableError : it cannot be fitted, or the model cannot give its probes.
    """
    fitted = fit(chosen, fit_data(chosen, sets, run), head)
    lacking = run.lacks("test", next(iter(sets.test)), fitted.probes) if fitted.probes else ""
    if lacking:
        raise UnusableError(lacking, where=fitted.where)
    if not hasattr(fitted.detector, "calibrate"):
        return fitted
    groups = sets.of_role("val", "id")
    if not groups:
        raise UnusableError("fits on ID val images, and there are none", where=fitted.where)
    needs = {*chosen.needs, *fitted.probes}
    return fitted.calibrated(Arrays.concat([run.group("val", group, needs).arrays for group in groups]))


def validation_sets(sets: EvaluatedSets) -> tuple[list[str], list[str]]:
    """Return the ID and the OOD validation groups; external ones, where there are any, are all of the latter.

    Raises
    ------
    DataError : the benchmark has none, so nothing may be chosen.
    """
    inside, outside = (groups_of(split, sets)[1] for split in ("val", "ood-val"))
    if not inside or not outside:
        raise DataError(
            "has no ID and OOD validation images to choose parameters on",
            where=sets.manifest.name,
            hint="run without --sweep for the papers' values, or give your own, as in knn[k=50]",
        )
    return inside, outside


@dataclass(frozen=True)
class Tried:
    """The values that a sweep tried: all of the detector's parameters, and what came of them.

    Attributes
    ----------
    on : the criterion and the sets it was computed on. auroc : None where it could not be computed.
    reason : why it could not, "" where it could.
    """

    params: Mapping[str, Value]
    on: str
    auroc: float | None
    reason: str = ""


def criterion(inside: Sequence[str], outside: Sequence[str]) -> str:
    """Say in words what values are chosen by, given the ID and the OOD validation groups."""
    return "auroc of {} against {}".format(
        *(" + ".join(f"{group}/val" for group in side) for side in (inside, outside))
    )


def choose_on_validation(
    chosen: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun
) -> tuple[ConfiguredDetector, tuple[Tried, ...]]:
    """Return the detector with the values of its sweep that separate validation images best, and all tried.

    The best is the highest unweighted mean over OOD validation sets of the AUROC; of equal ones the first.
    Values that cannot be fitted or give no finite score (more neighbours than images) are passed over, and
    named in ``chosen_on``.

    Raises
    ------
    DataError : no validation images.
    UnusableError : none of the values can be used; the reason of the first is given.
    """
    inside, outside = validation_sets(sets)
    grid = list(combinations(chosen))
    needs = {name for one in grid for name in one.needs}  # all at once: one pass over the images
    groups = {group: run.group("val", group, needs) for group in [*inside, *outside]}
    head = groups[inside[0]].head

    learned: dict[tuple[Value, ...], Any] = {}  # what candidates have in common is fitted once

    def separations(candidates: Sequence[ConfiguredDetector]) -> list[float]:
        shared = candidates[0].fit_key
        if shared not in learned:
            learned[shared] = learn(candidates[0], sets, run, head).state
        fitted = [Fitted(one, one.detector, learned[shared]) for one in candidates]
        probes = {probe for one in fitted for probe in one.probes}
        as_given: dict[str, list[Array]] = {}
        for group, seen in groups.items():
            own = run.group("val", group, {*needs, *probes}) if probes else seen
            as_given[group] = confidences(fitted, own.arrays, on=f"{group}/val")
        found = []
        for i, one in enumerate(fitted):  # chosen by what results keep
            scores, _ = narrowed({group: of_all[i] for group, of_all in as_given.items()}, one.chosen)
            found.append(_separation([scores[g] for g in inside], [scores[g] for g in outside], one.where))
        return found

    found: dict[int, float] = {}
    failed: dict[int, UnusableError] = {}
    pending = scored_together(grid)
    for numbers in pending:
        try:
            found.update(zip(numbers, separations([grid[i] for i in numbers]), strict=True))
        except UnusableError as error:
            if len(numbers) == 1:
                failed[numbers[0]] = error
            else:  # of one of them: which one, and what the others give, is seen one by one
                pending += [[i] for i in numbers]
    if not found:
        raise failed[0]
    best = grid[max(sorted(found), key=found.__getitem__)]
    on = criterion(inside, outside)
    tried = tuple(
        Tried(one.params, on, found.get(i), failed[i].what if i in failed else "")
        for i, one in enumerate(grid)
    )
    passed = [format_named("", {name: grid[i].params[name] for name in chosen.sweep}) for i in sorted(failed)]
    without = f" without {', '.join(passed)}" if passed else ""
    return chosen.with_params(best.params, on + without), tried


def _separation(inside: Sequence[Array], outside: Sequence[Array], where: str) -> float:
    """Return the unweighted mean over OOD sets of the AUROC of all ID images against theirs."""
    known = np.concatenate(inside)
    return float(np.mean([auroc(known, scores, name=where) for scores in outside]))


def scored_together(grid: Sequence[ConfiguredDetector]) -> list[list[int]]:
    """Return the positions of candidates by what can be scored in one go: those that learn the same."""
    found: dict[Any, list[int]] = {}
    for i, one in enumerate(grid):
        found.setdefault(one.fit_key if shares_work(one) else i, []).append(i)
    return list(found.values())


def combinations(chosen: ConfiguredDetector) -> Iterator[ConfiguredDetector]:
    """Yield the detector with every combination of the values of its sweep; given parameters stay."""
    sweep = chosen.sweep
    for values in product(*sweep.values()):
        params: dict[str, Value] = dict(zip(sweep, values, strict=True))
        yield chosen.with_params(params, "")
