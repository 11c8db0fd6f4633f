"""Fit the few weights of the proposals on hand-made catalogs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from wordnet_splits.base.text_formats import read_rows
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.linking.joint_reading import JOINT, Reading, read_names
from wordnet_splits.linking.pool import UNARY, Floats
from wordnet_splits.linking.proposals import common_synsets
from wordnet_splits.linking.weights import ROUNDS, Model, confidence_of, needs_confirmation, ranked, signals
from wordnet_splits.wordnet.taxonomy import Taxonomy

PRIOR = {
    "kind synset": 10.0,
    "kind variant": -1.0,
    "kind related": -3.5,
    "kind within": -2.5,
    "kind apposed": -1.0,
    "kind head": -3.0,
    "kind holding": -7.0,
    "kind told": -6.0,
    "kind part": -5.0,
    "kind modifier": -6.0,
    "kind aside": -5.0,
    "kind spelling": -4.0,
    "kind longer": -6.0,
    "head first": 3.0,
    "outdoors": 2.0,
    "aside tells": 4.0,
    "shadowed": -3.0,
    "headed": -2.0,
    "left out": -2.0,
    "rank": -1.0,
    "first sense": 0.5,
    "position": -0.7,
    "capital": -1.0,
    "plural": -2.0,
    "count share": 0.5,
    "added": -0.5,
    "added rank": -1.0,
    "added sense": 1.0,
    "added elsewhere": -8.0,
    "instance": -0.5,
    "imagenet": 0.5,
    "common": 2.0,
    "productive": 0.3,
    "context": 1.5,
    "kin context": 1.5,
    "person": -0.5,
    "group": -0.5,
    "event": -0.5,
    "communication": -0.5,
    "psychological feature": -1.0,
    "attribute": -1.0,
    "measure": -1.0,
    "relation": -1.0,
    "density": 0.5,
    "alike": 0.5,
    "claimed": -0.5,
    "category": 1.0,
    "nearest": 0.5,
    "topic": 0.5,
    "superclass density": 0.5,
    "superclass alike": 0.3,
    "below superclass": 3.0,
}
"""Prior of each weight, set by judgement: the fit is drawn towards it."""

STRENGTH = 15.0
"""Strength of the prior in names: it counts as much as this many names of a dataset."""
FIRM = {"category": 10.0, "common": 20.0, "nearest": 20.0, "topic": 10.0}
"""Weights with a stronger prior. Bayes' rule, not the data, fixes that a category's share counts once; for
the remaining weights, a fit on many scenes gives values too small for lists of things."""
COUNTED = 300.0
"""Every dataset counts as this many names."""
WANTED, LEAST = 0.98, 0.97
"""Shares of right answers among the names not asked about: on the mean, and on each dataset of the fit."""
KIN = {"places365": "scenes", "sun397": "scenes"}
"""Datasets that share names and their answers are held out together."""


@dataclass(frozen=True, eq=False)
class Answered:
    """A dataset with its hand-made answers, and for each candidate of ``bare`` whether it is an answer.

    ``bare`` is the reading without our supplement to WordNet. Weights are fitted on that: the supplement's
    weights keep their prior, because its entries teach nothing about WordNet's own senses.
    """

    source: str
    names: tuple[str, ...]
    answers: tuple[frozenset[int], ...]
    reading: Reading
    bare: Reading
    hit: Floats


def answered(source: str, *, superclasses: bool = False, supplemented: bool = True) -> Answered:
    """Return a shipped catalog as questions and answers; its superclasses are given on request only."""
    taxonomy = Taxonomy.embedded()
    catalog = load_catalog(source)
    names, above = [c.name for c in catalog], [c.superclass if superclasses else "" for c in catalog]
    reading = read_names(names, above, taxonomy, supplemented=supplemented)
    bare = read_names(names, above, taxonomy, supplemented=False)
    answers = tuple(frozenset(map(taxonomy.index, c.wnids)) for c in catalog)
    return with_answers(source, tuple(names), answers, reading, bare)


def household(*, supplemented: bool = True) -> Answered:
    """Return names and answers of a hundred household things, listed before the rules for asking existed."""
    taxonomy = Taxonomy.embedded()
    rows = read_rows(Path(__file__).with_name("household.tsv"))
    names, none = tuple(name for name, _ in rows), [""] * len(rows)
    answers = tuple(
        frozenset(taxonomy.index(taxonomy.from_name(s)) for s in synsets.split()) for _, synsets in rows
    )
    reading, bare = (read_names(names, none, taxonomy, supplemented=s) for s in (supplemented, False))
    return with_answers("household", names, answers, reading, bare)


def with_answers(
    source: str, names: tuple[str, ...], answers: tuple[frozenset[int], ...], reading: Reading, bare: Reading
) -> Answered:
    """Return names with their answers."""
    pool = bare.pool
    hit = np.array(
        [float(n in answers[o]) for n, o in zip(pool.node.tolist(), pool.owner.tolist(), strict=True)]
    )
    return Answered(source, names, answers, reading, bare, hit)


def fit(sets: Sequence[Answered]) -> Model:
    """Return the model fitted on some datasets; its confidence is fitted on each dataset held out."""
    unseen = []
    for each in sets:
        rest = others(each, sets)
        if not rest:
            raise ValueError(f"{each.source} has no dataset beside it to be held out from")
        unseen.append((each, weighted(rest)))
    return _calibrated(weighted(sets), unseen)


def others(each: Answered, sets: Sequence[Answered]) -> list[Answered]:
    """Return the datasets that are unrelated to a dataset."""
    return [s for s in sets if KIN.get(s.source, s.source) != KIN.get(each.source, each.source)]


def weighted(sets: Sequence[Answered]) -> Model:
    """Return the model fitted on some datasets, without confidence and threshold."""
    names = (*UNARY, *JOINT)
    prior = np.array([PRIOR.get(name, 0.0) for name in names])
    strength = STRENGTH * np.array([FIRM.get(name, 1.0) for name in names])
    u = len(UNARY)
    unary = _weights(sets, [s.bare.pool.unary for s in sets], prior[:u], strength[:u])
    shares = [s.bare.pool.softmax(s.bare.pool.unary @ unary) for s in sets]
    full = prior
    for _ in range(ROUNDS):
        tables = [s.bare.table(p) for s, p in zip(sets, shares, strict=True)]
        full = _weights(sets, tables, prior, strength)
        shares = [s.bare.pool.softmax(x @ full) for s, x in zip(sets, tables, strict=True)]
    return Model(unary, full, np.zeros(0), 0.0)


def _weights(sets: Sequence[Answered], tables: Sequence[Floats], prior: Floats, strength: Floats) -> Floats:
    def loss(weights: Floats) -> tuple[float, Floats]:
        away = weights - prior
        total, slope = float((strength * away * away).sum() / 2), strength * away
        for each, table in zip(sets, tables, strict=True):
            pool, n = each.bare.pool, len(each.names)
            shares = pool.softmax(table @ weights)
            right = np.bincount(pool.owner, shares * each.hit, n)
            known = np.bincount(pool.owner, each.hit, n) > 0
            scale = COUNTED / n
            total -= scale * float(np.log(np.maximum(right[known], 1e-300)).sum())
            wanted = np.where(known[pool.owner], shares * each.hit, 0) / np.maximum(right[pool.owner], 1e-300)
            slope -= scale * ((wanted - np.where(known[pool.owner], shares, 0)) @ table)
        return total, slope

    found: Floats = minimize(loss, prior, jac=True, method="L-BFGS-B").x
    return found


def outcomes(model: Model, each: Answered) -> tuple[Floats, Floats, Floats]:
    """Return per name: the rank of the first right candidate (inf if no candidate is right), and both shares.

    A name whose answer is *no synset* is right at rank 0 if no candidate is proposed.
    """
    pool = each.reading.pool
    alone, together = model.shares(each.reading)
    ranks = np.full(len(each.names), np.inf)
    order = ranked(pool, together)
    common = common_synsets(each.reading, together)
    for n, answer in enumerate(each.answers):
        own = pool.node[order[pool.starts[n] : pool.starts[n + 1]]].tolist()
        nodes = [*own, *(node for node in common[n] if node not in own)]
        if not answer:
            ranks[n] = 0.0 if not nodes else np.inf
        else:
            ranks[n] = next((float(r) for r, node in enumerate(nodes) if node in answer), np.inf)
    return ranks, alone, together


def _calibrated(model: Model, unseen: Sequence[tuple[Answered, Model]]) -> Model:
    """Return a model with confidence fitted on datasets, each read by a model that has not seen it."""
    tables, right, scales, unasked = [], [], [], []
    for each, reader in unseen:
        ranks, alone, together = outcomes(reader, each)
        filled = np.diff(each.reading.pool.starts) > 0
        tables.append(signals(each.reading.pool, alone, together)[filled])
        right.append((ranks == 0)[filled].astype(float))
        scales.append(np.full(int(filled.sum()), COUNTED / len(each.names)))
        unasked.append(~needs_confirmation(each.reading, together)[filled])
    table, hits, scale = np.vstack(tables), np.concatenate(right), np.concatenate(scales)

    def loss(weights: Floats) -> tuple[float, Floats]:
        sure = 1 / (1 + np.exp(-table @ weights))
        total = -(scale * (hits * np.log(sure + 1e-12) + (1 - hits) * np.log(1 - sure + 1e-12))).sum()
        return float(total + (weights**2).sum() / 2), table.T @ (scale * (sure - hits)) + weights

    weights = minimize(loss, np.zeros(table.shape[1]), jac=True, method="L-BFGS-B").x
    sure = confidence_of(table, weights)
    ends = np.cumsum([len(some) for some in right])[:-1]
    confidences = np.split(sure, ends)
    below = _threshold([(s[u], r[u]) for s, r, u in zip(confidences, right, unasked, strict=True)])
    return Model(model.unary, model.full, weights, below)


def _threshold(sets: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the least confidence at and above which enough names are right; a set: (confidences, right)."""

    def enough(threshold: float) -> bool:
        shares = [hits[sure >= threshold].mean() if (sure >= threshold).any() else 1.0 for sure, hits in sets]
        return float(np.mean(shares)) >= WANTED and min(shares) >= LEAST

    return min(filter(enough, np.unique(np.concatenate([sure for sure, _ in sets])).tolist()), default=1.0)
