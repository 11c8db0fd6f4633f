"""``docs/hostile-input.md``: what was tried, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tools.fuzz.running import ACCEPTED, Result
from tools.fuzz.zygote import SECONDS

HEAD = f"""# Hostile input

Made by `make fuzz` (`{{words}}`).

Of each kind of file that somebody else may have made, a sound example is altered, one file and one way at
a time: in its place (deleted, a pipe, a link to `/dev/zero`, six sparse GiB), its bytes, its text or its
values; or a file that is hostile by design stands in its place. The command that reads it has to end within
{SECONDS} s of the processor and 1 GiB, with exit code 0, 1, 2 or 3 and no traceback.

*Refused* is a line that says why, and exit code 2, or 1 from a command that lists all problems. *Read* is
what does no harm: what is left out is named, or nothing that counts was altered. Where nothing altered may
pass (manifests, packed stores, outputs, results), an alteration that does is *accepted*. *Otherwise wrong* is
the end by a signal, another exit code, a refusal without a line, or control characters on the terminal.

"""

TAIL = """
**Found and fixed**: of 1,345 cases once made by hand 115 ended badly: 89 in tracebacks, 13 beyond a
minute, 13 above 4 GiB. Since then one place opens and bounds what others made. What these cases found
beyond: thousands of groups in a recipe took half a minute; a packed store that lists no parts passed its
check; Parquet shards of which one lacks a column, holds labels that are no integers or names that are no
UTF-8 ended in tracebacks; a picture of 200 MB in a shard was copied until it took more than 1 GiB;
`fix-resize verify` hashed gigabytes that are no table before it looked; an error named a cell of megabytes
whole; a cell of 131,073 letters, or a quote without end, in a protocol of openset-imagenet ended in a
traceback; a text of 20 MB in the record of a sweep took `check-results` 2.8 GiB, and
came back on the terminal; a record without rows passed.

**Not covered**: libraries that abort by themselves where `ulimit -v` is below what they need to be loaded
(OpenBLAS gives up with a line of its own and exit code 1, Arrow with a segmentation fault), before any line
of ours is run; pictures in shards of an export, which an import does not read; a checksum made anew, which
is no signature (what contradicts itself is refused all the same, classes in another order of the same names
are not); Windows; files that change while they are read.
"""

COLUMNS: dict[str, Callable[[Result], bool]] = {
    "tried": lambda r: True,
    "refused": lambda r: not r.wrong and r.ended.code in (1, 2),
    "read": lambda r: not r.wrong and r.ended.code not in (1, 2),
    "tracebacks": lambda r: r.ended.traceback,
    f"hangs (> {SECONDS} s)": lambda r: r.ended.hangs,
    "over 1 GiB": lambda r: r.ended.large,
    "accepted": lambda r: r.wrong == ACCEPTED,
    "otherwise wrong": lambda r: (
        bool(r.wrong) and r.wrong != ACCEPTED and not (r.ended.traceback or r.ended.hangs or r.ended.large)
    ),
}


Counts = dict[str, list[int]]
"""Kind -> how many cases are in each column."""


def as_page(results: Sequence[Result], words: str, before: str = "") -> str:
    """Return the page; ``words`` is the command that made it, ``before`` a page whose other kinds stay."""
    held, new = _read(before), _counted(results)
    from tools.fuzz.kinds import kinds  # and 700 MB of hostile files

    order = [name for name in (kind.name for kind in kinds()) if name in held or name in new]
    text = HEAD.format(words=words) + _table({name: new.get(name) or held[name] for name in order})
    if held:
        apart = ", ".join(name for name in order if name in new)
        text += f"\nOf a later run, of these kinds alone: {apart}.\n"
    return text + TAIL


def as_table(results: Sequence[Result]) -> str:
    """Return how the cases of each kind ended, in Markdown."""
    return _table(_counted(results))


def _counted(results: Sequence[Result]) -> Counts:
    names = dict.fromkeys(result.case.kind.name for result in results)
    of_kinds = {name: [r for r in results if r.case.kind.name == name] for name in names}
    return {name: [sum(map(so, of_kind)) for so in COLUMNS.values()] for name, of_kind in of_kinds.items()}


def _table(counts: Counts) -> str:
    lines = [f"| kind of file | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    whole = [sum(column) for column in zip(*counts.values(), strict=True)]
    for name, cells in (*counts.items(), ("all", whole)):
        lines.append(f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _read(page: str) -> Counts:
    """Return the counts of a page."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| .* \| [0-9]", line)]
    return {name: [int(cell.replace(",", "")) for cell in cells] for name, *cells in rows if name != "all"}
