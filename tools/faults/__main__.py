"""``make faults``: kills, signals, full disks and tampering, seeded, with a table of tried and survived.

python -m tools.faults [--seed N] [--rounds N] [--most N] [--only NAME] [--skip KIND] [--workers N]
    [--inputs FOLDER] [--kept FILE] [--table FILE]
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
from collections.abc import Iterator
from pathlib import Path

from tools.faults.checking import in_warm_processes
from tools.faults.disturbing import FAULTS, FULL_DISK, Trial, disturb, mountable, undisturbed
from tools.faults.page import as_page, as_table
from tools.faults.subjects import Subject, subjects
from tools.faults.tampering import tamper
from tools.fuzz.zygote import Zygote

LARGEST = 1 << 30
"""Bytes of memory that no process may exceed."""


def main() -> int:
    """Run all trials; 1 where something did not survive."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3, help="times that a command is disturbed in each way")
    parser.add_argument("--most", type=int, default=None, help="alterations of a subject, drawn by the seed")
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
                    found = _tried(subject, fault, place, options, rng)
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
        words = f"python -m tools.faults --seed {options.seed} --rounds {options.rounds}"
        words += "" if options.most is None else f" --most {options.most}"
        options.table.write_text(as_page(trials, words), "utf-8")
    return 1 if any(t.wrong for t in trials) or largest > LARGEST else 0


def _tried(
    subject: Subject, fault: str, folder: Path, options: argparse.Namespace, rng: random.Random
) -> Iterator[Trial]:
    if fault == "altered":
        yield from tamper(subject, folder / "altered", rng, options.workers, options.most)
        return
    place = folder / "disturbed"
    whole = undisturbed(subject, place / "whole")
    faults = [f for f in FAULTS if f != FULL_DISK or mountable()]
    tasks = [
        (fault, place / f"{number}-{n}" / "out", random.Random(rng.random()))
        for number, fault in enumerate(faults)
        for n in range(options.rounds)
    ]

    def tried(zygote: Zygote, number: int, task: tuple[str, Path, random.Random]) -> Trial:
        fault, out, moments = task
        return disturb(subject, fault, whole, out, moments, zygote)

    yield from in_warm_processes(subject, place / "whole", tried, tasks, options.workers)
    shutil.rmtree(place)


def _said(trials: Iterator[Trial]) -> Iterator[Trial]:
    for trial in trials:
        if trial.wrong:
            print(f"{trial.subject}: {trial.fault}: {trial.wrong}", flush=True)
        yield trial


if __name__ == "__main__":
    sys.exit(main())
