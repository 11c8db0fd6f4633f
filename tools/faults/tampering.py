"""Every field of every file that we write, altered one at a time: the check has to refuse each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tools.faults.alterations import Alteration, alterations, reads_the_same
from tools.faults.checking import in_warm_processes
from tools.faults.disturbing import Trial
from tools.faults.subjects import Subject, linked, once
from tools.fuzz.zygote import Zygote

Task = tuple[Path, Alteration]


def tamper(
    subject: Subject, folder: Path, rng: Random, workers: int, most: int | None = None
) -> Iterator[Trial]:
    """Alter what ``subject`` writes, one alteration at a time, ``most`` at most, and yield each in order."""
    whole = folder / "whole"
    whole.mkdir(parents=True)
    made = once(subject.make(whole), folder)
    assert made.code == subject.code, (subject.name, made.said)
    due = _due(subject, folder, whole)
    tasks = [
        (path, alteration)
        for path in sorted((whole / (subject.altered or subject.output)).rglob("*"))
        if path.is_file() and path.suffix != ".lock"
        for alteration in alterations(path, subject.free, rng)
    ]
    count = min(n for n in (len(tasks), subject.most, most) if n is not None)
    tasks = [tasks[n] for n in sorted(rng.sample(range(len(tasks)), count))]

    def tried(zygote: Zygote, number: int, task: Task) -> Trial | None:
        return _tried(subject, whole, *task, folder / f"altered-{number}", zygote, due)

    trials = in_warm_processes(subject, whole, tried, tasks, workers)
    yield from (trial for trial in trials if trial is not None)
    shutil.rmtree(folder)


def _due(subject: Subject, folder: Path, whole: Path) -> dict[str, str]:
    """Return what the command has to end in when it goes on; what is whole has to pass its check, too."""
    same = folder / "going-on"
    shutil.copytree(whole, same)
    ended = once(subject.goes_on(same), folder)
    assert ended.code in (0, subject.code), (subject.name, ended.said)
    checked = once(subject.check(same), folder)
    assert checked.code == 0, (subject.name, checked.said)
    return subject.finished(same)


def _tried(
    subject: Subject,
    whole: Path,
    path: Path,
    alteration: Alteration,
    out: Path,
    zygote: Zygote,
    due: dict[str, str],
) -> Trial | None:
    """Alter one thing; None where no reader can see it."""
    relative = path.relative_to(whole)
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
    ended = zygote.run(words, out)
    wrong = ended.wrong
    if not wrong and goes_on and ended.code not in (1, 2):
        wrong = "" if subject.finished(out) == due else "accepted, and the output is another"
    elif not wrong and ended.code not in (1, 2):
        wrong = "accepted"
    return Trial(subject.name, alteration.kind, wrong and f"{relative}: {alteration.what}: {wrong}")
