"""The one pool: jobs done by processes of this machine, a few ahead, whatever becomes of a process.

A process that is killed takes its jobs with it, and they are done again by others. Ctrl-C is left to the
process that started the pool; without it, or once it has no use for them, its processes leave at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, TypeVar

from wordnet_splits.base.errors import SplitsError

AHEAD: Final = 2
"""Jobs begun, waiting or not yet collected for each process: none is idle, and memory stays flat."""

MOST_DEATHS: Final = 3
"""Times that a process may die over a job: an image that kills it would kill it for ever."""

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_jobs(
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    workers: int,
    *,
    name: Callable[[Job], str],
    ordered: bool = False,
) -> Generator[tuple[Job, Result], None, None]:
    """Yield each job with what ``function`` makes of it; a job may be done twice if a process is killed.

    Parameters
    ----------
    function : of a module, so that a new process finds it; repeating it does no harm.
    workers : processes; 1 is this one, and so is a single job.
    name : what to call a job in an error.
    ordered : in the order of the jobs, else as they are done.

    Raises
    ------
    SplitsError : processes cannot be started, or die over the same job again and again.
    Exception : what ``function`` raises; the jobs that are not done are dropped.
    """
    waiting = enumerate(jobs)
    queue = deque(islice(waiting, 2))
    if workers <= 1 or len(queue) < 2:
        for _, job in chain(queue, waiting):
            yield job, function(job)
        return
    deaths: Counter[int] = Counter()
    done: dict[int, tuple[Job, Result]] = {}
    following = 0
    while True:
        flight: dict[Future[Result], tuple[int, Job]] = {}
        try:
            with _Pool(workers) as pool:
                while True:
                    while len(flight) + len(done) < AHEAD * workers:
                        if not queue and not (queue := deque(islice(waiting, 1))):
                            break
                        # it leaves the queue only then: a pool that is found broken has not taken it
                        flight[pool.submit(function, queue[0][1])] = queue[0]
                        queue.popleft()
                    if not flight:
                        return
                    for future in wait(flight, return_when=FIRST_COMPLETED).done:
                        result = future.result()  # it leaves the flight only then, for the same reason
                        number, job = flight.pop(future)
                        done[number] = job, result
                    while done and (not ordered or following in done):
                        yield done.pop(following if ordered else next(iter(done)))
                        following += 1
        except BrokenProcessPool as error:
            again = sorted(flight.values(), key=lambda entry: entry[0])
            queue.extendleft(reversed(again))
            deaths.update(number for number, _ in again)
            if deadly := [name(job) for number, job in again if deaths[number] > MOST_DEATHS]:
                raise SplitsError(
                    f"worker processes were killed {MOST_DEATHS + 1} times over {' or '.join(deadly)}",
                    hint="is memory short? use fewer workers, and the same command continues from here; "
                    'a script must start them below `if __name__ == "__main__":`',
                ) from error


class _Pool:
    """Spawned processes that leave at once when this one dies, or stops because of an error."""

    def __init__(self, workers: int) -> None:
        context = get_context("spawn")
        theirs, self._ours = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_enter, initargs=(theirs,))

    def submit(self, function: Callable[[Job], Result], job: Job) -> Future[Result]:
        """Hand over a job; this is what starts a process."""
        try:
            with _ctrl_c_held_back():
                return self._pool.submit(function, job)
        except BrokenProcessPool:
            raise
        except (OSError, RuntimeError) as error:  # no memory, or no more processes or threads for this user
            raise SplitsError(f"cannot start a worker process: {error}", hint="use fewer workers") from error

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with _ctrl_c_held_back():
            if kind is not None:
                self._ours.close()  # whatever they are doing, nobody waits for it
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._ours.close()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Have Ctrl-C come when the block has ended: a process half started would show a traceback.

    What is held back here is held back, from its first moment, in a process that is started in the block.
    """
    came: list[int] = []
    before = None
    if threading.current_thread() is threading.main_thread():  # only there can handlers be set
        before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if _MASKS else set()
    try:
        yield
    finally:
        if _MASKS:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


_MASKS: Final = hasattr(signal, "pthread_sigmask")  # Windows has none


def _enter(ours: Connection) -> None:
    """Prepare a worker: Ctrl-C is for its parent, and without the parent it has nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(ours,), daemon=True).start()


def _leave_with(ours: Connection) -> None:
    try:
        ours.recv_bytes()  # nothing is ever sent: this ends when the other end is closed
    except (EOFError, OSError):
        os._exit(1)  # in the middle of a file, if need be: unfinished ones have other names
