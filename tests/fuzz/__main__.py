"""``make fuzz``: seeded alterations of every kind of file we read, run by the real commands.

python -m tests.fuzz [--cases N] [--seed N] [--only NAME] [--workers N] [--table FILE]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from random import Random

from tests.fuzz.kinds import Kind, kinds
from tests.fuzz.mutations import copied, mutate, same
from tests.fuzz.zygote import SECONDS, Ended, Zygote

HEAD = f"""# Hostile input

Made by `make fuzz` (seed {{seed}}). Of each kind of file that somebody else may have made, a sound example
is altered, one file and one way at a time: in its place (a pipe, a link to `/dev/zero`, six sparse GiB), its
bytes, its text or its values. The command that reads it has to end within {SECONDS} s and 1 GiB with exit
code 0, 1, 2 or 3 and no traceback, 2 with a line that says why. Where whatever was altered is to be refused,
one that is accepted has ended badly, too.

"""


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


def cases(count: int, chosen: Sequence[Kind]) -> list[Case]:
    """Return ``count`` cases or a few more, shared among the kinds as they say.

    Fewer than the kinds have are drawn from them, so that what is made by hand has its share, too.
    """
    total = sum(kind.share for kind in chosen)
    taken = []
    for kind in chosen:
        share = max(1, round(count * kind.share / total))
        numbers = range(share) if share >= kind.share else Random(kind.name).sample(range(kind.share), share)
        taken += [Case(kind, number) for number in numbers]
    return taken


def fuzz(count: int, seed: int, folder: Path, *, only: str = "", workers: int = 2) -> Iterator[Result]:
    """Run cases and yield how each ended, in order; ``folder`` is for the files."""
    chosen = [kind for kind in kinds() if only in kind.name]
    programs = {torch: sorted({k.command[0] for k in chosen if k.torch is torch}) for torch in (False, True)}
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
        _make(chosen, folder / "whole")
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(run, cases(count, chosen))
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
    if case.kind.verified and not wrong and ended.code == 0 and not same(whole / target, place / target):
        wrong = "accepted"
    shutil.rmtree(place, ignore_errors=True)
    return Result(case, f"{target}: {how}", ended, wrong)


def as_table(results: Sequence[Result]) -> str:
    """Return tried and survived by kind, in Markdown."""
    lines = ["| kind of file | tried | refused | read | ended badly |", "|---|---:|---:|---:|---:|"]
    names = [*dict.fromkeys(result.case.kind.name for result in results), "all"]
    for name in names:
        of_kind = [r for r in results if name in (r.case.kind.name, "all")]
        refused = sum(r.ended.code in (1, 2) and not r.wrong for r in of_kind)
        badly = sum(bool(r.wrong) for r in of_kind)
        cells = (len(of_kind), refused, len(of_kind) - refused - badly, badly)
        lines.append(f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run all cases; 1 where one ended badly."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of a kind's name")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", type=Path, default=None)
    options = parser.parse_args()
    started = time.monotonic()
    results = []
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for result in fuzz(
            options.cases, options.seed, Path(folder), only=options.only, workers=options.workers
        ):
            results.append(result)
            if result.wrong:
                print(
                    f"{result.case.kind.name} {result.case.number}: {result.what}: {result.wrong}", flush=True
                )
    table = as_table(results)
    print(table)
    longest, most = (max(getattr(r.ended, name) for r in results) for name in ("seconds", "memory"))
    print(
        f"{time.monotonic() - started:.0f} s; the longest case {longest:.1f} s, the largest {most >> 20} MiB",
        file=sys.stderr,
    )
    if options.table is not None:
        options.table.write_text(HEAD.format(seed=options.seed) + table, "utf-8")
    return 1 if any(result.wrong for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
