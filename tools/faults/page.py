"""``docs/faults.md``: what was tried and survived, and what was not tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tools.faults.alterations import KINDS
from tools.faults.disturbing import FAULTS, FULL_DISK, LARGE_FILE, Trial

HEAD = """# Kills, signals, full disks, tampering

Made by `make faults` (`{words}`).

*Disturbed*: a command that writes is killed, signalled or left without space at seeded moments, half of them
while it writes, and run again. It and whatever it started has to be gone within two minutes, without a
traceback; the next run has to end in the bytes of an undisturbed one, with no `.part` file left.

*Altered*: what it wrote is altered, one thing at a time: a file deleted, cut, or with a bit flipped; each
value of its JSON (of lists the first and the last) changed or dropped, and a key added; each column of its
tables dropped, rows dropped, doubled or moved, and the first and last cell of each column changed or emptied.
The command that checks the output has to refuse it (exit code 1 or 2, in words) within 60 s and 1 GiB. What
only the command itself reads, on going on (finished shards, activations, the state of an unfinished
training), has to be refused by it, or to end in the same output.

"""

TAIL = """
**Harmless by design**: `provenance` in `manifest.json` says which versions of which libraries built it.
Nothing is decided by it and no fingerprint holds it, so it may be altered (of other files, the checksum
covers it). What reads the same is not counted: a Parquet file with another byte of padding.

**Not tried**: checksums computed anew by whoever alters a file (they are no signatures; the tests of each
kind of file try what is recomputed nevertheless); Windows; NFS; a folder that may only be read, when the user
is root, who may write to it all the same; a power cut.
"""


def as_page(trials: Sequence[Trial], words: str) -> str:
    """Return the page; ``words`` is the command that made it."""
    page = HEAD.format(words=words) + as_table(trials) + TAIL
    if not any(trial.fault == FULL_DISK for trial in trials):
        page += f"\nNo disk could be mounted here: instead of a full one, {LARGE_FILE}.\n"
    return page


def as_table(trials: Sequence[Trial]) -> str:
    """Return tried and survived by subject and fault, in Markdown."""
    tried = Counter((t.subject, t.fault) for t in trials)
    survived = Counter((t.subject, t.fault) for t in trials if not t.wrong)
    lines = ["| command | fault | tried | survived |", "|---|---|---:|---:|"]
    for name in dict.fromkeys(t.subject for t in trials):
        for fault in (f for f in (*FAULTS, *KINDS) if tried[name, f]):
            lines.append(f"| `{name}` | {fault} | {tried[name, fault]:,} | {survived[name, fault]:,} |")
    lines.append(f"| all | | {sum(tried.values()):,} | {sum(survived.values()):,} |")
    return "\n".join(lines) + "\n"
