"""Shares of "A is better than B" that hold at each level, from the committed results.

``PYTHONPATH=.. python -m generating.conclusions`` in ``docs`` prints the page's rows and draws its picture.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from loaders.harness import compare
from loaders.harness.comparison import compare_across
from wordnet_splits.base.plotting import Plot, save_plot
from wordnet_splits.base.shapes import Bar, Bars
from wordnet_splits.benchmark.clusters import Level

DOCS = Path(__file__).resolve().parents[1]
RESULTS, OUT = DOCS.parent / "manifests" / "results", DOCS / "study" / "conclusions.svg"
SCORED = {
    "unknown-cifar-tinyval-all": "near",
    "unknown-cifar-tinyval-kim": "near",
    "unknown-cifar-tinyval-kim-methods": "near",
    "unknown-cifar-tinyval-dropout": "near",
    "unknown-cifar-tinyval-resnet20-short": "near",
    "openood-cifar100-drawn": "near",
    "rungs-cifar100-all": "near",
}
"""Committed entry with scores -> its sets, whose mean AUROC ranks the detectors."""
UNSCORED = {
    "unknown-cifar-tinyval-methods": ("near", ("", "-outputs", "-knn")),
    "openood-cifar100-drawn-methods": ("near", ("", "-outputs", "-knn")),
    "optimizers-mnist-small": ("far", ("",)),
    "optimizers-fashion-small": ("far", ("",)),
}
"""Committed entries without all scores: sets, and endings of the names of their folders."""
LEVELS: tuple[Level, ...] = ("images", "classes", "subtrees")
REPLICATES, ALPHA = 1000, 0.05


class Shares(NamedTuple):
    """Number of pairs of detectors that differ, of those told apart alone and corrected, and of best ones."""

    pairs: int
    alone: int
    corrected: int
    best: int

    @property
    def cells(self) -> tuple[str, str]:
        """Both shares in percent, as printed."""
        return f"{100 * self.alone / self.pairs:.0f}", f"{100 * self.corrected / self.pairs:.0f}"


@cache
def shares(folder: Path, on: str, over: Level) -> Shares:
    """Return the shares of an entry with scores, by a paired bootstrap and max-T."""
    (ranking,) = compare(folder, metric="auroc", on=on, over=over, bootstrap=REPLICATES).rankings
    pairs = [pair for pair in ranking.pairs if pair.better]
    return Shares(
        len(pairs),
        sum(pair.p <= ALPHA for pair in pairs),
        sum(pair.p_adjusted <= ALPHA for pair in pairs),
        sum(entry.rank_lo == 1 for entry in ranking.entries),
    )


def rank_shares(folders: Sequence[Path], on: str, over: Level) -> tuple[str, str, str]:
    """Return the number of blocks, and the shares of Conover's and Nemenyi's test, from AUROCs by class."""
    if "optimizers" in folders[0].name and over == "subtrees":
        return "-", "-", "-"  # `NAME@local` is not frozen, so that its classes have no place in WordNet here
    found = compare_across(folders, on=on, over=over)
    both = zip(
        *((pair.p_conover_holm <= ALPHA, pair.p_nemenyi <= ALPHA) for pair in found.pairs), strict=True
    )
    conover, nemenyi = (f"{100 * sum(told) / len(found.pairs):.0f}" for told in both)
    return str(len(found.blocks)), conover, nemenyi


def rows(results: Path = RESULTS) -> Iterator[str]:
    """Yield the rows of the page: the entries with scores, then rank tests of those without."""
    for name, on in SCORED.items():
        of_levels = [shares(results / name, on, over) for over in LEVELS]
        cells = [cell for each in of_levels for cell in (*each.cells, str(each.best))]
        yield f"| {' | '.join((name, str(of_levels[0].pairs), *cells))} |"
    for name, (on, endings) in UNSCORED.items():
        folders = [results / f"{name}{ending}" for ending in endings]
        cells = [cell for over in LEVELS[1:] for cell in rank_shares(folders, on, over)]
        yield f"| {' | '.join((name, *cells))} |"


def picture(results: Path) -> Plot:
    """Return the corrected shares of each entry with at least ten pairs, a bar for each level."""
    bars = [
        Bar(f"{name} ({counts.pairs} pairs)", 100 * counts.corrected / counts.pairs, series=over)
        for name, on in SCORED.items()
        for over in LEVELS
        for counts in [shares(results / name, on, over)]
        if counts.pairs >= 10
    ]
    label = "pairs told apart, corrected for all, in %"
    return Plot("Over what is one detector better than another?", (Bars("", label, tuple(bars)),))


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows()) + "\n")
    save_plot(picture(RESULTS), OUT, salt="conclusions")
