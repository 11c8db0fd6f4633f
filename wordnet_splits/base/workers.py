"""Jobs run by processes of this machine, a few in advance, and repeated if a process is killed.

Ctrl-C is handled by the process that started the pool; when it ends, its worker processes exit at once.
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
from wordnet_splits.base.lazy import skip_pandas

AHEAD: Final = 2
"""Jobs per process that run, wait or are not yet collected: no process idles, and memory is bounded."""

MAX_DEATHS: Final = 3
"""Most times that a job may kill its process: an image that does will do so for ever."""

Job = TypeVar("Job")
Result = TypeVar("Result")


def thread_count() -> int:
    """Return how many threads to use: ``OMP_NUM_THREADS``, or the number of cores of this process.

    NumPy's loops run on one core each and release the interpreter's lock.
    """
    setting = os.environ.get("OMP_NUM_THREADS", "")
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    workers: int,
    *,
    name: Callable[[Job], str],
    ordered: bool = False,
) -> Generator[tuple[Job, Result], None, None]:
    """Yield each job and its result; a job may run twice if a process is killed.

    Parameters
    ----------
    function : function of a module, so that a new process can import it; repeating it must do no harm.
    workers : number of processes; 1, and a single job, run in this process.
    name : returns the name of a job for an error.
    ordered : whether results come in the order of the jobs, or as they are ready.

    Raises
    ------
    SplitsError : processes cannot be started, or are killed by the same job again and again.
    Exception : ``function`` raised it; the remaining jobs are dropped.
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
                        # removed from the queue only afterwards: a broken pool does not accept it
                        flight[pool.submit(function, queue[0][1])] = queue[0]
                        queue.popleft()
                    if not flight:
                        return
                    for future in wait(flight, return_when=FIRST_COMPLETED).done:
                        result = future.result()  # also removed from flight only afterwards
                        number, job = flight.pop(future)
                        done[number] = job, result
                    while done and (not ordered or following in done):
                        yield done.pop(following if ordered else next(iter(done)))
                        following += 1
        except BrokenProcessPool as error:
            again = sorted(flight.values(), key=lambda entry: entry[0])
            queue.extendleft(reversed(again))
            deaths.update(number for number, _ in again)
            if deadly := [name(job) for number, job in again if deaths[number] > MAX_DEATHS]:
                raise SplitsError(
                    f"worker processes were killed {MAX_DEATHS + 1} times over {' or '.join(deadly)}",
                    hint="is memory short? use fewer workers, and the same command continues from here; "
                    'a script must start them below `if __name__ == "__main__":`',
                ) from error


class _Pool:
    """Spawned processes that exit at once when this one dies or stops because of an error."""

    def __init__(self, workers: int) -> None:
        context = get_context("spawn")
        child_end, self._lifeline = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_start_worker, initargs=(child_end,)
        )

    def submit(self, function: Callable[[Job], Result], job: Job) -> Future[Result]:
        """Submit a job, which may start a process."""
        try:
            with _delay_ctrl_c():
                return self._pool.submit(function, job)
        except BrokenProcessPool:
            raise
        except (OSError, RuntimeError) as error:  # no memory, or no more processes or threads for this user
            raise SplitsError(f"cannot start a worker process: {error}", hint="use fewer workers") from error

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with _delay_ctrl_c():
            if kind is not None:
                self._lifeline.close()  # ends the processes, whatever they are doing
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._lifeline.close()


@contextmanager
def _delay_ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block: a process half started would print a traceback.

    A process that is started in the block inherits the delay from its first moment.
    """
    signals: list[int] = []
    before = None
    if threading.current_thread() is threading.main_thread():  # only there can handlers be set
        before = signal.signal(signal.SIGINT, lambda number, frame: signals.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if _MASKS else set()
    try:
        yield
    finally:
        if _MASKS:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if signals:
            signal.raise_signal(signal.SIGINT)


_MASKS: Final = hasattr(signal, "pthread_sigmask")  # absent on Windows


def _start_worker(lifeline: Connection) -> None:
    """Prepare a worker: its parent handles Ctrl-C, and it exits when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    skip_pandas()
    threading.Thread(target=_exit_with_parent, args=(lifeline,), daemon=True).start()


def _exit_with_parent(lifeline: Connection) -> None:
    try:
        lifeline.recv_bytes()  # nothing is ever sent: it ends when the other end is closed
    except (EOFError, OSError):
        os._exit(1)  # perhaps in the middle of a file: unfinished files have other names
