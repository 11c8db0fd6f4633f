"""`compare_across`: entries ranked in each of several benchmarks, OOD classes or subtrees, and rank tests.

A block ranks all entries: by a metric of a benchmark, or by the AUROC of all ID images against those of an
OOD class or of a subtree (of its classes, weighted by images), as means over runs. A class or subtree that
several benchmarks have is a single block, its mean. Blocks count as independent draws, so that the tests are
about other blocks of their kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations
from typing import Any

import numpy as np
from scipy.stats import rankdata

from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.clusters import Level, subtree_clusters

from ..results.clusters import cut_text
from ..results.metadata import check_level
from ..results.metric_rows import factor_of
from ..results.table import NOTHING, Table, TableReport, table_of_records
from ..results.tables import ResultSets
from .draws import Label, OverDraws, entries_over, entry_means, shared_entries
from .entries import BenchmarkResults, ResultsOrFolder, as_sequence, draws_of, without_seed
from .rank_tests import RankTest, cliques, rank_test
from .ranking import Scope, higher_is_better, require_same_images, scope_named
from .ranking_tables import block_columns, p_text

METRIC = "auroc"
MIN_BLOCKS, MIN_ENTRIES = 2, 3
BLOCKS: Mapping[Level, str] = {"images": "benchmarks", "classes": "classes", "subtrees": "subtrees"}
ONE_EACH = "(one each)"
"""Model of entries that are matched by detector, as each benchmark has a single model."""
Block = tuple[str, Mapping[Label, float]]
"""Name (a benchmark, ``source/class_id``, or the wnid of a subtree's root) and the value of each entry."""


@dataclass(frozen=True)
class RankedPair:
    """Two entries, the one of better mean rank first, and p of their difference, corrected for all pairs."""

    a: str
    b: str
    ranks_better: float
    p_nemenyi: float
    p_conover_holm: float


@dataclass(frozen=True, eq=False)
class Across(TableReport):
    """The outcome of `compare_across`; printed, its tables.

    Attributes
    ----------
    over, cut : level of the blocks: ``images`` has a block for each benchmark.
    entries : best mean rank first.
    pairs : every pair, in the order of mean ranks.
    cliques : runs of entries (first, last) that Nemenyi's test does not tell apart; all of them if F does not
        reject that they are equal.
    """

    metric: str
    on: str
    over: Level
    cut: int | None
    blocks: tuple[str, ...]
    entries: tuple[OverDraws, ...]
    test: RankTest
    pairs: tuple[RankedPair, ...]
    cliques: tuple[tuple[int, int], ...]
    notes: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The number of blocks and what they are."""
        return f"{len(self.blocks)} {BLOCKS[self.over]}{cut_text(self.cut)}"

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the entries, best mean rank first."""
        return [{"metric": self.metric, "on": self.on, **asdict(entry)} for entry in self.entries]

    def tables(self) -> list[Table]:
        """Return mean ranks, p of being as good as the best, and the tests of all entries."""
        factor, unit = factor_of(self.metric)
        best = self.entries[0].name
        pairs = {pair.b: pair for pair in self.pairs if pair.a == best}
        p = {name: (p_text(q.p_nemenyi), p_text(q.p_conover_holm)) for name, q in pairs.items()}
        table = table_of_records(
            f"Over {self.unit}: {self.metric} on {self.on}{unit}",
            self.entries,
            block_columns(factor)
            | {
                "p (Nemenyi)": lambda entry: p.get(entry.name, (NOTHING,))[0],
                "p (Conover-Holm)": lambda entry: p.get(entry.name, (NOTHING,))[-1],
            },
            [*self.sentences(), f"p: as good as the first, corrected for all {len(self.pairs):,} pairs."],
        )
        return [table]

    def sentences(self) -> list[str]:
        """Return sentences on the tests of all entries and on the best of them."""
        test, best = self.test, 1 + next((last for first, last in self.cliques if not first), 0)
        return [
            f"Are all equally good? Iman and Davenport's F({test.df1}, {test.df2}) = {test.f:.2f}, "
            f"p {p_text(test.p)} (Friedman's chi-squared {test.chi2:.2f}, p {p_text(test.p_chi2)}).",
            f"Nemenyi's critical difference is {test.critical_difference:.2f} mean ranks: {best} of "
            f"{len(self.entries)} may be the best.",
        ]


def compare_across(
    results: Sequence[ResultsOrFolder] | ResultsOrFolder,
    *,
    detectors: str | Sequence[str] | None = None,
    **options: Any,
) -> Across:
    """Rank detectors over several benchmarks (or draws), or over OOD classes or subtrees of these.

    Parameters
    ----------
    results : `Results` on any benchmarks, or their folders.
    detectors : labels to compare, also as ``"msp,knn[k=10]"``; all by default.
    options : see `across_of`.
    """
    return across_of(draws_of(as_sequence(results), detectors, across=True), **options)


def across_of(
    draws: Sequence[BenchmarkResults],
    *,
    metric: str | None = None,
    on: str = "pooled",
    over: Level = "images",
    cut: int | None = None,
    level: float = 0.95,
) -> Across:
    """Rank entries, matched by model and detector, or by detector if each benchmark has a single model.

    Parameters
    ----------
    metric : of each benchmark, by default AUROC, the only one by class.
    on : a set, ``pooled``, ``near``, ``far`` or ``id``.
    over : blocks: ``images`` for a value of each benchmark, or the ``classes`` or ``subtrees`` of OOD sets.
    cut : edges from a set's least common subsumer to the roots of its subtrees (`subtree_roots`).
    level : of the critical difference.

    Raises
    ------
    DataError : fewer than 2 blocks, or 3 entries that all have; a metric that classes lack; results on a
        benchmark that are not on the same images.
    UnknownNameError : a benchmark lacks the set.
    """
    if check_level(over, cut) != "images" and metric not in (None, METRIC):
        raise DataError(f"results have no {metric} by class", where="--metric", hint=f"{METRIC} is kept")
    metric, notes, blocks = metric or METRIC, [note for draw in draws for note in draw.notes], list[Block]()
    for draw in _matched(draws, notes):
        scope = scope_named(on, ResultSets.from_results(draw.first))
        require_same_images(draw, metric, scope)
        if over == "images":
            blocks.append((draw.benchmark, entry_means(draw, metric, scope)))
        else:
            blocks += _blocks_of_classes(draw, scope, over, cut, notes)
    common, left_out = shared_entries([values for _, values in blocks]) if blocks else ([], ())
    rows: dict[str, list[list[float]]] = {}
    for name, values in blocks:
        rows.setdefault(name, []).append([values[label] for label in common])
    if len(rows) < MIN_BLOCKS or len(common) < MIN_ENTRIES:
        raise DataError(
            f"a rank test needs {MIN_BLOCKS} {BLOCKS[over]} and {MIN_ENTRIES} entries that all have, got "
            f"{len(rows)} and {len(common)}",
            where=", ".join(draw.benchmark for draw in draws),
            hint="give results of the same detectors on models of the same name",
        )
    if left_out:
        without = ", ".join(name.removeprefix(f"{ONE_EACH} ") for name in left_out)
        notes.append(f"Not on every benchmark, left out: {without}.")
    if shared := sum(len(of_block) > 1 for of_block in rows.values()):
        notes.append(f"{shared} {BLOCKS[over]} are of several benchmarks; each counts once, as their mean.")
    higher = {higher_is_better(metric, draw) for draw in draws}
    if len(higher) > 1:
        raise DataError(f"higher is better of {metric!r} on some of the benchmarks, and lower on others")
    table = np.array([np.mean(of_block, axis=0) for of_block in rows.values()])
    ranks = rankdata(-table if higher == {True} else table, axis=1)
    entries, (test, nemenyi, conover) = entries_over(common, table, ranks), rank_test(ranks, level=level)
    order = np.argsort(ranks.mean(axis=0), kind="stable")
    means, names = [entry.mean_rank for entry in entries], [entry.name for entry in entries]
    pairs = tuple(
        RankedPair(
            names[a],
            names[b],
            means[b] - means[a],
            *(float(p[order[a], order[b]]) for p in (nemenyi, conover)),
        )
        for a, b in combinations(range(len(names)), 2)
    )
    runs = tuple(cliques(means, test.critical_difference if test.p < 1 - level else np.inf))
    return Across(metric, on, over, cut, tuple(rows), tuple(entries), test, pairs, runs, tuple(notes))


def _matched(draws: Sequence[BenchmarkResults], notes: list[str]) -> Iterator[BenchmarkResults]:
    """Yield draws with names of models that match: without the benchmark's, or none if each has one model."""
    models: list[dict[str, str]] = []
    for draw in draws:
        names = {e.model: e.model.removeprefix(f"{without_seed(draw.benchmark)}/") for e in draw.entries}
        models.append(names if len({*names.values()}) == len(names) else {name: name for name in names})
    if all(len(of_draw) == 1 for of_draw in models) and len({*chain(*map(dict.values, models))}) > 1:
        notes.append(f"Matched by detector; the models are {', '.join(chain(*models))}.")
        models = [dict.fromkeys(of_draw, ONE_EACH) for of_draw in models]
    for draw, names in zip(draws, models, strict=True):
        yield replace(draw, entries=tuple(replace(e, model=names[e.model]) for e in draw.entries))


def _blocks_of_classes(
    draw: BenchmarkResults, scope: Scope, over: Level, cut: int | None, notes: list[str]
) -> Iterator[Block]:
    """Yield the AUROCs of the classes or subtrees of a scope's sets."""
    groups = {group for pool in scope.pools for group in pool}
    runs = {e.label: [held.class_aurocs.get((e.detector, n), {}) for held, n in e.runs] for e in draw.entries}
    every = [run for of_entry in runs.values() for run in of_entry]
    scored = dict.fromkeys(key for run in every for key in run if key[0] in groups)
    keys = [key for key in scored if all(key in run for run in every)]
    if len(keys) < len(scored):
        notes.append(f"{draw.benchmark}: {len(scored) - len(keys)} classes were not scored in every run.")
    clusters = subtree_clusters(draw.manifest(), cut=cut) if over == "subtrees" else {}
    members: dict[str, list[tuple[str, str, str]]] = {}
    for group in dict.fromkeys(key[0] for key in keys):
        of_group = [key for key in keys if key[0] == group]
        known = clusters.get(group)
        if over == "subtrees" and (known is None or {key[1:] for key in of_group} - known.of.keys()):
            raise DataError(f"the benchmark has other classes of {group}", where=draw.benchmark)
        problem = known.problem if known else None
        if problem or len(of_group) == 1:
            notes.append(f"{draw.benchmark}: {group} is left out ({problem or 'a single class'}).")
            continue
        for key in of_group:
            name = known.of[key[1:]] if known else "/".join(key[1:])
            members.setdefault(name, []).append(key)
    for name, of_block in members.items():
        aurocs = {}
        for label, of_entry in runs.items():
            held = np.array([[run[key] for key in of_block] for run in of_entry])  # (runs, classes, 2)
            aurocs[label] = float(np.average(held[..., 1], axis=1, weights=held[..., 0]).mean())
        yield name, aurocs
