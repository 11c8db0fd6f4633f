"""The parts of a comparison as tables ready to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise

from ..evaluation.table import NOTHING, Table, interval_text, number_text, table_of_records
from .draws import Agreement, DrawComparison
from .improvements import Improvement, SpectrumRow
from .ranking import Ranking

MEAN_COLUMN = 3
"""The column of the means in the table of a ranking."""
PAIRED_RULE = "Bold: the best, and values whose paired difference to it has an interval that includes 0"


def factor_of(metric: str) -> tuple[float, str]:
    """Return the factor that a metric is printed with, and its text for titles."""
    return (1000, " x 1000") if "aurc" in metric or "augrc" in metric else (100, ", in %")


def ranking_tables(ranking: Ranking) -> list[Table]:
    """Return the ranking and the differences of neighbours in it."""
    factor, unit = factor_of(ranking.metric)
    better = "higher" if ranking.higher_is_better else "lower"
    table = table_of_records(
        f"{ranking.benchmark}: {ranking.metric} on {ranking.on}{unit}, {better} is better",
        ranking.entries,
        {
            "model": lambda entry: entry.model,
            "detector": lambda entry: entry.detector,
            "runs": lambda entry: str(entry.n),
            "mean": lambda entry: number_text(entry.mean, factor),
            "sd": lambda entry: number_text(entry.sd, factor),
            "interval": lambda entry: interval_text(entry.lo, entry.hi, factor),
            "rank": lambda entry: f"{entry.rank:g}",
            "ranks": lambda entry: interval_text(entry.rank_lo, entry.rank_hi, digits=0),
            "behind best": lambda entry: number_text(entry.behind, factor),
            "p": lambda entry: _p_text(entry.p),
        },
    )
    if len(ranking.entries) == 1:
        return [table]
    if not ranking.pairs:
        best = [row for row, entry in enumerate(ranking.entries) if not entry.behind]
        bold = frozenset((row, MEAN_COLUMN) for row in best)
        return [replace(table, bold=bold, bold_rule="Bold: the best; no intervals were computed")]
    first = f"{ranking.entries[0].model} {ranking.entries[0].detector}"
    behind = {pair.b: pair.lo for pair in ranking.pairs if pair.a == first}
    as_good = [
        row
        for row, entry in enumerate(ranking.entries)
        if not row or behind[f"{entry.model} {entry.detector}"] <= 0
    ]
    table = replace(table, bold=frozenset((row, MEAN_COLUMN) for row in as_good), bold_rule=PAIRED_RULE)
    return [table, _neighbours_table(ranking, factor, unit)]


def _neighbours_table(ranking: Ranking, factor: float, unit: str) -> Table:
    """Return each entry against the next of the ranking; its rows hold all pairs."""
    names = [f"{entry.model} {entry.detector}" for entry in ranking.entries]
    pairs = {(pair.a, pair.b): pair for pair in ranking.pairs}
    replicates = 0 if ranking.replicates is None else ranking.replicates.shape[1]
    table = table_of_records(
        f"How much better each is than the next{unit}",
        [pairs[neighbours] for neighbours in pairwise(names)],
        {
            "": lambda pair: pair.a,
            "than": lambda pair: pair.b,
            "better": lambda pair: number_text(pair.better, factor),
            "interval": lambda pair: interval_text(pair.lo, pair.hi, factor),
            "p": lambda pair: _p_text(pair.p),
            "p (Holm)": lambda pair: _p_text(pair.p_holm),
        },
        [
            f"p: paired bootstrap over the test images, {replicates:,} replicates, two-sided, at least "
            f"{2 / (replicates + 1):.3g}; Holm's correction is for all {len(ranking.pairs):,} pairs."
        ],
    )
    return replace(table, rows=tuple(asdict(pair) for pair in ranking.pairs))


def draw_tables(draws: DrawComparison) -> list[Table]:
    """Return ranks over draws, and Kendall's tau of every two of them."""
    factor, unit = factor_of(draws.metric)
    taus = [agreement.tau for agreement in draws.agreements]
    mean, least = sum(taus) / len(taus), min(taus)
    notes = [f"Kendall's tau over {len(taus)} pairs of draws: mean {mean:.3f}, least {least:.3f}."]
    if draws.left_out:
        notes.append(f"Not in every draw, left out: {', '.join(draws.left_out)}.")
    over_draws = table_of_records(
        f"Over {len(draws.draws)} draws: {draws.metric} on {draws.on}{unit}",
        draws.entries,
        {
            "model": lambda entry: entry.model,
            "detector": lambda entry: entry.detector,
            "mean": lambda entry: number_text(entry.mean, factor),
            "sd": lambda entry: number_text(entry.sd, factor),
            "mean rank": lambda entry: f"{entry.mean_rank:.2f}",
            "ranks": lambda entry: f"{entry.best_rank:g} to {entry.worst_rank:g}",
        },
        notes,
    )
    return [over_draws, agreement_table(draws.agreements)]


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


def improvement_table(improvements: Sequence[Improvement]) -> Table:
    """Return Kim's figure 5 as a table."""
    return table_of_records(
        "Improvement in %, over MCP unless another baseline is named (Kim's figure 5): positive is better",
        improvements,
        {
            "model": lambda row: row.model,
            "detector": lambda row: row.detector,
            "improvement": lambda row: number_text(row.percent),
            "interval": lambda row: interval_text(row.lo, row.hi),
        },
    )


def spectrum_table(spectrum_rows: Sequence[SpectrumRow]) -> Table:
    """Return standard against full-spectrum values."""
    return table_of_records(
        "Standard and full-spectrum, in %",
        spectrum_rows,
        {
            "model": lambda row: row.model,
            "detector": lambda row: row.detector,
            "mean of": lambda row: f"{row.role} {row.metric}",
            "standard": lambda row: number_text(row.standard, 100),
            "full": lambda row: number_text(row.full_spectrum, 100),
            "lost": lambda row: number_text(row.lost, 100),
        },
    )


def _p_text(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"
