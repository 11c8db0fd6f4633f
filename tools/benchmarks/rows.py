"""The rows of a benchmark: our number and a peer's, measured in the same run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Row(NamedTuple):
    """One line of ``make bench``."""

    name: str
    ours: str
    peer: str
    ratio: float | None  # the peer's time over ours (or our rate over the peer's): above 1 we are faster
    target: str
    ok: bool | None  # whether the target is met; None if not measured


REST = 0.02
"""Seconds of rest before each measurement: idle threads of OpenMP and OpenBLAS keep a core busy for some
milliseconds after their last work."""
CLEAR_RATIO = 5.0
"""Ratio above which one measurement suffices: noise cannot reverse it."""


class Pair(NamedTuple):
    """Seconds of two computations whose runs alternate, so that load on the machine slows both equally."""

    ours: float
    peer: float
    ratio: float


def compare(
    ours: Callable[[], object], peer: Callable[[], object], rounds: int, *, max_seconds: float = 20.0
) -> Pair:
    """Return the least seconds of each, and the median ratio, of up to ``rounds`` rounds.

    There is only one round if its ratio is above `CLEAR_RATIO`, or once the rounds took ``max_seconds``.
    """
    times = [(fastest(ours, 1), fastest(peer, 1))]
    if times[0][1] / times[0][0] > CLEAR_RATIO:
        rounds = 1
    while len(times) < rounds and sum(map(sum, times)) < max_seconds:
        times.append((fastest(ours, 1), fastest(peer, 1)))
    least, least_peer = (min(column) for column in zip(*times, strict=True))
    return Pair(least, least_peer, median(peer_time / time for time, peer_time in times))


@contextmanager
def real_data() -> Iterator[Path]:
    """Yield the folder of the real datasets, unpacked if need be; ImportError if they are not available."""
    if folder := os.environ.get("WORDNET_SPLITS_TEST_DATA"):
        yield Path(folder)
        return
    shared = Path(os.environ.get("WORDNET_SPLITS_SHARED", Path(__file__).resolve().parents[3] / "shared"))
    unpack = shared / "data" / "unpack"
    if not unpack.is_file():
        raise ImportError(f"real datasets are not at {unpack.parent} (set WORDNET_SPLITS_TEST_DATA)")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(unpack), folder], check=True, stdout=subprocess.DEVNULL)
        yield Path(folder)


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest wall time of ``repeats`` calls, in seconds."""
    times = []
    for _ in range(repeats):
        time.sleep(REST)
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of a call, all threads of this process together, in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start
