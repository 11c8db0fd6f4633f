"""Where a metric is compared: on a set, on the mean over near or far sets, on ID, or on all pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordnet_splits.base.errors import unknown
from wordnet_splits.metrics import METRICS, ScoreSet, bootstrap_replicates

from ..arrays import Array
from ..evaluation.metric_rows import FULL_SPECTRUM, MEAN, POOLED, UNKNOWN_ROLES
from ..evaluation.tables import Sets
from .entries import Entry


@dataclass(frozen=True)
class Place:
    """A place as rows of results name it.

    Attributes
    ----------
    name : as given: ``pooled``, ``id``, ``near``, ``far`` (means over sets), or a set.
    group, role : of the rows. parts : the sets behind each value whose mean it is; ID sets are always there.
    """

    name: str
    group: str
    role: str
    parts: tuple[tuple[str, ...], ...]


def place_of(name: str, sets: Sets) -> Place:
    """Return the place called ``name`` of results that have these sets.

    Raises
    ------
    UnknownNameError : they have no such place.
    """
    found = {place.name: place for place in places(sets)}
    if name not in found:
        raise unknown("place", name, found, where="--on")
    return found[name]


def places(sets: Sets) -> list[Place]:
    """Return every place that results with these sets have."""
    unknown_sets = [group for group, role in sets.roles.items() if role in UNKNOWN_ROLES]
    role = "+".join(r for r in UNKNOWN_ROLES if r in sets.roles.values())
    found = [Place("id", POOLED, "id", ((),))]
    if unknown_sets:
        found.append(Place("pooled", POOLED, role, (tuple(unknown_sets),)))
    for role in UNKNOWN_ROLES:
        if of_role := [group for group in unknown_sets if sets.roles[group] == role]:
            found.append(Place(role, MEAN, role, tuple((group,) for group in of_role)))
    return found + [Place(group, group, role, ((group,),)) for group, role in sets.roles.items()]


def replicates_of(entry: Entry, metric: str, place: Place, *, replicates: int, seed: int) -> Array | None:
    """Return (replicates,) values of a metric, means over the entry's runs; None where it has none.

    The images of replicate r are the same for every entry that was scored on the same images.
    """
    plain = metric.removesuffix(FULL_SPECTRUM)
    if plain not in METRICS or not replicates:
        return None
    full = plain != metric
    drawn = []
    for run in entry.scored():
        inside = [part for part in run.sets.values() if part.role == "id" or (full and part.role == "csid")]
        for part in place.parts:
            sets: Sequence[ScoreSet] = [*inside, *(run.sets[group] for group in part)]
            drawn.append(
                bootstrap_replicates(
                    sets, [plain], replicates=replicates, seed=seed, full_spectrum=full, paired=True
                )[plain]
            )
    return np.asarray(np.mean(drawn, axis=0))


def needed_groups(entry: Entry, metric: str, place: Place) -> list[str]:
    """Return the groups whose images the metric depends on at this place."""
    roles = ("id", "csid") if metric.endswith(FULL_SPECTRUM) else ("id",)
    inside = [group for source, _ in entry.runs for group, role in source.roles.items() if role in roles]
    return list(dict.fromkeys([*inside, *(group for part in place.parts for group in part)]))
