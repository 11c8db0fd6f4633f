"""`compare`: rankings, significance, improvements, robustness and agreement of several results, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, ClassVar

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.jsonable import to_json
from wordnet_splits.benchmark.clusters import Level
from wordnet_splits.metrics.registry import CALIBRATION, GAMMAS
from wordnet_splits.metrics.robustness import CV, Formula, get_formula

from ..results.metadata import check_level
from ..results.metric_rows import key_of_label
from ..results.sentences import sweep_summary
from ..results.table import Table, TableReport, interval_text, number_text, table_of_records
from ..results.tables import ResultSets, layout_of
from .draws import (
    BASELINE,
    Agreement,
    DrawComparison,
    Improvement,
    SpectrumRow,
    against_full_spectrum,
    compare_draws,
    compare_with_paper,
    has_improvements,
    improvements,
)
from .entries import BenchmarkResults, ResultsOrFolder, as_sequence, draws_of, without_seed
from .flattery import ChoiceFlattery, draw_flattery, flattery_table
from .ranking import Ranking, Scope, list_scopes, rank_entries, scope_named
from .ranking_tables import agreement_table, draw_tables, interval_notes, ranking_tables
from .robustness import DEFAULT, robustness_notes, robustness_tables

REPLICATES = 1000
ID_METRIC = "aurc"
"""Metric of the ranking if the results have only ID sets."""


@dataclass(frozen=True, eq=False)
class Comparison(TableReport):
    """The outcome of `compare`; printed, its tables.

    Attributes
    ----------
    rankings : ranking on each draw of the benchmark.
    draws : comparison over draws, None for a single draw.
    agreements : agreement with the paper's order, if the paper has rows for two of the detectors.
    robustness : Abdelzad's tables.
    sweeps : the values that sweeps chose.
    notes : sentences on differences between the results.
    flattery : how much the choice of a detector's parameters on the test classes flatters, if asked.
    over, cut : what intervals, ranks and p are over.
    """

    last_columns: ClassVar = ("benchmark", "metric", "on", "over")

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
    flattery: tuple[ChoiceFlattery, ...] = ()
    over: Level = "images"
    cut: int | None = None

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the entries of every ranking, best first."""
        return [
            {"benchmark": ranking.benchmark, "metric": self.metric, "on": self.on, "over": self.over}
            | asdict(entry)
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
            columns: dict[str, Any] = {
                "model": lambda row: row.model,
                "detector": lambda row: row.detector,
                "over": lambda row: row.baseline,
                "improvement": lambda row: number_text(row.percent),
                "interval": lambda row: interval_text(row.lo, row.hi),
            }
            title = "Improvement in % over one baseline for all models (Kim's figure 5): positive is better"
            notes = [f"Intervals over {self.over}."] if self.improvements[0].lo is not None else []
            tables.append(table_of_records(title, self.improvements, columns, notes))
        if self.full_spectrum:
            columns = {
                "model": lambda row: row.model,
                "detector": lambda row: row.detector,
                "mean of": lambda row: f"{row.role} {row.metric}",
                "standard": lambda row: number_text(row.standard, 100),
                "full": lambda row: number_text(row.full_spectrum, 100),
                "lost": lambda row: number_text(row.lost, 100),
            }
            for shifted in dict.fromkeys(row.shifted for row in self.full_spectrum):
                title = f"Standard and full-spectrum ({', '.join(shifted)} count as ID), in %"
                rows = [row for row in self.full_spectrum if row.shifted == shifted]
                tables.append(table_of_records(title, rows, columns))
        tables += [flattery_table(self.flattery, self.cut)] if self.flattery else []
        return [*tables, *self.robustness, *self.sweeps]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as ``compare --json`` prints it."""
        parts: dict[str, Any] = {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "on": self.on,
            "over": self.over,
            "cut": self.cut,
            "ranking": self.rows(),
            "pairs": [{"benchmark": r.benchmark, **asdict(pair)} for r in self.rankings for pair in r.pairs],
            "draws": self.draws,
            "paper": self.agreements,
            "improvement": self.improvements,
            "full_spectrum": self.full_spectrum,
            "robustness": [row for table in self.robustness for row in table.rows],
            "sweeps": [row for table in self.sweeps for row in table.rows],
            "notes": [*self.notes, *dict.fromkeys(chain(*map(interval_notes, self.rankings)))],
            **({"flattery": self.flattery} if self.flattery else {}),
        }
        return {key: to_json(value) for key, value in parts.items()}


@dataclass(frozen=True)
class ComparisonOptions:
    """Options of `compare`.

    Attributes
    ----------
    metric, on : the metric to rank by, and its set: ``pooled``, ``id``, ``near``, ``far`` (means over sets)
        or a set; by default the primary metric of the benchmark's paper. By calibration and by the gammas,
        models are ranked, without intervals.
    over, cut : what intervals, ranks and p are over: ``images``, ``classes`` or ``subtrees`` of the OOD sets;
        ``cut`` edges from a set's least common subsumer to its subtrees (`subtree_roots`). Entries without
        scores can only be compared without a bootstrap.
    bootstrap, seed, level : of the paired bootstrap over these; 0 replicates for none.
    baseline : the detector, or "MODEL DETECTOR", that improvement is measured from; by default the
        best MCP of all models, for Kim's pooled AURC alone.
    robustness : numbers of Abdelzad's tables (2 to 10) to rebuild over the models; by default those that
        sum up, for the benchmarks of that paper with results of several models.
    formula : of the scores in these tables: a function (mean, variance, higher_is_better) -> score, ``cv``
        (eq. 8), ``shortfall``, or ``MODULE:NAME``; lower is more robust.
    flattery : detector of several values, or ``all``: see `flattery.draw_flattery`; ``over`` classes, they
        are held out, else subtrees.
    """

    metric: str | None = None
    on: str | None = None
    over: str = "images"
    cut: int | None = None
    bootstrap: int = REPLICATES
    seed: int = 0
    level: float = 0.95
    baseline: str | None = None
    robustness: Sequence[int] | None = None
    formula: Formula | str = CV
    flattery: str | None = None


def compare(
    results: Sequence[ResultsOrFolder] | ResultsOrFolder,
    *,
    detectors: str | Sequence[str] | None = None,
    **options: Any,
) -> Comparison:
    """Compare results on one benchmark, or on its resampled draws.

    Parameters
    ----------
    results : `Results`, or their folders.
    detectors : labels to compare, also as ``"msp,knn[k=10]"``; all by default.
    options : see `ComparisonOptions`.

    Raises
    ------
    DataError : the results are of different benchmarks, versions or images, or lack the metric.
    UnknownNameError : no such metric or set.
    """
    return compare_draws_of(draws_of(as_sequence(results), detectors), ComparisonOptions(**options))


def compare_draws_of(draws: Sequence[BenchmarkResults], options: ComparisonOptions) -> Comparison:
    """Compare results as `compare` does, after they were read (`entries.draws_of`)."""
    get_formula(options.formula)  # refuses an unknown name, whatever the models
    over = check_level(options.over, options.cut, options.bootstrap)
    if options.bootstrap == 1:
        raise DataError("p needs at least 2 bootstrap replicates, got 1", where="--bootstrap")
    draws = [draw.over(over, options.cut) for draw in draws]
    metric, scope = _metric_and_scope(draws, options.metric, options.on)
    replicates, seed, level = options.bootstrap, options.seed, options.level
    baseline, robustness = options.baseline, options.robustness
    of_models = metric.partition("[")[0] in (*CALIBRATION, *GAMMAS)
    ranked_draws = [draw.of_models() for draw in draws] if of_models else draws
    rankings = [
        rank_entries(draw, metric, scope, replicates=replicates, seed=seed, level=level)
        for draw in ranked_draws
    ]
    name = without_seed(draws[0].benchmark)
    over_draws = compare_draws(ranked_draws, metric, scope) if len(draws) > 1 else None
    single = draws if over_draws is None else []
    if robustness is None and "robust" in layout_of(name):
        models = {entry.model for entry in draws[0].entries}
        robustness = DEFAULT if len(models) > 1 and over_draws is None else ()
    formula, of_draws = options.formula, single if robustness else []
    tables = [table for draw in of_draws for table in robustness_tables(draw, robustness or (), formula)]
    if formula != CV and not tables:
        hint = "give --robustness and results of several models"
        raise DataError("a formula only applies to robustness tables", where="--formula", hint=hint)
    results = [evaluation.results for draw in draws for evaluation in draw.results]
    held_out = "subtrees" if over == "images" else over
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
        tuple(
            row
            for draw in (() if options.flattery is None else draws)
            for row in draw_flattery(draw, options.flattery or "", scope, held_out, options.cut)
        ),
        over,
        options.cut,
    )


def _metric_and_scope(
    draws: Sequence[BenchmarkResults], metric: str | None, on: str | None
) -> tuple[str, Scope]:
    """Return the metric and the scope to rank by; the paper's are the default."""
    primary = layout_of(without_seed(draws[0].benchmark))["primary"]
    sets = ResultSets.from_results(draws[0].first)
    metric = None if metric is None else key_of_label(metric)
    if on is not None:
        return metric or primary["metric"], scope_named(on, sets)
    scopes = {scope.name: scope for scope in list_scopes(sets)}
    calibration = (metric or "").partition("[")[0] in CALIBRATION
    for name in ("id",) if calibration else (*primary["on"], "pooled"):
        if name in scopes:
            return metric or primary["metric"], scopes[name]
    return metric or ID_METRIC, scopes["id"]


def _notes(
    draws: Sequence[BenchmarkResults], tables: Sequence[Table], over_draws: DrawComparison | None
) -> list[str]:
    notes = [note for draw in draws for note in draw.notes]
    if tables:
        notes += robustness_notes(draws[0])
    if over_draws is not None:
        notes.append(
            "Draws hold different images: no significance across them, only agreement of their orders."
        )
    return notes
