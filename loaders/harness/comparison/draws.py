"""Agreement of orderings: ranks over resampled draws (``NAME@seed=N``) and Kendall's tau."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import kendall_tau, mean_ranks, spread

from ..evaluation.tables import layout_of, published_rows
from .entries import Draw, without_seed
from .ranking import higher_is_better
from .scopes import Scope

Label = tuple[str, str]


@dataclass(frozen=True)
class OverDraws:
    """One entry over the draws: mean and spread of its values (of each draw the mean over runs) and ranks."""

    model: str
    detector: str
    mean: float
    sd: float
    mean_rank: float
    best_rank: float
    worst_rank: float


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
    entries : best mean rank first. agreements : of every two draws. left_out : entries not in every draw.
    """

    metric: str
    on: str
    draws: tuple[str, ...]
    entries: tuple[OverDraws, ...]
    agreements: tuple[Agreement, ...]
    left_out: tuple[str, ...]


def compare_draws(draws: Sequence[Draw], metric: str, scope: Scope) -> DrawComparison:
    """Rank the entries in each draw and compare the orderings.

    Raises
    ------
    DataError : fewer than two entries are in every draw.
    """
    values = [_means(draw, metric, scope) for draw in draws]
    common = [label for label in values[0] if all(label in of_draw for of_draw in values)]
    if len(common) < 2:
        names = ", ".join(draw.benchmark for draw in draws)
        hint = "an ordering needs two; evaluate the same detectors on models of the same name"
        raise DataError(f"{len(common)} entries are in every draw", where=names, hint=hint)
    sign = 1 if higher_is_better(metric, draws[0]) else -1
    table = sign * np.array([[of_draw[label] for label in common] for of_draw in values])
    ranks = np.stack([mean_ranks(-row) for row in table])
    entries = []
    for n in np.argsort(ranks.mean(axis=0), kind="stable"):
        mean, sd, _ = spread(sign * table[:, n])
        entry_ranks = ranks[:, n]
        model, detector = common[n]
        best, worst = float(entry_ranks.min()), float(entry_ranks.max())
        entries.append(OverDraws(model, detector, mean, sd, float(entry_ranks.mean()), best, worst))
    agreements = [
        Agreement(draws[a].benchmark, draws[b].benchmark, len(common), kendall_tau(table[a], table[b]))
        for a, b in combinations(range(len(draws)), 2)
    ]
    labels = dict.fromkeys(label for of_draw in values for label in of_draw)
    left_out = tuple(" ".join(label) for label in labels if label not in common)
    benchmarks = tuple(draw.benchmark for draw in draws)
    return DrawComparison(metric, scope.name, benchmarks, tuple(entries), tuple(agreements), left_out)


def compare_with_paper(draw: Draw, metric: str, scope: Scope) -> Iterator[Agreement]:
    """Yield, for each model, tau of its detectors' order with the paper's, where it has two or more of them.

    Pooled values count only where every set was pooled, as in the tables (`evaluation.tables`).
    """
    layout = layout_of(without_seed(draw.benchmark))
    key = f"{scope.group}/{metric}"
    values = _means(draw, metric, scope)
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


def _means(draw: Draw, metric: str, scope: Scope) -> dict[Label, float]:
    means = {}
    for entry in draw.entries:
        values = entry.values(metric, scope.group, scope.role)
        if values and not np.isnan(values).any():
            means[entry.label] = float(np.mean(values))
    return means
