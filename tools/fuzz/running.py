"""Run commands on seeded alterations of the kinds of files that they read."""

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
"""Problem of a command that accepts an altered file although it verifies all files."""


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
    """Return ``count`` cases or a few more, shared among the kinds by their shares.

    A smaller number samples the cases of each kind, so that hand-made cases are included.
    """
    from tools.fuzz.kinds import kinds  # and 700 MB of hostile files

    total = sum(kind.share for kind in kinds())
    accepted = []
    for kind in kinds():
        share = max(1, round(count * kind.share / total))
        numbers = range(share) if share >= kind.share else Random(kind.name).sample(range(kind.share), share)
        accepted += [Case(kind, number) for number in numbers]
    return accepted


def fuzz(selected: Sequence[Case], seed: int, folder: Path, *, workers: int = 2) -> Iterator[Result]:
    """Run cases and yield their results, in order; ``folder`` is for the files."""
    used_kinds = list({case.kind.name: case.kind for case in selected}.values())
    programs = {
        torch: sorted({k.command[0] for k in used_kinds if k.torch is torch}) for torch in (False, True)
    }
    idle: dict[bool, SimpleQueue[tuple[Zygote, Path]]] = {}
    for torch, names in programs.items():
        idle[torch] = SimpleQueue()
        for number in range(workers if names else 0):
            idle[torch].put((Zygote(names), folder / f"{torch}-{number}"))

    def run(case: Case) -> Result:
        zygote, workplace = idle[case.kind.torch].get()
        try:
            return _run(case, seed, zygote, workplace, folder / "whole" / case.kind.name)
        finally:
            idle[case.kind.torch].put((zygote, workplace))

    try:
        _make(used_kinds, folder / "whole")
        for torch, queue in idle.items():
            for _ in range(workers if programs[torch] else 0):
                zygote, workplace = queue.get()
                _learn(zygote, workplace, [k for k in used_kinds if k.torch is torch], folder / "whole")
                queue.put((zygote, workplace))
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(run, selected)
    finally:
        for queue in idle.values():
            while not queue.empty():
                queue.get()[0].close()


def _make(used_kinds: Sequence[Kind], folder: Path) -> None:
    """Make a sound example of each kind."""
    examples: dict[Callable[[Path], None], Path] = {}
    for kind in used_kinds:
        whole = folder / kind.name
        if kind.make in examples:
            copied(examples[kind.make], whole)
            continue
        whole.mkdir(parents=True)
        kind.make(whole)
        examples[kind.make] = whole


def _learn(zygote: Zygote, workplace: Path, used_kinds: Sequence[Kind], whole: Path) -> None:
    """Run each command on a sound example, which it must accept, so that its modules are imported."""
    for kind in used_kinds:
        copied(whole / kind.name, workplace)
        ended = zygote.learn(kind.command, workplace)
        assert ended.code == kind.ends, f"{kind.name}: {ended.said}"
        remove(workplace)


def _run(case: Case, seed: int, zygote: Zygote, workplace: Path, whole: Path) -> Result:
    rng = Random(f"{seed} {case.kind.name} {case.number}")
    copied(whole, workplace)
    if case.number < len(case.kind.made):
        how, (pattern, make) = list(case.kind.made.items())[case.number]
        target = min(path.relative_to(whole) for path in whole.glob(pattern) if path.is_file())
        make(workplace / target, rng)
    else:
        target = rng.choice(case.kind.targets(whole))
        how = mutate(workplace / target, rng)
    ended = zygote.run(case.kind.command, workplace)
    wrong = ended.wrong
    deleted = str(target) in case.kind.optional and not os.path.lexists(workplace / target)
    accepted = case.kind.verified and not wrong and ended.code == 0 and not deleted
    if accepted and not same(whole / target, workplace / target):  # what is refused is not opened here
        wrong = ACCEPTED
    remove(workplace)
    return Result(case, f"{target}: {how}", ended, wrong)
