"""Tables of rankings: entries, gaps between neighbours, draws, and what their intervals and p are about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise

from wordnet_splits.base.names import counted

from ..results.clusters import KINDS, cut_text
from ..results.metric_rows import factor_of
from ..results.table import NOTHING, Table, interval_text, number_text, table_of_records
from .draws import Agreement, DrawComparison, OverDraws
from .ranking import Pair, Ranked, Ranking
from .significance import replicates_for

BEST_RULE = "Bold: entries that may be best"


def p_text(value: float | None) -> str:
    """Return a p with three digits, a dash for None and NaN."""
    if value is None or math.isnan(value):
        return NOTHING
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def ranking_tables(ranking: Ranking) -> list[Table]:
    """Return the ranking and the differences of neighbours in it.

    A model that all entries share is in the title, and single runs have no columns of runs.
    """
    factor, unit = factor_of(ranking.metric)
    better = "higher" if ranking.higher_is_better else "lower"
    counted = f" ({', '.join(ranking.shifted)} count as ID)" if ranking.shifted else ""
    columns: dict[str, Callable[[Ranked], str]] = {
        "model": lambda entry: entry.model,
        "detector": lambda entry: entry.detector,
        "runs": lambda entry: str(entry.n),
        "mean": lambda entry: number_text(entry.mean, factor),
        "sd": lambda entry: number_text(entry.sd, factor),
        "interval": lambda entry: interval_text(entry.lo, entry.hi, factor),
        "rank": lambda entry: f"{entry.rank:g}",
        "ranks": lambda entry: interval_text(entry.rank_lo, entry.rank_hi, digits=0),
        "behind best": lambda entry: number_text(entry.behind, factor),
        "p (max-T)": lambda entry: p_text(entry.p_adjusted),
    }
    subject = ranking.benchmark
    if _shared_model(ranking):
        subject = f"{ranking.benchmark}, {ranking.entries[0].model}"
        del columns["model"]
    if all(entry.n == 1 for entry in ranking.entries):
        del columns["runs"], columns["sd"]
    title = f"{subject}: {ranking.metric} on {ranking.on}{counted}{unit}, {better} is better"
    table = table_of_records(title, ranking.entries, columns, interval_notes(ranking))
    if len(ranking.entries) == 1:
        return [table]
    mean = table.columns.index("mean")
    if not ranking.pairs:
        best = [row for row, entry in enumerate(ranking.entries) if not entry.behind]
        bold = frozenset((row, mean) for row in best)
        return [replace(table, bold=bold, bold_rule="Bold: the best; no intervals were computed")]
    best = [row for row, entry in enumerate(ranking.entries) if entry.rank_lo == 1]
    note = (
        f"{len(best)} of {len(ranking.entries)} entries may be best: no other is better at p (max-T) <= "
        f"{1 - ranking.level:.3g}. Ranks hold for all entries together."
    )
    bold = frozenset((row, mean) for row in best)
    table = replace(table, notes=(*table.notes, note), bold=bold, bold_rule=BEST_RULE)
    return [table, _neighbours_table(ranking, factor, unit)]


def _shared_model(ranking: Ranking) -> bool:
    """Return whether entries are told apart by their detectors."""
    models = {entry.model for entry in ranking.entries}
    return len(models) == 1 < len(ranking.entries) and models != {""}


def interval_notes(ranking: Ranking) -> Iterator[str]:
    """Yield sentences on what was drawn, and on sets that say nothing about other classes."""
    replicates = 0 if ranking.replicates is None else ranking.replicates.shape[1]
    if ranking.clusters is None or ranking.design is None:
        if replicates:
            other = "; not about other OOD classes, see --over" if ranking.groups else ""
            yield f"Intervals over images: {replicates:,} replicates, the same images for all entries{other}."
    elif replicates:
        sets, cut = ranking.clusters.sets, cut_text(ranking.clusters.cut)
        counts = {group: sets[group] for group in ranking.groups if group in sets}
        drawn = (f"{n.number} of {group}" for group, n in counts.items() if not isinstance(n, str))
        yield (
            f"Intervals over {KINDS[ranking.over]}{cut} ({', '.join(drawn)}): {replicates:,} replicates, t "
            f"with {ranking.design.df:.3g} degrees of freedom."
        )
    if ranking.scarce is not None:
        units = "OOD images" if ranking.scarce == "images" else ranking.over
        yield f"Too few {units} for {ranking.metric}: intervals and p may miss their level."
    if ranking.clusters is not None:
        yield from ranking.clusters.notes(ranking.groups)


def _neighbours_table(ranking: Ranking, factor: float, unit: str) -> Table:
    """Return each entry against the next of the ranking; its rows hold all pairs."""
    names = {
        entry.name: entry.detector if _shared_model(ranking) else entry.name for entry in ranking.entries
    }
    pairs = {(pair.a, pair.b): pair for pair in ranking.pairs}

    def above(pair: Pair) -> str:
        chance = number_text(pair.above)
        return f"{chance} ({interval_text(pair.above_lo, pair.above_hi)})" if chance != NOTHING else NOTHING

    table = table_of_records(
        f"Gap to the next{unit}",
        [pairs[neighbours] for neighbours in pairwise(names)],
        {
            "": lambda pair: names[pair.a],
            "than": lambda pair: names[pair.b],
            "better": lambda pair: number_text(pair.better, factor),
            "interval": lambda pair: interval_text(pair.lo, pair.hi, factor),
            "P(above)": above,
            "p": lambda pair: p_text(pair.p),
            "p (max-T)": lambda pair: p_text(pair.p_adjusted),
        },
        _pair_notes(ranking),
    )
    return replace(table, rows=tuple(asdict(pair) for pair in ranking.pairs))


def _pair_notes(ranking: Ranking) -> Iterator[str]:
    """Yield sentences on the chances and p of pairs, with the least p that the replicates allow."""
    replicates = 0 if ranking.replicates is None else ranking.replicates.shape[1] - ranking.undefined
    least, alpha = 1 / (replicates + 1), 1 - ranking.level
    yield (
        f"P(above): chance to be above the next on a fresh draw of as many {ranking.over}, and its "
        f"{100 * ranking.level:g}% interval."
    )
    wanted = alpha if least > alpha else 10.0 ** math.floor(math.log10(least) - 1e-9)
    yield (
        f"p: two-sided. p (max-T): adjusted for {counted(len(ranking.pairs), 'pair')}, not below {least:.3g} "
        f"with {replicates:,} replicates; {wanted:.1g} takes {replicates_for(wanted):,}."
    )
    if ranking.undefined:
        yield f"p leaves out {ranking.undefined:,} replicates in which an entry has no value."


def draw_tables(draws: DrawComparison) -> list[Table]:
    """Return ranks over draws, and Kendall's tau of every pair of draws."""
    factor, unit = factor_of(draws.metric)
    taus = [agreement.tau for agreement in draws.agreements]
    mean, least = sum(taus) / len(taus), min(taus)
    notes = [f"Kendall's tau over {len(taus)} pairs of draws: mean {mean:.3f}, least {least:.3f}."]
    if draws.left_out:
        notes.append(f"Not in every draw, left out: {', '.join(draws.left_out)}.")
    over_draws = table_of_records(
        f"Over {len(draws.draws)} draws: {draws.metric} on {draws.on}{unit}",
        draws.entries,
        block_columns(factor),
        notes,
    )
    return [over_draws, agreement_table(draws.agreements)]


def block_columns(factor: float) -> dict[str, Callable[[OverDraws], str]]:
    """Return the columns of entries over draws or other blocks."""
    return {
        "model": lambda entry: entry.model,
        "detector": lambda entry: entry.detector,
        "mean": lambda entry: number_text(entry.mean, factor),
        "sd": lambda entry: number_text(entry.sd, factor),
        "mean rank": lambda entry: f"{entry.mean_rank:.2f}",
        "best to worst": lambda entry: f"{entry.best_rank:g} to {entry.worst_rank:g}",
    }


def agreement_table(agreements: Sequence[Agreement]) -> Table:
    """Return Kendall's tau of pairs of orderings."""
    return table_of_records(
        "Kendall's tau: 1 the same order, -1 the reverse",
        agreements,
        {
            "model": lambda agreement: agreement.a,
            "against": lambda agreement: agreement.b,
            "entries": lambda agreement: str(agreement.n),
            "tau": lambda agreement: f"{agreement.tau:.3f}",
        },
    )
