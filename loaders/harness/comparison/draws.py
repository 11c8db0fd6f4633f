"""Does an ordering survive another draw? Ranks over resampled draws (``NAME@seed=N``), and Kendall's tau."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import kendall_tau, mean_ranks, spread

from ..evaluation.tables import layout_of, published_rows
from .entries import Draw, plain_name
from .ranking import direction
from .scopes import Place

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
    """The entries that every draw has, and how far the draws agree on their order.

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


def compare_draws(draws: Sequence[Draw], metric: str, place: Place) -> DrawComparison:
    """Rank the entries in each draw and compare the orderings.

    Raises
    ------
    DataError : fewer than two entries are in every draw.
    """
    values = [_means(draw, metric, place) for draw in draws]
    common = [label for label in values[0] if all(label in other for other in values)]
    if len(common) < 2:
        names = ", ".join(draw.benchmark for draw in draws)
        hint = "an ordering needs two; evaluate the same detectors on models of the same name"
        raise DataError(f"{len(common)} entries are in every draw", where=names, hint=hint)
    sign = 1 if direction(metric) else -1
    table = sign * np.array([[of[label] for label in common] for of in values])
    ranks = np.stack([mean_ranks(-row) for row in table])
    rows = []
    for n in np.argsort(ranks.mean(axis=0), kind="stable"):
        found = spread(sign * table[:, n])
        of_it = ranks[:, n]
        rows.append(
            OverDraws(
                common[n][0],
                common[n][1],
                found.mean,
                found.sd,
                float(of_it.mean()),
                float(of_it.min()),
                float(of_it.max()),
            )
        )
    pairs = [
        Agreement(draws[a].benchmark, draws[b].benchmark, len(common), kendall_tau(table[a], table[b]))
        for a, b in combinations(range(len(draws)), 2)
    ]
    left_out = dict.fromkeys(" ".join(label) for of in values for label in of if label not in common)
    return DrawComparison(
        metric, place.name, tuple(d.benchmark for d in draws), tuple(rows), tuple(pairs), tuple(left_out)
    )


def compare_with_paper(draw: Draw, metric: str, place: Place) -> Iterator[Agreement]:
    """Yield, for each model, tau of its detectors' order with the paper's, where it has rows for two or more.

    Pooled values count only where every set was pooled, as in the tables (`evaluation.tables`).
    """
    layout = layout_of(plain_name(draw.benchmark))
    key = f"{place.group}/{metric}"
    values = _means(draw, metric, place)
    for model in dict.fromkeys(model for model, _ in values):
        ours: dict[str, float] = {}
        theirs: dict[str, float] = {}
        for (of, detector), value in values.items():
            for paper, cells in published_rows(draw.first, layout, detector):
                if of == model and key in cells:
                    ours.setdefault(paper["name"], value)
                    theirs[paper["name"]] = float(cells[key].partition("±")[0])
        if len(ours) > 1:
            tau = kendall_tau(list(ours.values()), [theirs[name] for name in ours])
            title = layout["title"].partition(":")[0]
            yield Agreement(f"{draw.benchmark} {model}".strip(), title, len(ours), tau)


def _means(draw: Draw, metric: str, place: Place) -> dict[Label, float]:
    found = {}
    for entry in draw.entries:
        values = entry.values(metric, place.group, place.role)
        if values and not np.isnan(values).any():
            found[entry.label] = float(np.mean(values))
    return found
