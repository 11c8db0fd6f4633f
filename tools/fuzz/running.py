"""Runs seeded alterations of chosen kinds of files, each by the command that reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from random import Random

from tools.fuzz.copies import copied, remove, same
from tools.fuzz.kind import Kind
from tools.fuzz.mutations import mutate
from tools.fuzz.zygote import Ended, Zygote

ACCEPTED = "accepted"
"""What is wrong where a command should have refused whatever was altered."""


@dataclass(frozen=True)
class Case:
    """One alteration, by kind and number; the seed does the rest."""

    kind: Kind
    number: int


@dataclass(frozen=True)
class Result:
    """What was altered, how its reader ended, and what is wrong with that."""

    case: Case
    what: str
    ended: Ended
    wrong: str

    def __str__(self) -> str:
        return f"{self.case.kind.name} {self.case.number}: {self.what}: {self.wrong}"


def cases(count: int) -> list[Case]:
    """Return ``count`` cases or a few more, shared among the kinds as they say.

    Fewer than the kinds have are drawn from them, so that what is made by hand has its share, too.
    """
    from tools.fuzz.kinds import kinds  # and 700 MB of hostile files

    total = sum(kind.share for kind in kinds())
    taken = []
    for kind in kinds():
        share = max(1, round(count * kind.share / total))
        numbers = range(share) if share >= kind.share else Random(kind.name).sample(range(kind.share), share)
        taken += [Case(kind, number) for number in numbers]
    return taken


def fuzz(chosen: Sequence[Case], seed: int, folder: Path, *, workers: int = 2) -> Iterator[Result]:
    """Run cases and yield how each ended, in order; ``folder`` is for the files."""
    made = list({case.kind.name: case.kind for case in chosen}.values())
    programs = {torch: sorted({k.command[0] for k in made if k.torch is torch}) for torch in (False, True)}
    idle: dict[bool, SimpleQueue[tuple[Zygote, Path]]] = {}
    for torch, names in programs.items():
        idle[torch] = SimpleQueue()
        for number in range(workers if names else 0):
            idle[torch].put((Zygote(names), folder / f"{torch}-{number}"))

    def run(case: Case) -> Result:
        zygote, place = idle[case.kind.torch].get()
        try:
            return _run(case, seed, zygote, place, folder / "whole" / case.kind.name)
        finally:
            idle[case.kind.torch].put((zygote, place))

    try:
        _make(made, folder / "whole")
        for torch, queue in idle.items():
            for _ in range(workers if programs[torch] else 0):
                zygote, place = queue.get()
                _learn(zygote, place, [k for k in made if k.torch is torch], folder / "whole")
                queue.put((zygote, place))
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(run, chosen)
    finally:
        for queue in idle.values():
            while not queue.empty():
                queue.get()[0].close()


def _make(chosen: Sequence[Kind], folder: Path) -> None:
    """Make a sound example of each kind."""
    made: dict[Callable[[Path], None], Path] = {}
    for kind in chosen:
        whole = folder / kind.name
        if kind.make in made:
            copied(made[kind.make], whole)
            continue
        whole.mkdir(parents=True)
        kind.make(whole)
        made[kind.make] = whole


def _learn(zygote: Zygote, place: Path, chosen: Sequence[Kind], whole: Path) -> None:
    """Run each command on what is sound, which it has to take, for the modules that it imports."""
    for kind in chosen:
        copied(whole / kind.name, place)
        ended = zygote.learn(kind.command, place)
        assert ended.code == kind.ends, f"{kind.name}: {ended.said}"
        remove(place)


def _run(case: Case, seed: int, zygote: Zygote, place: Path, whole: Path) -> Result:
    rng = Random(f"{seed} {case.kind.name} {case.number}")
    copied(whole, place)
    if case.number < len(case.kind.made):
        how, (pattern, make) = list(case.kind.made.items())[case.number]
        target = min(path.relative_to(whole) for path in whole.glob(pattern) if path.is_file())
        make(place / target, rng)
    else:
        target = rng.choice(case.kind.targets(whole))
        how = mutate(place / target, rng)
    ended = zygote.run(case.kind.command, place)
    wrong = ended.wrong
    absent = str(target) in case.kind.optional and not os.path.lexists(place / target)
    taken = case.kind.verified and not wrong and ended.code == 0 and not absent
    if taken and not same(whole / target, place / target):  # what is refused is not opened here
        wrong = ACCEPTED
    remove(place)
    return Result(case, f"{target}: {how}", ended, wrong)
