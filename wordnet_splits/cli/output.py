"""What every command shares: one JSON object or a table on stdout, everything else on stderr.

All that is printed passes through here, so that names from outside reach a terminal without control
characters, and tables fit it.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wordnet_splits.cli import INTERRUPTED as INTERRUPTED
from wordnet_splits.untrusted import printable

DONE, NEGATIVE, BAD_INPUT, LEFT_OUT = 0, 1, 2, 3
"""Exit codes: done; a check came out negative; bad input; something left out; Ctrl-C."""

LONGEST_LINE = 100_000
NARROWEST = 8
"""Characters of a column of text below which it is left out rather than wrapped further."""
GAP = "  "


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, null for NaN."""
    print(json.dumps(_finite(value), ensure_ascii=False, indent=1))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def show(text: str = "") -> None:
    """Print a line on stdout; control characters are escaped."""
    print(printable(text, LONGEST_LINE))


def say(text: str) -> None:
    """Print a line on stderr; control characters are escaped."""
    print(printable(text, LONGEST_LINE), file=sys.stderr)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()
) -> None:
    """Print rows as a plain aligned table; columns named in ``right`` are aligned right.

    On a terminal that is too narrow columns of text are wrapped, then the last of them left out by name;
    elsewhere every row is one line.
    """
    text = [[_cell(v) for v in row] for row in rows]
    widths = [max(len(c), *(len(r[n]) for r in text)) if text else len(c) for n, c in enumerate(columns)]
    kept, widths = _fitted(columns, widths, right)
    _print_row(columns, kept, widths, right, columns)
    show(GAP.join("-" * widths[n] for n in kept))
    for row in text:
        _print_row(row, kept, widths, right, columns)
    if left_out := [name for n, name in enumerate(columns) if n not in kept]:
        say(f"too narrow for {', '.join(left_out)} (--json has all)")


def terminal_width() -> int | None:
    """Return the columns of the terminal that stdout is, None where it is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _fitted(
    columns: Sequence[str], widths: Sequence[int], right: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return which columns are shown, and the width of every one."""
    kept, fitted, available = list(range(len(columns))), list(widths), terminal_width()
    if available is None:
        return kept, fitted
    least = [w if name in right else min(w, NARROWEST) for w, name in zip(widths, columns, strict=True)]

    def needed(each: Sequence[int]) -> int:
        return sum(each[n] for n in kept) + len(GAP) * (len(kept) - 1)

    while needed(least) > available and len(kept) > 1:
        texts = [n for n in kept if columns[n] not in right]
        kept.remove(texts[-1] if len(texts) > 1 else kept[-1])
    while (excess := needed(fitted) - available) > 0:
        widest = max(kept, key=lambda n: (fitted[n] > least[n], fitted[n]))
        if fitted[widest] <= least[widest]:
            break
        others = [fitted[n] for n in kept if n != widest]
        step = fitted[widest] - max([least[widest], *(w for w in others if w < fitted[widest])])
        fitted[widest] -= max(1, min(excess, step))
    return kept, fitted


def _print_row(
    cells: Sequence[str],
    kept: Sequence[int],
    widths: Sequence[int],
    right: Sequence[str],
    columns: Sequence[str],
) -> None:
    lines = {n: textwrap.wrap(cells[n], widths[n]) or [""] for n in kept}
    for at in range(max(map(len, lines.values()))):
        parts = []
        for n in kept:
            part = lines[n][at] if at < len(lines[n]) else ""
            parts.append(part.rjust(widths[n]) if columns[n] in right else part.ljust(widths[n]))
        show(GAP.join(parts).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return printable(value, LONGEST_LINE)
