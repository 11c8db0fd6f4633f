"""Worker processes that leave Ctrl-C to the process that started them, and never outlive it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

from wordnet_splits.errors import SplitsError


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of ``count`` spawned processes; an error drops the jobs that have not begun.

    Raises
    ------
    SplitsError : a process was killed from outside.
    """
    with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_enter) as pool:
        try:
            with _ctrl_c_ignored():  # what a process ignores, those it starts ignore from their first moment
                pool.submit(int)  # the first job starts them all
            yield pool
        except BrokenProcessPool:
            raise SplitsError(
                "a worker process was killed, perhaps for want of memory",
                hint='use fewer; a script must start them below `if __name__ == "__main__":`',
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread sets handlers
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _enter() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """Wait for the end of the process that started this one: killed, it could not say goodbye."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
