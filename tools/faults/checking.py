"""Processes with a command of ours imported and once run, for checks one after the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tools.faults.subjects import Subject
from tools.fuzz.zygote import Zygote

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_warm_processes(
    subject: Subject,
    whole: Path,
    work: Callable[[Zygote, int, Task], Result],
    tasks: Iterable[Task],
    count: int,
) -> Iterator[Result]:
    """Yield what ``work`` makes of each task, in order.

    Parameters
    ----------
    whole : a folder that ``subject`` has made: each process goes on with a copy of it, and checks that,
        before it gets its first task.
    work : a warm process, its number, and the task -> the result.
    """
    idle: SimpleQueue[tuple[Zygote, int]] = SimpleQueue()
    for number in range(count):
        zygote = Zygote([subject.check(whole)[0]])
        idle.put((zygote, number))
        copy = whole.with_name(f"warm-{number}")
        shutil.copytree(whole, copy)
        for words in (subject.goes_on(copy), subject.check(copy)):
            zygote.run(words, copy, warm=True)
        shutil.rmtree(copy)

    def do(task: Task) -> Result:
        zygote, number = idle.get()
        try:
            return work(zygote, number, task)
        finally:
            idle.put((zygote, number))

    try:
        with ThreadPoolExecutor(count) as pool:
            yield from pool.map(do, tasks)
    finally:
        while not idle.empty():
            idle.get()[0].close()
