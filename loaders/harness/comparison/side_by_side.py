"""`compare`: rankings, significance, improvements, robustness and agreement of several results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordnet_splits.base.jsonable import to_json
from wordnet_splits.metrics.registry import CALIBRATION, GAMMAS

from ..evaluation.sweeps import sweep_summary
from ..evaluation.table import Table, TableReport
from ..evaluation.tables import ResultSets, layout_of
from .draws import Agreement, DrawComparison, compare_draws, compare_with_paper
from .entries import Draw, ResultsOrFolder, as_sequence, draws_of, without_seed
from .improvements import (
    BASELINE,
    Improvement,
    SpectrumRow,
    against_full_spectrum,
    has_improvements,
    improvements,
)
from .ranking import Ranking, rank_entries
from .robustness import DEFAULT, robustness_notes, robustness_tables
from .scopes import Scope, list_scopes, scope_named
from .tables import agreement_table, draw_tables, improvement_table, ranking_tables, spectrum_table

REPLICATES = 200
ID_METRIC = "aurc"
"""Metric of the ranking where results hold ID sets alone."""


@dataclass(frozen=True, eq=False)
class Comparison(TableReport):
    """The outcome of `compare`; printed, its tables.

    Attributes
    ----------
    rankings : of each draw of the benchmark. draws : over draws, None where there is one.
    agreements : with the paper's order, where it has rows for two of the detectors.
    robustness : Abdelzad's tables. sweeps : the values that sweeps chose.
    notes : sentences on differences between the results.
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
        """Return all parts as tables ready to print."""
        tables = [table for ranking in self.rankings for table in ranking_tables(ranking)]
        if self.draws is not None:
            tables += draw_tables(self.draws)
        if self.agreements:
            tables.append(agreement_table(self.agreements))
        if self.improvements:
            tables.append(improvement_table(self.improvements))
        if self.full_spectrum:
            tables.append(spectrum_table(self.full_spectrum))
        return [*tables, *self.robustness, *self.sweeps]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as ``compare --json`` prints it."""
        parts: dict[str, Any] = {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "on": self.on,
            "ranking": self.rows(),
            "pairs": [{"benchmark": r.benchmark, **asdict(pair)} for r in self.rankings for pair in r.pairs],
            "draws": self.draws,
            "paper": self.agreements,
            "improvement": self.improvements,
            "full_spectrum": self.full_spectrum,
            "robustness": [row for table in self.robustness for row in table.rows],
            "sweeps": [row for table in self.sweeps for row in table.rows],
            "notes": self.notes,
        }
        return {key: to_json(value) for key, value in parts.items()}


def compare(
    results: Sequence[ResultsOrFolder] | ResultsOrFolder,
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
    """Compare results on one benchmark, or on resampled draws of it.

    Parameters
    ----------
    results : `Results`, or folders of them.
    metric, on : the metric to rank by, and its set: ``pooled``, ``id``, ``near``, ``far`` (means over sets)
        or a set; by default the primary metric of the benchmark's paper. By calibration and by the gammas,
        models are ranked, without intervals.
    detectors : labels to compare, all by default.
    bootstrap, seed, level : of the paired bootstrap over images; 0 replicates for none.
    baseline : the detector, or "MODEL DETECTOR", that improvement is measured from; by default MCP, for
        Kim's pooled AURC alone.
    robustness : numbers of Abdelzad's tables (2 to 10) to rebuild over the models; by default those that
        sum up, for the benchmarks of that paper with results of several models.

    Raises
    ------
    DataError : the results are of different benchmarks, versions or images, or lack the metric.
    UnknownNameError : no such metric or set.
    """
    return compare_draws_of(
        draws_of(as_sequence(results), detectors),
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
    """Compare results as `compare` does, after they were read (`entries.draws_of`)."""
    metric, scope = _metric_and_scope(draws, metric, on)
    of_models = metric.partition("[")[0] in (*CALIBRATION, *GAMMAS)
    ranked_draws = [draw.of_models() for draw in draws] if of_models else draws
    rankings = [
        rank_entries(draw, metric, scope, replicates=bootstrap, seed=seed, level=level)
        for draw in ranked_draws
    ]
    name = without_seed(draws[0].benchmark)
    over_draws = compare_draws(ranked_draws, metric, scope) if len(draws) > 1 else None
    single = draws if over_draws is None else []
    if robustness is None and "robust" in layout_of(name):
        models = {entry.model for entry in draws[0].entries}
        robustness = DEFAULT if len(models) > 1 and over_draws is None else ()
    tables = [table for draw in single if robustness for table in robustness_tables(draw, robustness)]
    results = [evaluation.results for draw in draws for evaluation in draw.results]
    return Comparison(
        name,
        metric,
        scope.name,
        tuple(rankings),
        over_draws,
        tuple(agreement for draw in draws for agreement in compare_with_paper(draw, metric, scope)),
        tuple(
            improvement
            for ranking in rankings[: len(single)]
            if baseline is not None or has_improvements(ranking)
            for improvement in improvements(ranking, baseline or BASELINE, level=level)
        ),
        tuple(row for draw in single for row in against_full_spectrum(draw)),
        tuple(tables),
        tuple(sweep_summary(results, {entry.detector for draw in draws for entry in draw.entries})),
        tuple(dict.fromkeys(_notes(draws, tables, over_draws))),
    )


def _metric_and_scope(draws: Sequence[Draw], metric: str | None, on: str | None) -> tuple[str, Scope]:
    """Return the metric and the scope to rank by, by default those of the paper."""
    primary = layout_of(without_seed(draws[0].benchmark))["primary"]
    sets = ResultSets.of(draws[0].first)
    if on is not None:
        return metric or primary["metric"], scope_named(on, sets)
    scopes = {scope.name: scope for scope in list_scopes(sets)}
    calibration = (metric or "").partition("[")[0] in CALIBRATION
    for name in ("id",) if calibration else (*primary["on"], "pooled"):
        if name in scopes:
            return metric or primary["metric"], scopes[name]
    return metric or ID_METRIC, scopes["id"]


def _notes(draws: Sequence[Draw], tables: Sequence[Table], over_draws: DrawComparison | None) -> list[str]:
    notes = [note for draw in draws for note in draw.notes]
    if tables:
        notes += robustness_notes(draws[0])
    if over_draws is not None:
        notes.append(
            "Draws hold different images: no significance across them, only agreement of their orders."
        )
    return notes
