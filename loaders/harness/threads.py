"""Chunks on several threads: NumPy's loops run on one core each, and let others run beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Job = TypeVar("Job")
Result = TypeVar("Result")


def available() -> int:
    """Return how many threads to use: ``OMP_NUM_THREADS``, as of every library, or the process's cores."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(function: Callable[[Job], Result], jobs: Iterable[Job], threads: int) -> list[Result]:
    """Return what ``function`` makes of each job, in their order, whatever the number of threads.

    A product of matrices runs on the thread that asks for it alone: BLAS's own threads would wait for each
    other beside ours, and would share the work of a product out in other ways on other machines.

    Raises
    ------
    Exception : what ``function`` raises for the first job that it raises for; later ones may not be begun.
    """
    held = list(jobs)
    several = min(threads, len(held))
    with _libraries().limit(limits=1, user_api="blas"):
        if several < 2:
            return [function(job) for job in held]
        return _in_threads(function, held, several)


def _in_threads(function: Callable[[Job], Result], held: list[Job], threads: int) -> list[Result]:
    with ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(function, held))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
