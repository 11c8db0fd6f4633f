"""Work on several threads: NumPy's loops run on one core each and release the interpreter's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Job = TypeVar("Job")
Result = TypeVar("Result")


def thread_count() -> int:
    """Return how many threads to use: ``OMP_NUM_THREADS``, or the number of cores of this process."""
    setting = os.environ.get("OMP_NUM_THREADS", "")
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(function: Callable[[Job], Result], jobs: Iterable[Job], threads: int) -> list[Result]:
    """Return the result of each job, in order; results do not depend on the number of threads.

    A matrix product runs on the thread that calls it: threads of BLAS would compete with these, and would
    split a product differently on other machines.

    Raises
    ------
    Exception : the error of the first job that fails; later jobs may not be started.
    """
    jobs = list(jobs)
    threads = min(threads, len(jobs))
    with _libraries().limit(limits=1, user_api="blas"):
        if threads < 2 or getattr(_worker, "active", False):  # a job may itself map other jobs
            return [function(job) for job in jobs]
        return list(_pool(threads, os.getpid()).map(function, jobs))


_worker = threading.local()


def _mark_worker() -> None:
    _worker.active = True


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Return the threads of a process; a forked process needs its own."""
    return ThreadPoolExecutor(threads, "harness", initializer=_mark_worker)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
