"""The parts of a comparison as tables ready to print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from html import escape
from itertools import pairwise

from wordnet_splits.base.tabular import Tabular, html_table, text_table

from ..evaluation.tables import NOTHING, Table
from .draws import Agreement, DrawComparison
from .improvements import Improvement, SpectrumRow
from .ranking import Ranking


class PrintedTables(Tabular):
    """Base of findings that are several tables and notes below them, as text and as HTML.

    Attributes
    ----------
    notes : sentences below all tables.
    """

    notes: tuple[str, ...]

    def tables(self) -> list[Table]:
        """Return the tables, ready to print."""
        raise NotImplementedError

    def __str__(self) -> str:
        parts = []
        for table in self.tables():
            lines, _ = text_table(table.columns, table.cells, right=table.right)
            parts.append("\n".join([table.title, *lines, *table.notes]))
        return "\n\n".join([*parts, "\n".join(self.notes)] if self.notes else parts)

    def _repr_html_(self) -> str:
        parts = []
        for table in self.tables():
            rows = [dict(zip(table.columns, row, strict=True)) for row in table.cells]
            parts += [f"<p>{escape(table.title)}</p>", html_table(rows)]
            parts += [f"<p>{escape(note)}</p>" for note in table.notes]
        return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in self.notes)])


def factor_of(metric: str) -> tuple[float, str]:
    """Return what a metric is printed times, and how that is said."""
    return (1000, " x 1000") if "aurc" in metric or "augrc" in metric else (100, ", in %")


def of_ranking(ranking: Ranking) -> list[Table]:
    """Return the ranking and the differences of its pairs."""
    factor, unit = factor_of(ranking.metric)
    better = "higher" if ranking.higher_is_better else "lower"
    title = f"{ranking.benchmark}: {ranking.metric} on {ranking.on}{unit}, {better} is better"
    columns = ("model", "detector", "runs", "mean", "sd", "interval", "rank", "ranks", "behind best", "p")
    rows = [
        (
            one.model,
            one.detector,
            str(one.n),
            number_text(one.mean, factor),
            number_text(one.sd, factor),
            interval_text(one.lo, one.hi, factor),
            f"{one.rank:g}",
            interval_text(one.rank_lo, one.rank_hi, 1, digits=0),
            number_text(one.behind, factor),
            _p(one.p),
        )
        for one in ranking.entries
    ]
    made = [Table(title, columns, tuple(rows), tuple(asdict(one) for one in ranking.entries))]
    return made + ([_of_neighbours(ranking, factor, unit)] if ranking.pairs else [])


def _of_neighbours(ranking: Ranking, factor: float, unit: str) -> Table:
    """Each entry against the next of the ranking; `p` in the ranking is against the best."""
    names = [f"{one.model} {one.detector}" for one in ranking.entries]
    held = {(pair.a, pair.b): pair for pair in ranking.pairs}
    shown = [held[pair] for pair in pairwise(names)]
    rows = [
        (
            one.a,
            one.b,
            number_text(one.better, factor),
            interval_text(one.lo, one.hi, factor),
            _p(one.p),
            _p(one.p_holm),
        )
        for one in shown
    ]
    drawn = 0 if ranking.replicates is None else ranking.replicates.shape[1]
    note = (
        f"p: paired bootstrap over the test images, {drawn:,} replicates, two-sided, at least "
        f"{2 / (drawn + 1):.3g}; Holm's correction is for all {len(ranking.pairs):,} pairs."
    )
    return Table(
        f"How much better each is than the next{unit}",
        ("", "than", "better", "interval", "p", "p (Holm)"),
        tuple(rows),
        tuple(asdict(one) for one in ranking.pairs),
        (note,),
    )


def of_draws(found: DrawComparison) -> list[Table]:
    """Return ranks over draws, and Kendall's tau of every two of them."""
    factor, unit = factor_of(found.metric)
    rows = [
        (
            one.model,
            one.detector,
            number_text(one.mean, factor),
            number_text(one.sd, factor),
            f"{one.mean_rank:.2f}",
            f"{one.best_rank:g} to {one.worst_rank:g}",
        )
        for one in found.entries
    ]
    taus = [one.tau for one in found.agreements]
    mean, least = sum(taus) / len(taus), min(taus)
    notes = [f"Kendall's tau over {len(taus)} pairs of draws: mean {mean:.3f}, least {least:.3f}."]
    if found.left_out:
        notes.append(f"Not in every draw, left out: {', '.join(found.left_out)}.")
    return [
        Table(
            f"Over {len(found.draws)} draws: {found.metric} on {found.on}{unit}",
            ("model", "detector", "mean", "sd", "mean rank", "ranks"),
            tuple(rows),
            tuple(asdict(one) for one in found.entries),
            tuple(notes),
        ),
        of_agreements(found.agreements),
    ]


def of_agreements(found: Iterable[Agreement]) -> Table:
    """Return Kendall's tau of pairs of orderings."""
    held = list(found)
    rows = [(one.a, one.b, str(one.n), f"{one.tau:.3f}") for one in held]
    return Table(
        "Kendall's tau: 1 the same order, -1 the reverse",
        ("model", "against", "entries", "tau"),
        tuple(rows),
        tuple(asdict(one) for one in held),
    )


def of_improvements(found: Sequence[Improvement]) -> Table:
    """Return Kim's figure 5 as a table."""
    rows = [
        (one.model, one.detector, number_text(one.percent, 1), interval_text(one.lo, one.hi, 1))
        for one in found
    ]
    return Table(
        "Improvement in %, over MCP unless another baseline is named (Kim's figure 5): positive is better",
        ("model", "detector", "improvement", "interval"),
        tuple(rows),
        tuple(asdict(one) for one in found),
    )


def of_spectrum(found: Sequence[SpectrumRow]) -> Table:
    """Return standard against full-spectrum values."""
    rows = [
        (
            one.model,
            one.detector,
            f"{one.role} {one.metric}",
            *(number_text(value, 100) for value in (one.standard, one.full_spectrum, one.lost)),
        )
        for one in found
    ]
    return Table(
        "Standard and full-spectrum, in %",
        ("model", "detector", "mean of", "standard", "full", "lost"),
        tuple(rows),
        tuple(asdict(one) for one in found),
    )


def number_text(value: float | None, factor: float, digits: int = 2) -> str:
    """Return a value times its factor, a dash for none."""
    if value is None or value != value:  # NaN: the spread of a single run
        return NOTHING
    text = f"{factor * value:.{digits}f}"
    return text.removeprefix("-") if not float(text) else text  # no minus zero


def interval_text(lo: float | None, hi: float | None, factor: float, digits: int = 2) -> str:
    """Return both ends times their factor, a dash for none."""
    if lo is None or hi is None:
        return NOTHING
    return f"{number_text(lo, factor, digits)} to {number_text(hi, factor, digits)}"


def _p(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"
