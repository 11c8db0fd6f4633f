"""What every benchmark reports: one row per figure, ours beside a peer's, measured in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One line of ``make bench``."""

    name: str
    ours: str
    peer: str
    ratio: float | None  # peer's time over ours (or our rate over the peer's): above 1 we are faster
    target: str
    ok: bool | None  # None where it was not measured


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Return the least wall time of ``repeats`` calls, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
