"""The table of training costs, estimated from the first steps of the first run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from wordnet_splits.base.tabular import terminal_width, text_table

MIN_ANNOUNCED_SECONDS = 60.0
"""Least expected seconds of training that are announced."""
MAX_ROWS = 20
"""Largest number of runs in the table; the sum below it is of all."""
USUAL_WIDTH = 80
"""Width of the table, in letters, where stdout is not a terminal."""


class Cost(NamedTuple):
    """The cost of a method: seconds per epoch, and images forward and backward for each ID image."""

    seconds: float
    forward: float
    backward: float


def cost_table(cost: Cost, epochs: Sequence[tuple[str, int]], images: int, size: int, out: Path) -> list[str]:
    """Return the lines of the table, empty if all runs together take less than `MIN_ANNOUNCED_SECONDS`.

    Parameters
    ----------
    epochs : name of each run and the number of epochs that it still has to train. images : number of ID
        images. size : bytes of a model. out : folder of the models.
    """
    total = sum(number for _, number in epochs) * cost.seconds
    if total < MIN_ANNOUNCED_SECONDS:
        return []
    counts = f"{images:,}", f"{cost.forward:.3g}", f"{cost.backward:.3g}"
    rows = [(run, f"{number:,}", *counts, _hours(number * cost.seconds)) for run, number in epochs]
    columns = ("run", "epochs", "ID images", "forward", "backward", "hours")
    lines, _ = text_table(columns, rows[:MAX_ROWS], right=columns[1:], width=terminal_width() or USUAL_WIDTH)
    if len(rows) > MAX_ROWS:
        lines.append(f"and {len(rows) - MAX_ROWS:,} more runs")
    return [
        *lines,
        f"together {_hours(total)} hours, {len(rows) * size / 1e6:,.1f} MB in {out}",
        "forward, backward: images per ID image; plain cross-entropy has 1 and 1",
    ]


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
