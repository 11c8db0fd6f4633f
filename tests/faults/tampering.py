"""Every field of every file that we write, altered one at a time: the check has to refuse each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from random import Random

from tests.faults.alterations import Alteration, alterations, reads_the_same
from tests.faults.disturbing import Trial
from tests.faults.subjects import Subject, linked
from tests.fuzz.zygote import Ended, Zygote


@dataclass(frozen=True)
class Place:
    """A folder to alter a copy in, with the processes that check it."""

    folder: Path
    zygote: Zygote


def tamper(subject: Subject, folder: Path, rng: Random, workers: int) -> Iterator[Trial]:
    """Alter everything that ``subject`` writes, one alteration at a time, and yield each in order."""
    whole = folder / "whole"
    whole.mkdir(parents=True)
    made = _once(subject.make(whole), folder)
    assert made.code == subject.code, (subject.name, made.said)
    due = _due(subject, folder, whole)
    tasks = [
        (path, alteration)
        for path in sorted((whole / (subject.altered or subject.output)).rglob("*"))
        if path.is_file() and path.suffix != ".lock"
        for alteration in alterations(path, subject.free, rng)
    ]
    idle: SimpleQueue[Place] = SimpleQueue()
    for number in range(workers):
        place = Place(folder / f"altered-{number}", Zygote([subject.check(whole)[0]]))
        idle.put(place)
        shutil.copytree(whole, place.folder)
        place.zygote.run(subject.goes_on(place.folder), place.folder, warm=True)
        place.zygote.run(subject.check(place.folder), place.folder, warm=True)

    def run(task: tuple[Path, Alteration]) -> Trial | None:
        place = idle.get()
        try:
            return _tried(subject, whole, *task, place, due)
        finally:
            idle.put(place)

    try:
        with ThreadPoolExecutor(workers) as pool:
            yield from (trial for trial in pool.map(run, tasks) if trial is not None)
    finally:
        while not idle.empty():
            idle.get().zygote.close()
        shutil.rmtree(folder)


def _once(words: list[str], folder: Path) -> Ended:
    zygote = Zygote([words[0]])
    try:
        return zygote.run(words, folder)
    finally:
        zygote.close()


def _due(subject: Subject, folder: Path, whole: Path) -> dict[str, str]:
    """Return what the command has to end in when it goes on; what is whole has to pass its check, too."""
    same = folder / "going-on"
    shutil.copytree(whole, same)
    ended = _once(subject.goes_on(same), folder)
    assert ended.code in (0, subject.code), (subject.name, ended.said)
    checked = _once(subject.check(same), folder)
    assert checked.code == 0, (subject.name, checked.said)
    return subject.finished(same)


def _tried(
    subject: Subject, whole: Path, path: Path, alteration: Alteration, place: Place, due: dict[str, str]
) -> Trial | None:
    """Alter one thing; None where no reader can see it."""
    out, relative = place.folder, path.relative_to(whole)
    goes_on = subject.working is not None and subject.working in relative.parts
    if goes_on:
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(whole, out)
    else:
        linked(whole, out)
        (out / relative).unlink()
        shutil.copyfile(path, out / relative)
    alteration.alter(out / relative)
    if reads_the_same(path, out / relative):
        return None
    words = subject.goes_on(out) if goes_on else subject.check(out)
    ended = place.zygote.run(words, out)
    wrong = ended.wrong
    if not wrong and goes_on and ended.code not in (1, 2):
        wrong = "" if subject.finished(out) == due else "accepted, and the output is another"
    elif not wrong and ended.code not in (1, 2):
        wrong = "accepted"
    return Trial(subject.name, alteration.kind, wrong and f"{relative}: {alteration.what}: {wrong}")
