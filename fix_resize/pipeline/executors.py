"""Who runs shards: this process, processes on this machine, or a Dask cluster.

All run the same function on the same jobs and yield outcomes as they come; the result does not depend on
which. A process that dies takes its shards with it, and they are done again.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final
from urllib.parse import urlsplit

from fix_resize.pipeline.shards import Job, Outcome, run_shard
from wordnet_splits.errors import SplitsError

AHEAD: Final = 1
"""Shards that wait beside those that run, so that no worker waits and memory stays flat."""

MOST_DEATHS: Final = 3
"""Times that a process may die over a shard: an image that kills it would kill it for ever."""

CONNECT_SECONDS: Final = 10
WORKER_SECONDS: Final = 60
"""How long a scheduler, and its first worker, are waited for."""


Done = Generator[tuple[Job, Outcome], None, None]


def here(jobs: Iterable[Job]) -> Done:
    """Run shards one after the other in this process."""
    for job in jobs:
        yield job, run_shard(job)


def in_processes(jobs: Iterable[Job], workers: int) -> Done:
    """Run shards in new processes on this machine.

    Raises
    ------
    SplitsError : processes die over the same shard again and again.
    """
    waiting = iter(jobs)
    again: list[Job] = []
    deaths: Counter[str] = Counter()
    while True:
        flight: dict[Future[Outcome], Job] = {}
        try:
            with _Pool(workers) as pool:
                while True:
                    while len(flight) < workers + AHEAD and (job := _next(again, waiting)):
                        flight[pool.submit(job)] = job
                    if not flight:
                        return
                    for future in wait(flight, return_when=FIRST_COMPLETED).done:
                        yield _settle(flight, future)
        except BrokenProcessPool as error:
            again += flight.values()
            deaths.update(job.name for job in flight.values())
            if deaths and deaths.most_common(1)[0][1] > MOST_DEATHS:
                raise SplitsError(
                    f"worker processes died {MOST_DEATHS + 1} times over shards "
                    + ", ".join(sorted(n for n, times in deaths.items() if times > MOST_DEATHS)),
                    hint="is memory short? fewer --workers, and the same command goes on from here",
                ) from error


def _next(again: list[Job], waiting: Iterator[Job]) -> Job | None:
    return again.pop(0) if again else next(waiting, None)


def _settle(flight: dict[Future[Outcome], Job], future: Future[Outcome]) -> tuple[Job, Outcome]:
    outcome = future.result()  # before it leaves the flight: a shard whose process died is done again
    return flight.pop(future), outcome


class _Pool:
    """Spawned processes that leave at once when this one dies, or is done with them."""

    def __init__(self, workers: int) -> None:
        context = get_context("spawn")
        theirs, self._ours = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_enter, initargs=(theirs,))

    def submit(self, job: Job) -> Future[Outcome]:
        return self._pool.submit(run_shard, job)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self._ours.close()  # whatever they are at, it is not to be waited for
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._ours.close()


def _enter(ours: Connection) -> None:
    """Prepare a worker: Ctrl-C is for its parent, and without the parent it has nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(ours,), daemon=True).start()


def _leave_with(ours: Connection) -> None:
    try:
        ours.recv_bytes()  # nothing is ever sent: this ends when the other end is closed
    except (EOFError, OSError):
        os._exit(1)  # in the middle of a file, if need be: unfinished ones have other names


def on_dask(jobs: Iterable[Job], address: str) -> Done:
    """Run shards on a Dask cluster whose workers see the same folders as this process.

    Parameters
    ----------
    address : of the scheduler, such as ``tcp://127.0.0.1:8786``.

    Raises
    ------
    SplitsError : dask is not installed, the scheduler cannot be reached or goes away, it has no worker, or
        workers die over the same shard again and again.
    """
    distributed = _distributed()
    jobs = iter(jobs)
    with _connected(distributed, address) as client:
        running: dict[Any, Job] = {}
        done = distributed.as_completed(loop=client.loop)

        def submit(most: int) -> None:
            for job in islice(jobs, most):
                future = client.submit(run_shard, job, pure=False)
                running[future] = job
                done.add(future)

        submit(2 * sum(client.nthreads().values()))
        for future in done:
            yield running.pop(future), _fetched(distributed, future, address)
            future.release()
            submit(1)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise SplitsError("--scheduler needs Dask", hint="pip install 'wordnet-splits[dask]'") from error
    return distributed


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:  # a time-out is an OSError
        raise _unanswered("no Dask scheduler answers", address) from error
    with _quiet("distributed.client"), client:
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except OSError as error:
            raise _unanswered("the Dask scheduler has no worker", address) from error
        yield client


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a logger from printing what is raised here as an error of ours."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _unanswered(what: str, address: str) -> SplitsError:
    hint = f"start 'dask scheduler' and 'dask worker {address}', then run this again"
    return SplitsError(what, where=address, hint=hint)


def _fetched(distributed: Any, future: Any, address: str) -> Outcome:
    try:
        outcome: Outcome = future.result()
    except distributed.scheduler.KilledWorker as error:
        raise SplitsError(
            "Dask workers died again and again over one shard",
            where=address,
            hint="is memory short? the same command goes on from here",
        ) from error
    except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
        raise SplitsError(
            "the Dask scheduler is gone", where=address, hint="the same command goes on from here"
        ) from error
    return outcome


def warning(address: str) -> str | None:
    """Return what to warn of before jobs are sent to a scheduler, None where there is nothing.

    Whoever can reach a scheduler that asks for no certificate can run code on its workers.
    """
    parts = urlsplit(address)
    if parts.scheme == "tls" or _loopback(parts.hostname or ""):
        return None
    return (
        f"warning: {address} is neither on this machine nor tls://: "
        "whoever reaches it can run code on its workers and change what they build"
    )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
