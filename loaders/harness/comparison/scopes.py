"""The sets that a metric is compared on: one set, the mean over near or far sets, ID, or all pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordnet_splits.base.errors import DataError, UnknownNameError, unknown
from wordnet_splits.metrics import Metric, ScoreSet, bootstrap_replicates, get_metric, pool

from ..arrays import Array
from ..evaluation.metric_rows import FULL_SPECTRUM, MEAN, POOLED, UNKNOWN_ROLES
from ..evaluation.tables import ResultSets
from .entries import Entry


@dataclass(frozen=True)
class Scope:
    """The sets that a row of results is over.

    Attributes
    ----------
    name : ``pooled``, ``id``, ``near``, ``far`` (means over sets), or a set. group, role : of the rows.
    pools : OOD sets of each value that is averaged; ID sets are always part of it.
    """

    name: str
    group: str
    role: str
    pools: tuple[tuple[str, ...], ...]


def scope_named(name: str, sets: ResultSets) -> Scope:
    """Return the scope called ``name`` of results with these sets.

    Raises
    ------
    UnknownNameError : they have no such scope.
    """
    scopes = {scope.name: scope for scope in list_scopes(sets)}
    if name not in scopes:
        raise unknown("set or mean", name, scopes, where="--on")
    return scopes[name]


def list_scopes(sets: ResultSets) -> list[Scope]:
    """Return every scope of results with these sets."""
    unknown_sets = tuple(group for group, role in sets.roles.items() if role in UNKNOWN_ROLES)
    scopes = [Scope("id", POOLED, "id", ((),))]
    if unknown_sets:
        scopes.append(Scope("pooled", POOLED, sets.pooled_role, (unknown_sets,)))
    for role in UNKNOWN_ROLES:
        if of_role := [group for group in unknown_sets if sets.roles[group] == role]:
            scopes.append(Scope(role, MEAN, role, tuple((group,) for group in of_role)))
    return scopes + [Scope(group, group, role, ((group,),)) for group, role in sets.roles.items()]


def entry_replicates(entry: Entry, metric: str, scope: Scope, *, replicates: int, seed: int) -> Array | None:
    """Return (replicates,) values of a metric, means over the entry's runs; None where it has none.

    The images of replicate r are the same for every entry that was scored on the same images.

    Raises
    ------
    DataError : a user's metric has another definition now than when the results were computed.
    """
    standard = metric.removesuffix(FULL_SPECTRUM)
    definition = _definition(standard)
    if definition is None or not replicates:
        return None
    id_roles = _id_roles(metric)
    values = []
    observed = []
    for run in entry.scored():
        id_sets = [score_set for score_set in run.sets.values() if score_set.role in id_roles]
        for groups in scope.pools:
            sets: Sequence[ScoreSet] = [*id_sets, *(run.sets[group] for group in groups)]
            if definition.origin:
                observed.append(definition.kernel(pool(sets, full_spectrum=standard != metric)))
            values.append(
                bootstrap_replicates(
                    sets,
                    [standard],
                    replicates=replicates,
                    seed=seed,
                    full_spectrum=standard != metric,
                    paired=True,
                )[standard]
            )
    stored = entry.values(metric, scope.group, scope.role)
    if observed and not np.isclose(np.mean(observed), np.mean(stored), equal_nan=True):
        raise DataError(
            f"{standard} had another definition when these results were computed: {np.mean(stored):.6g}, "
            f"now {np.mean(observed):.6g}",
            where=" ".join(entry.label),
            hint="evaluate again, or `remeasure` the results",
        )
    return np.asarray(np.mean(values, axis=0))


def _definition(metric: str) -> Metric | None:
    """Return the metric of that name, None for other values and for a user's metric that is not installed."""
    try:
        return get_metric(metric)
    except UnknownNameError:
        return None


def groups_behind(entry: Entry, metric: str, scope: Scope) -> list[str]:
    """Return the groups whose images a metric depends on."""
    id_roles = _id_roles(metric)
    id_groups = [
        group for evaluation, _ in entry.runs for group, role in evaluation.roles.items() if role in id_roles
    ]
    return list(dict.fromkeys([*id_groups, *(group for groups in scope.pools for group in groups)]))


def _id_roles(metric: str) -> tuple[str, ...]:
    return ("id", "csid") if metric.endswith(FULL_SPECTRUM) else ("id",)
