"""Agreement of orderings over draws (``NAME@seed=N``), improvements over a baseline, full-spectrum values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import kendall_tau, spread

from ..data.arrays import Array
from ..detectors.parsing import registered_label
from ..results.metric_rows import FULL_SPECTRUM, MEAN, UNKNOWN_ROLES
from ..results.tables import layout_of, published_rows
from .entries import BenchmarkResults, without_seed
from .ranking import Ranked, Ranking, Scope, higher_is_better, interval_over

Label = tuple[str, str]


@dataclass(frozen=True)
class OverDraws:
    """An entry over draws or other blocks: mean and spread of its values (means over runs), and its ranks."""

    model: str
    detector: str
    mean: float
    sd: float
    mean_rank: float
    best_rank: float
    worst_rank: float

    @property
    def name(self) -> str:
        """Model and detector, as in pairs."""
        return f"{self.model} {self.detector}"


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau of the orderings of the same n entries by two draws, or by a draw and a paper."""

    a: str
    b: str
    n: int
    tau: float


@dataclass(frozen=True)
class DrawComparison:
    """The entries of all draws, and how far the draws agree on their order.

    Attributes
    ----------
    entries : best mean rank first.
    agreements : of every two draws.
    left_out : entries not in every draw.
    """

    metric: str
    on: str
    draws: tuple[str, ...]
    entries: tuple[OverDraws, ...]
    agreements: tuple[Agreement, ...]
    left_out: tuple[str, ...]


def compare_draws(draws: Sequence[BenchmarkResults], metric: str, scope: Scope) -> DrawComparison:
    """Rank the entries in each draw and compare the orderings of the entries that all draws share."""
    values = [entry_means(draw, metric, scope) for draw in draws]
    common, left_out = shared_entries(values)
    if len(common) < 2:
        names = ", ".join(draw.benchmark for draw in draws)
        hint = "evaluate the same detectors on models of the same name"
        raise DataError(f"draws must share at least two entries, got {len(common)}", where=names, hint=hint)
    sign = 1 if higher_is_better(metric, draws[0]) else -1
    table = sign * np.array([[of_draw[label] for label in common] for of_draw in values])
    entries = entries_over(common, sign * table, rankdata(-table, axis=1))
    agreements = [
        Agreement(draws[a].benchmark, draws[b].benchmark, len(common), kendall_tau(table[a], table[b]))
        for a, b in combinations(range(len(draws)), 2)
    ]
    benchmarks = tuple(draw.benchmark for draw in draws)
    return DrawComparison(metric, scope.name, benchmarks, tuple(entries), tuple(agreements), left_out)


def shared_entries(values: Sequence[Mapping[Label, float]]) -> tuple[list[Label], tuple[str, ...]]:
    """Return the entries that all draws or benchmarks have a value of, and the names of the others."""
    common = [label for label in values[0] if all(label in of_draw for of_draw in values)]
    labels = dict.fromkeys(label for of_draw in values for label in of_draw)
    return common, tuple(" ".join(label) for label in labels if label not in common)


def entries_over(labels: Sequence[Label], values: Array, ranks: Array) -> list[OverDraws]:
    """Return entries by mean rank, given values and ranks (blocks, entries)."""
    entries = []
    for n in np.argsort(ranks.mean(axis=0), kind="stable"):
        (model, detector), (mean, sd, _) = labels[n], spread(values[:, n])
        best, worst = float(ranks[:, n].min()), float(ranks[:, n].max())
        entries.append(OverDraws(model, detector, mean, sd, float(ranks[:, n].mean()), best, worst))
    return entries


def compare_with_paper(draw: BenchmarkResults, metric: str, scope: Scope) -> Iterator[Agreement]:
    """Yield, for each model with two or more of the paper's detectors, tau between its order and the paper's.

    Pooled values count only if every set was pooled, as in the tables (`results.tables`).
    """
    layout = layout_of(without_seed(draw.benchmark))
    key = f"{scope.group}/{metric}"
    values = entry_means(draw, metric, scope)
    for model in dict.fromkeys(model for model, _ in values):
        measured: dict[str, float] = {}
        published: dict[str, float] = {}
        for (entry_model, detector), value in values.items():
            for paper, cells in published_rows(draw.first, layout, detector):
                if entry_model == model and key in cells:
                    measured.setdefault(paper["name"], value)
                    published[paper["name"]] = float(cells[key].partition("±")[0])
        if len(measured) > 1:
            tau = kendall_tau(list(measured.values()), [published[name] for name in measured])
            title = layout["title"].partition(":")[0]
            yield Agreement(f"{draw.benchmark} {model}".strip(), title, len(measured), tau)


def entry_means(draw: BenchmarkResults, metric: str, scope: Scope) -> dict[Label, float]:
    """Return (model, detector) -> mean of a metric over runs; entries without a value are left out."""
    means = {}
    for entry in draw.entries:
        values = entry.values(metric, scope.group, scope.role)
        if values and not np.isnan(values).any():
            means[entry.label] = float(np.mean(values))
    return means


BASELINE = "mcp"


@dataclass(frozen=True)
class Improvement:
    """Kim's figure 5, in percent: 100 (AURC of MCP - AURC)/AURC of MCP (our reading), with its interval.

    Attributes
    ----------
    baseline : model and detector that it is measured from, one for all models.
    """

    model: str
    detector: str
    baseline: str
    percent: float
    lo: float | None
    hi: float | None


def improvements(ranking: Ranking, baseline: str = BASELINE, *, level: float = 0.95) -> list[Improvement]:
    """Return how much each entry improves on the baseline, in the ranking's order; positive is better.

    Parameters
    ----------
    baseline : a detector, or a model and a detector with a space between: the first such entry.
    """
    index = next((n for n, entry in enumerate(ranking.entries) if _is_baseline(entry, baseline)), None)
    if index is None:
        names = ", ".join(f"{entry.model} {entry.detector}".strip() for entry in ranking.entries)
        raise DataError(f"no baseline {baseline}", where=ranking.benchmark, hint=f"there are {names}")
    base = ranking.entries[index].mean
    if base == 0:
        raise DataError(f"cannot measure improvement: the {ranking.metric} of {baseline} is 0")
    factor = 100 if ranking.higher_is_better else -100
    over = f"{ranking.entries[index].model} {ranking.entries[index].detector}".strip()
    rows = []
    for n, entry in enumerate(ranking.entries):
        percent = factor * (entry.mean - base) / base
        lo = hi = None
        if ranking.replicates is not None:
            values, base_values = ranking.replicates[n], ranking.replicates[index]
            percents = factor * (values - base_values) / np.where(base_values == 0, np.nan, base_values)
            lo, hi = interval_over(percent, percents, ranking.design, level=level)
        rows.append(Improvement(entry.model, entry.detector, over, percent, lo, hi))
    return rows


def has_improvements(ranking: Ranking) -> bool:
    """Return whether the ranking is by Kim's pooled AURC and has an MCP that can be improved on."""
    of_mcp = [entry.mean for entry in ranking.entries if _is_baseline(entry, BASELINE)]
    return ranking.metric.startswith("aurc_unknown") and bool(of_mcp) and of_mcp[0] > 0


def _is_baseline(entry: Ranked, baseline: str) -> bool:
    model, _, detector = baseline.rpartition(" ")
    if model and entry.model != model:
        return False
    return registered_label(entry.detector) == registered_label(detector)


@dataclass(frozen=True)
class SpectrumRow:
    """A metric's mean over near or far sets, standard and with the ``shifted`` sets counted as ID."""

    model: str
    detector: str
    role: str
    metric: str
    standard: float
    full_spectrum: float
    lost: float
    shifted: tuple[str, ...]


def against_full_spectrum(draw: BenchmarkResults, metrics: Sequence[str] = ("auroc",)) -> list[SpectrumRow]:
    """Return both values of each entry; empty if the benchmark lacks covariate-shifted ID.

    Raises
    ------
    DataError : the runs of an entry have different covariate-shifted sets.
    """
    rows = []
    for entry in draw.entries:
        shifted = {held.results.shifted_sets for held, _ in entry.runs}
        if len(shifted) > 1:
            raise DataError(
                "cannot average full-spectrum values: the runs have different covariate-shifted sets",
                where=" ".join(entry.label),
                hint="evaluate every run on the same sets",
            )
        for role in UNKNOWN_ROLES:
            for metric in metrics:
                standard = entry.values(metric, MEAN, role)
                full = entry.values(metric + FULL_SPECTRUM, MEAN, role)
                if standard and full:
                    means = float(np.mean(standard)), float(np.mean(full))
                    lost = (means[0] - means[1]) * (1 if higher_is_better(metric, draw) else -1)
                    rows.append(SpectrumRow(*entry.label, role, metric, *means, lost, *shifted))
    return rows
