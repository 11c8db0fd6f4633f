"""`compare`: everything that several results say about each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..evaluation.sweeps import summary
from ..evaluation.tables import Sets, Table, layout_of
from . import tables
from .draws import Agreement, DrawComparison, compare_draws, compare_with_paper
from .entries import Draw, Given, draws_of, plain_name
from .improvements import (
    BASELINE,
    Improvement,
    SpectrumRow,
    against_full_spectrum,
    has_improvements,
    improvements,
)
from .ranking import Ranking, rank_entries
from .robustness import DEFAULT, notes_of, robustness_tables
from .scopes import Place, place_of, places

REPLICATES = 200
ON_ID = "aurc"
"""What is ranked by where results hold ID sets alone."""


@dataclass(frozen=True, eq=False)
class Comparison(tables.PrintedTables):
    """What `compare` found; printed, its tables.

    Attributes
    ----------
    rankings : of each draw of the benchmark. draws : over draws, None where there is one.
    agreements : with the paper's order, where it has rows for two of the detectors.
    robustness : Abdelzad's tables. sweeps : what sweeps chose.
    notes : what differs between the results, as sentences.
    """

    benchmark: str
    metric: str
    on: str
    rankings: tuple[Ranking, ...]
    draws: DrawComparison | None
    agreements: tuple[Agreement, ...]
    improvements: tuple[Improvement, ...]
    full_spectrum: tuple[SpectrumRow, ...]
    robustness: tuple[Table, ...]
    sweeps: tuple[Table, ...]
    notes: tuple[str, ...]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the entries of every ranking, best first."""
        return [
            {"benchmark": ranking.benchmark, "metric": self.metric, "on": self.on, **asdict(entry)}
            for ranking in self.rankings
            for entry in ranking.entries
        ]

    def tables(self) -> list[Table]:
        """Return everything as tables ready to print."""
        made = [table for ranking in self.rankings for table in tables.of_ranking(ranking)]
        if self.draws is not None:
            made += tables.of_draws(self.draws)
        if self.agreements:
            made.append(tables.of_agreements(self.agreements))
        if self.improvements:
            made.append(tables.of_improvements(self.improvements))
        if self.full_spectrum:
            made.append(tables.of_spectrum(self.full_spectrum))
        return [*made, *self.robustness, *self.sweeps]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as ``compare --json`` prints it."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "on": self.on,
            "ranking": self.rows(),
            "pairs": [{"benchmark": r.benchmark, **asdict(pair)} for r in self.rankings for pair in r.pairs],
            "draws": None if self.draws is None else asdict(self.draws),
            "paper": [asdict(one) for one in self.agreements],
            "improvement": [asdict(one) for one in self.improvements],
            "full_spectrum": [asdict(one) for one in self.full_spectrum],
            "robustness": [row for table in self.robustness for row in table.as_dict()["rows"]],
            "sweeps": [row for table in self.sweeps for row in table.as_dict()["rows"]],
            "notes": list(self.notes),
        }


def compare(
    results: Sequence[Given] | Given,
    *,
    metric: str | None = None,
    on: str | None = None,
    detectors: Sequence[str] | None = None,
    bootstrap: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
    baseline: str | None = None,
    robustness: Sequence[int] | None = None,
) -> Comparison:
    """Set results on one benchmark, or on resampled draws of it, side by side.

    Parameters
    ----------
    results : `Results`, or folders of them.
    metric, on : what is ranked, and on which set: ``pooled``, ``id``, ``near``, ``far`` (means over sets) or
        a set; by default the primary metric of the benchmark's paper.
    detectors : labels to compare, all by default.
    bootstrap, seed, level : of the paired bootstrap over images; 0 replicates for none.
    baseline : what improvement is measured from, a detector or "MODEL DETECTOR"; by default MCP, for Kim's
        pooled AURC alone.
    robustness : numbers of Abdelzad's tables (2 to 10) to rebuild over the models; by default those that
        sum up, for the benchmarks of that paper with results of several models.

    Raises
    ------
    DataError : the results are of different benchmarks, versions or images, or lack the metric.
    UnknownNameError : no such metric or place.
    """
    given = [results] if isinstance(results, Given) else list(results)
    return compare_draws_of(
        draws_of(given, detectors),
        metric=metric,
        on=on,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        baseline=baseline,
        robustness=robustness,
    )


def compare_draws_of(
    draws: Sequence[Draw],
    *,
    metric: str | None = None,
    on: str | None = None,
    bootstrap: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
    baseline: str | None = None,
    robustness: Sequence[int] | None = None,
) -> Comparison:
    """Do what `compare` does, for results that were read (`entries.draws_of`)."""
    metric, place = _ranked_by(draws, metric, on)
    rankings = [
        rank_entries(draw, metric, place, replicates=bootstrap, seed=seed, level=level) for draw in draws
    ]
    name = plain_name(draws[0].benchmark)
    over = compare_draws(draws, metric, place) if len(draws) > 1 else None
    whole = draws if over is None else []
    if robustness is None and "robust" in layout_of(name):
        models = {entry.model for entry in draws[0].entries}
        robustness = DEFAULT if len(models) > 1 and over is None else ()
    tables = [table for draw in whole if robustness for table in robustness_tables(draw, robustness)]
    return Comparison(
        name,
        metric,
        place.name,
        tuple(rankings),
        over,
        tuple(found for draw in draws for found in compare_with_paper(draw, metric, place)),
        tuple(
            found
            for ranking in rankings[: len(whole)]
            if baseline is not None or has_improvements(ranking)
            for found in improvements(ranking, baseline or BASELINE, level=level)
        ),
        tuple(row for draw in whole for row in against_full_spectrum(draw)),
        tuple(tables),
        tuple(_sweeps(draws)),
        tuple(dict.fromkeys(_notes(draws, tables, over))),
    )


def _sweeps(draws: Sequence[Draw]) -> list[Table]:
    held = [source.tables for draw in draws for source in draw.sources]
    return summary(held, {entry.detector for draw in draws for entry in draw.entries})


def _ranked_by(draws: Sequence[Draw], metric: str | None, on: str | None) -> tuple[str, Place]:
    """Return the metric and the place to rank by, those of the paper where they are not given."""
    primary = layout_of(plain_name(draws[0].benchmark))["primary"]
    sets = Sets.of(draws[0].first)
    if on is not None:
        return metric or primary["metric"], place_of(on, sets)
    held = {place.name: place for place in places(sets)}
    for name in (*primary["on"], "pooled"):
        if name in held:
            return metric or primary["metric"], held[name]
    return metric or ON_ID, held["id"]


def _notes(draws: Sequence[Draw], tables: Sequence[Table], over: DrawComparison | None) -> list[str]:
    notes = [note for draw in draws for note in draw.notes]
    if tables:
        notes += notes_of(draws[0])
    if over is not None:
        notes.append(
            "Draws hold different images: no significance across them, only agreement of their orders."
        )
    return notes
