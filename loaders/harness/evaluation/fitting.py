"""Fit detectors on a benchmark's training images, and choose their parameters on validation images."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, UnusableError
from wordnet_splits.benchmark.clusters import disjoint_classes
from wordnet_splits.benchmark.manifest import Part
from wordnet_splits.metrics import auroc

from ..data.arrays import Array, Arrays, Head
from ..data.parameters import Value, format_named
from ..detectors import ConfiguredDetector
from ..detectors.parsing import left_out_note
from ..detectors.registry import SPLITS, FitOn
from ..extraction.outputs import ModelRun, Need
from ..results.metadata import DISJOINT
from ..results.rows_from_scores import EvaluatedSets, sweep_criterion, validation_groups
from ..results.scores import ClassKey
from .scoring import Fitted, confidences, detector_name, errors_of, fit, shares_work


def groups_of(split: FitOn, sets: EvaluatedSets) -> tuple[str, list[str]]:
    """Return the split and the groups of the benchmark for a split in a detector's ``fit_on``."""
    if split == "ood-val":
        return "val", validation_groups(sets)[1]
    return split, sets.of_role(split, "id")


def usable_detectors(
    detectors: Sequence[ConfiguredDetector], sets: EvaluatedSets, run: ModelRun
) -> tuple[list[ConfiguredDetector], list[str]]:
    """Return the detectors whose inputs are available from model and benchmark, and a note on each other one.

    Raises
    ------
    UnusableError : a detector that is not optional lacks an input, other than images that may be missing.
    """
    usable, notes = [], []
    for configured in detectors:
        skippable = configured.optional or run.allow_missing
        try:
            _require_images(configured, sets, run)
            skippable = configured.optional
            _require_outputs(configured, sets, run)
        except UnusableError as error:
            if not skippable:
                message = f"{detector_name(configured)} {error.what}"
                raise UnusableError(message, where=error.where, hint="leave the detector out") from error
            notes.append(left_out_note(configured, f"it {error.what}"))
        else:
            usable.append(configured)
    return usable, notes


def require_inputs(configured: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun) -> None:
    """Raise UnusableError if a model or a benchmark lacks an input of a detector."""
    _require_images(configured, sets, run)
    _require_outputs(configured, sets, run)


def _require_outputs(configured: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun) -> None:
    """Raise UnusableError if a model cannot give the arrays or the head of a detector."""
    needs = {*configured.needs, *({"head"} & set(configured.spec.needs))}
    run.require("test", next(iter(sets.test)), needs)


def _require_images(configured: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun) -> None:
    """Raise UnusableError if images that a detector fits on are not there."""
    calibrated: tuple[FitOn, ...] = ("val",) if hasattr(configured.detector, "calibrate") else ()
    for split in (*configured.splits, *calibrated):
        image_split, groups = groups_of(split, sets)
        reason = "" if groups else "there are none"
        for group in groups:
            try:
                run.require(image_split, group)
            except UnusableError as error:
                reason = reason or error.what
        if reason:
            message = f"fits on {SPLITS[split]} images, and {reason}"
            raise UnusableError(message, where=sets.manifest.name)


def fit_data(
    configured: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun
) -> Arrays | dict[str, Arrays] | None:
    """Return the arrays and labels that a detector fits on, by split if several; None without a fit."""
    by_split: dict[str, Arrays] = {}
    for fit_split in configured.splits:
        split, groups = groups_of(fit_split, sets)
        if not groups:
            raise UnusableError(
                f"{detector_name(configured)} fits on {SPLITS[fit_split]} images, and there are none",
                where=sets.manifest.name,
                hint="leave the detector out",
            )
        parts = [run.group(split, group, configured.needs).arrays for group in groups]
        by_split[fit_split] = Arrays.concat(parts)
    fit_on = configured.spec.fit_on
    return by_split[fit_on] if isinstance(fit_on, str) else by_split or None


def fit_needs(detectors: Iterable[ConfiguredDetector], sets: EvaluatedSets) -> dict[Part, frozenset[Need]]:
    """Return the arrays that detectors fit on, by (split, group)."""
    needs: dict[Part, frozenset[Need]] = {}
    for configured in detectors:
        for fit_split in configured.splits:
            split, groups = groups_of(fit_split, sets)
            for group in groups:
                needs[split, group] = needs.get((split, group), frozenset()).union(configured.needs)
    return needs


def known_needs(
    detectors: Sequence[ConfiguredDetector], sets: EvaluatedSets, run: ModelRun, *, sweep: bool
) -> dict[Part, frozenset[Need]]:
    """Return the arrays that an evaluation of a run needs, by (split, group), as far as is known before it.

    Probes that depend on a fit, or on parameters that a sweep chooses, are not known yet.
    """
    usable, _ = usable_detectors(detectors, sets, run)
    tuned = [configured for configured in usable if sweep and configured.sweep]
    settled = [configured for configured in usable if configured not in tuned]
    candidates = [candidate for configured in tuned for candidate in sweep_grid(configured)]
    test = frozenset(name for configured in settled for name in configured.needs)
    needs: dict[Part, frozenset[Need]] = {("test", group): test for group in sets.test}
    needs |= fit_needs([*settled, *candidates], sets)
    if tuned:
        id_groups, ood_groups = validation_sets(sets, run)
        names = frozenset(name for candidate in candidates for name in candidate.needs)
        for group in (*id_groups, *ood_groups):
            needs["val", group] = needs.get(("val", group), frozenset()) | names
    return needs


def count_images(detectors: Iterable[ConfiguredDetector], sets: EvaluatedSets, *, sweep: bool) -> int:
    """Return the number of images that detectors are fitted, tuned and scored on, as far as is known."""
    parts = {("test", group) for group in sets.test}
    for configured in detectors:
        tuned_on: tuple[FitOn, ...] = ("val", "ood-val") if sweep and configured.sweep else ()
        for fit_split in (*configured.splits, *tuned_on):
            split, groups = groups_of(fit_split, sets)
            parts.update((split, group) for group in groups)
    rows = [row for row in sets.manifest.groups if (row.split, row.group) in parts]
    return sum(row.actual or row.expected or 0 for row in rows)


def fit_on_benchmark(
    configured: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun, head: Head | None
) -> Fitted:
    """Fit a detector on a benchmark, and calibrate it on ID validation images if it has ``calibrate``.

    Raises
    ------
    UnusableError : it cannot be fitted, or the model cannot compute its probes.
    """
    fitted = fit(configured, fit_data(configured, sets, run), head)
    if fitted.probes:
        with errors_of(fitted.where):
            run.require("test", next(iter(sets.test)), fitted.probes)
    if not hasattr(fitted.detector, "calibrate"):
        return fitted
    groups = sets.of_role("val", "id")
    needs = {*configured.needs, *fitted.probes}
    return fitted.calibrated(Arrays.concat([run.group("val", group, needs).arrays for group in groups]))


def validation_sets(sets: EvaluatedSets, run: ModelRun | None = None) -> tuple[list[str], list[str]]:
    """Return the ID and the OOD validation groups; the OOD groups are the external ones, if there are any."""
    id_groups, ood_groups = validation_groups(sets)
    absent = False
    for group in (*id_groups, *ood_groups):
        try:
            if run is not None:
                run.require("val", group)
        except UnusableError:
            absent = True
    if not id_groups or not ood_groups or absent:
        raise DataError(
            "has no ID and OOD validation images to choose parameters on",
            where=sets.manifest.name,
            hint="run without --sweep for the papers' values, or give your own, as in knn[k=50]",
        )
    return id_groups, ood_groups


SweepTrial = tuple[str, str, float | None, str | None]
"""The last columns of `scores.SWEEPS`: parameters, criterion with its sets, AUROC, or the reason for none."""


def disjoint_validation(sets: EvaluatedSets) -> tuple[frozenset[ClassKey], str]:
    """Return the OOD validation classes in no subtree of OOD test classes, and a note on their number.

    Raises
    ------
    DataError : there are none.
    """
    kept, total, unplaced = disjoint_classes(sets.manifest, validation_sets(sets)[1])
    share = f"{len(kept)} of the {total} OOD validation classes are in subtrees without OOD test classes"
    share += f" ({unplaced} of these have no synset and were not compared)" if unplaced else ""
    if not kept:
        hint = "sweep without it, or give the values: --detectors 'knn[k=50]'"
        raise DataError(f"cannot sweep on {DISJOINT}: {share}", where=sets.manifest.name, hint=hint)
    return kept, f"sweeps chose on {DISJOINT}: {share}"


def choose_on_validation(
    configured: ConfiguredDetector,
    sets: EvaluatedSets,
    run: ModelRun,
    *,
    kept: Collection[ClassKey] | None = None,
) -> tuple[ConfiguredDetector, tuple[SweepTrial, ...]]:
    """Return the detector with the values of its sweep that separate validation images best, and all trials.

    The criterion is the AUROC's unweighted mean over OOD validation sets; the first of equal values wins.
    Values that cannot be fitted or lack a finite score (more neighbours than images) are passed over, and
    named in ``chosen_on``.

    Parameters
    ----------
    kept : OOD validation classes whose images count, by default all.

    Raises
    ------
    DataError : no validation images.
    UnusableError : none of the values can be used, with the reason of the first.
    """
    id_groups, ood_groups = validation_sets(sets, run)
    grid = list(sweep_grid(configured))
    needs = {name for candidate in grid for name in candidate.needs}  # all at once: one pass over the images
    outputs = {group: run.group("val", group, needs) for group in [*id_groups, *ood_groups]}
    head = outputs[id_groups[0]].head
    rows = {group: np.arange(of_group.arrays.n) for group, of_group in outputs.items()}
    if kept is not None:
        for group in ood_groups:
            keys = (outputs[group].table[name].to_pylist() for name in ("source", "class_id"))
            rows[group] = np.flatnonzero([key in kept for key in zip(*keys, strict=True)])
        ood_groups = [group for group in ood_groups if len(rows[group])]

    states: dict[tuple[Value, ...], Any] = {}  # the fit that candidates share is computed once

    def separations(candidates: Sequence[ConfiguredDetector]) -> list[float]:
        key = candidates[0].fit_key
        if key not in states:
            states[key] = fit_on_benchmark(candidates[0], sets, run, head).state
        fitted = [Fitted(candidate, candidate.detector, states[key]) for candidate in candidates]
        probes = {probe for candidate in fitted for probe in candidate.probes}
        by_group: dict[str, list[Array]] = {}
        for group, group_outputs in outputs.items():
            if probes:
                group_outputs = run.group("val", group, {*needs, *probes})
            scores = confidences(fitted, group_outputs.arrays, on=f"{group}/val")
            by_group[group] = [of_candidate[rows[group]] for of_candidate in scores]
        values = []
        for i, candidate in enumerate(fitted):
            id_scores, ood_scores = ([by_group[g][i] for g in side] for side in (id_groups, ood_groups))
            values.append(_separation(id_scores, ood_scores, candidate.where))
        return values

    aurocs: dict[int, float] = {}
    failed: dict[int, UnusableError] = {}
    pending = group_by_fit(grid)
    for indices in pending:
        try:
            aurocs.update(zip(indices, separations([grid[i] for i in indices]), strict=True))
        except UnusableError as error:
            if len(indices) == 1:
                failed[indices[0]] = error
            else:  # try them one by one, to find which failed
                pending += [[i] for i in indices]
    if not aurocs:
        raise failed[0]
    best = grid[max(sorted(aurocs), key=aurocs.__getitem__)]
    criterion = sweep_criterion(*validation_groups(sets), disjoint=kept is not None)
    trials = tuple(
        (params_json(candidate), criterion, aurocs.get(i), failed[i].what if i in failed else None)
        for i, candidate in enumerate(grid)
    )
    skipped = [
        format_named("", {name: grid[i].params[name] for name in configured.sweep}) for i in sorted(failed)
    ]
    without = f" without {', '.join(skipped)}" if skipped else ""
    return configured.with_params(best.params, criterion + without), trials


def _separation(id_scores: Sequence[Array], ood_scores: Sequence[Array], where: str) -> float:
    """Return the unweighted mean over OOD sets of the AUROC of all ID images against them."""
    all_id = np.concatenate(id_scores)
    return float(np.mean([auroc(all_id, scores, name=where) for scores in ood_scores]))


def params_json(configured: ConfiguredDetector) -> str:
    """Return the parameters of a detector as sweeps store them."""
    return json.dumps(dict(configured.params), sort_keys=True)


def group_by_fit(grid: Sequence[ConfiguredDetector]) -> list[list[int]]:
    """Return the indices of candidates, grouping candidates with the same fit to score them in one pass."""
    groups: dict[Any, list[int]] = {}
    for i, candidate in enumerate(grid):
        groups.setdefault(candidate.fit_key if shares_work(candidate) else i, []).append(i)
    return list(groups.values())


def sweep_grid(configured: ConfiguredDetector) -> Iterator[ConfiguredDetector]:
    """Yield the detector with every combination of the values of its sweep; given parameters stay."""
    sweep = configured.sweep
    for values in product(*sweep.values()):
        params: dict[str, Value] = dict(zip(sweep, values, strict=True))
        yield configured.with_params(params, "")
