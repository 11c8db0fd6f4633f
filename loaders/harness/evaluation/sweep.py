"""Parameters chosen on validation images, never on test: the best mean AUROC of ID against OOD."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from wordnet_splits.errors import DataError
from wordnet_splits.metrics import auroc

from ..activations.runs import ModelRun
from ..arrays import Array, Arrays
from ..detectors import Chosen
from ..detectors.registry import Value
from .scoring import confidence, fit
from .selection import Selection


def fit_data(chosen: Chosen, selection: Selection, run: ModelRun) -> Arrays | None:
    """Return the ID arrays that a detector fits on, with labels; None where it fits on nothing.

    Raises
    ------
    DataError : the benchmark has no ID images in that split.
    """
    split = chosen.method.fit_on
    if split is None:
        return None
    groups = selection.of_role(split, "id")
    if not groups:
        raise DataError(
            f"detector {chosen.label!r} fits on ID {split} images, and there are none",
            where=selection.manifest.name,
            hint="leave the detector out",
        )
    return Arrays.concat([run.group(split, group, chosen.needs).arrays for group in groups])


def validation_sets(selection: Selection) -> tuple[list[str], list[str]]:
    """Return the ID and the OOD validation groups; external ones, where there are any, are all of the latter.

    Raises
    ------
    DataError : the benchmark has none, so nothing may be chosen.
    """
    inside = selection.of_role("val", "id")
    outside = selection.of_role("val", "external") or selection.of_role("val", "near", "far")
    if not inside or not outside:
        raise DataError(
            "has no ID and OOD validation images to choose parameters on",
            where=selection.manifest.name,
            hint="give them, as in knn[k=50], without --sweep",
        )
    return inside, outside


def choose_on_validation(chosen: Chosen, selection: Selection, run: ModelRun) -> Chosen:
    """Return the detector with the values of its sweep that separate validation images best.

    The best is the highest unweighted mean over OOD validation sets of the AUROC; of equal ones the first.
    """
    inside, outside = validation_sets(selection)
    grid = list(combinations(chosen))
    needs = {name for one in grid for name in one.needs}  # all at once: one pass over the images
    groups = {group: run.group("val", group, needs) for group in [*inside, *outside]}

    def separation(candidate: Chosen) -> float:
        fitted = fit(candidate, fit_data(candidate, selection, run), groups[inside[0]].head)
        scores: dict[str, Array] = {
            group: confidence(fitted, seen.arrays, on=f"{group}/val") for group, seen in groups.items()
        }
        known = np.concatenate([scores[group] for group in inside])
        return float(np.mean([auroc(known, scores[group], name=fitted.where) for group in outside]))

    best = max(grid, key=separation)
    names = (" + ".join(f"{group}/val" for group in side) for side in (inside, outside))
    return chosen.with_params(best.params, "auroc of {} against {}".format(*names))


def combinations(chosen: Chosen) -> Iterator[Chosen]:
    """Yield the detector with every combination of the values of its sweep; given parameters stay."""
    sweep = chosen.sweep
    for values in product(*sweep.values()):
        params: dict[str, Value] = dict(zip(sweep, values, strict=True))
        yield chosen.with_params(params, "")
