"""``make faults``: kills, signals, full disks and tampering, seeded, with a table of tried and survived.

python -m tests.faults [--seed N] [--rounds N] [--only NAME] [--skip KIND] [--workers N] [--inputs FOLDER]
    [--kept FILE] [--table FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.faults.alterations import KINDS
from tests.faults.checking import in_warm_processes
from tests.faults.disturbing import FAULTS, FULL_DISK, Trial, disturb, mountable, undisturbed
from tests.faults.subjects import Subject, subjects
from tests.faults.tampering import tamper
from tests.fuzz.zygote import Zygote

LARGEST = 1 << 30
"""Bytes of memory that no process may exceed."""

HEAD = """# Kills, signals, full disks, tampering

Made by `make faults` (`python -m tests.faults --seed {seed} --rounds {rounds}`) in {minutes:.0f} minutes; the
largest process took {largest} MiB.
"""


def main() -> int:
    """Run all trials; 1 where something did not survive."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3, help="times that a command is disturbed in each way")
    parser.add_argument("--only", default="", help="part of a subject's name")
    parser.add_argument("--skip", choices=("disturbed", "altered"), default=None)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kept", type=Path, default=None, help="subjects that are done, to go on from")
    parser.add_argument("--inputs", type=Path, default=None, help="what the subjects read, made there once")
    parser.add_argument("--table", type=Path, default=None)
    options = parser.parse_args()
    started = time.monotonic()
    kept: dict[str, list[list[str]]] = {}
    if options.kept is not None and options.kept.exists():
        kept = json.loads(options.kept.read_text("utf-8"))
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for subject in subjects((options.inputs or Path(folder) / "inputs").absolute()):
            for fault in subject.faults:
                key = f"{subject.name}: {fault}"
                if options.only not in key or fault == options.skip:
                    continue
                if key not in kept:
                    rng = random.Random(f"{options.seed} {key}")
                    place = Path(folder) / "tried"
                    found = _tried(subject, fault, place, options.rounds, rng, options.workers)
                    kept[key] = [[t.subject, t.fault, t.wrong] for t in _said(found)]
                    if options.kept is not None:
                        options.kept.write_text(json.dumps(kept, indent=1), "utf-8")
                    print(f"{key}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
                trials += [Trial(*trial) for trial in kept[key]]
    table = as_table(trials)
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    seconds = time.monotonic() - started
    print(table)
    print(f"{seconds:.0f} s; the largest process {largest >> 20} MiB", file=sys.stderr)
    if options.table is not None:
        head = HEAD.format(
            seed=options.seed, rounds=options.rounds, minutes=seconds / 60, largest=largest >> 20
        )
        options.table.write_text(head + table, "utf-8")
    return 1 if any(t.wrong for t in trials) or largest > LARGEST else 0


def _tried(
    subject: Subject, fault: str, folder: Path, rounds: int, rng: random.Random, workers: int
) -> Iterator[Trial]:
    if fault == "altered":
        yield from tamper(subject, folder / "altered", rng, workers)
        return
    place = folder / "disturbed"
    whole = undisturbed(subject, place / "whole")
    faults = [f for f in FAULTS if f != FULL_DISK or mountable()]
    tasks = [
        (fault, place / f"{number}-{n}" / "out", random.Random(rng.random()))
        for number, fault in enumerate(faults)
        for n in range(rounds)
    ]

    def tried(zygote: Zygote, number: int, task: tuple[str, Path, random.Random]) -> Trial:
        fault, out, moments = task
        return disturb(subject, fault, whole, out, moments, zygote)

    yield from in_warm_processes(subject, place / "whole", tried, tasks, workers)
    shutil.rmtree(place)


def _said(trials: Iterator[Trial]) -> Iterator[Trial]:
    for trial in trials:
        if trial.wrong:
            print(f"{trial.subject}: {trial.fault}: {trial.wrong}", flush=True)
        yield trial


def as_table(trials: list[Trial]) -> str:
    """Return tried and survived by subject and fault, in Markdown."""
    tried = Counter((t.subject, t.fault) for t in trials)
    survived = Counter((t.subject, t.fault) for t in trials if not t.wrong)
    lines = ["| command | fault | tried | survived |", "|---|---|---:|---:|"]
    for name in dict.fromkeys(t.subject for t in trials):
        for fault in (f for f in (*FAULTS, *KINDS) if tried[name, f]):
            lines.append(f"| `{name}` | {fault} | {tried[name, fault]:,} | {survived[name, fault]:,} |")
    lines.append(f"| all | | {sum(tried.values()):,} | {sum(survived.values()):,} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
