"""``make faults``: kills, signals, full disks and tampering, seeded, with a table of tried and survived.

python -m tests.faults [--seed N] [--rounds N] [--only NAME] [--table FILE]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.faults.disturbing import DISTURBANCES, Trial, disturb
from tests.faults.subjects import subjects
from tests.faults.tampering import tamper

COLUMNS = (*DISTURBANCES, "altered")
HEAD = """# Kills, signals, full disks, tampering

Made by `make faults` (seed {seed}, {rounds} rounds). Each command that writes is disturbed at seeded moments
and run again: it has to end in the bytes of an undisturbed run, with nothing unfinished left. Then each field
of each file it wrote is altered, dropped or added, one at a time: the command that checks the output has to
refuse it. Survived, of those tried:

"""


def main() -> int:
    """Run all trials; 1 where something did not survive."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", default="", help="part of a subject's name")
    parser.add_argument("--skip", choices=("disturbing", "tampering"), default=None)
    parser.add_argument("--table", type=Path, default=None)
    options = parser.parse_args()
    started = time.monotonic()
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        inputs = Path(folder)
        for number, subject in enumerate(subjects(inputs / "inputs")):
            if options.only not in subject.name:
                continue
            rng = random.Random(f"{options.seed} {subject.name}")
            place = inputs / str(number)
            kinds = []
            if options.skip != "disturbing":
                kinds.append(disturb(subject, place / "disturbed", options.rounds, rng))
            if options.skip != "tampering":
                kinds.append(tamper(subject, place / "tampered"))
            for trial in (trial for kind in kinds for trial in kind):
                trials.append(trial)
                if trial.wrong:
                    print(f"{trial.subject}: {trial.disturbance}: {trial.wrong}", flush=True)
            print(f"{subject.name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    table = as_table(trials)
    print(table)
    if options.table is not None:
        options.table.write_text(HEAD.format(seed=options.seed, rounds=options.rounds) + table, "utf-8")
    return 1 if any(t.wrong for t in trials) else 0


def as_table(trials: list[Trial]) -> str:
    """Return tried and survived by subject and disturbance, in Markdown."""
    tried = Counter((t.subject, t.disturbance) for t in trials)
    survived = Counter((t.subject, t.disturbance) for t in trials if not t.wrong)
    lines = [f"| command | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    for name in dict.fromkeys(t.subject for t in trials):
        cells = (f"{survived[name, c]:,} of {tried[name, c]:,}" for c in COLUMNS)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    total = f"{sum(survived.values()):,} of {sum(tried.values()):,}"
    return "\n".join(lines) + f"\n\n{total} survived.\n"


if __name__ == "__main__":
    sys.exit(main())
