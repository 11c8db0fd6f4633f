"""Printing: a result as a JSON object or as text on stdout, everything else on stderr.

All output passes through here, so that no control character of a name reaches a terminal, and tables fit it.
"""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from wordnet_splits.base.names import printable
from wordnet_splits.base.tabular import GAP, NARROWEST, terminal_width, text_table
from wordnet_splits.base.terminal.entry import INTERRUPTED as INTERRUPTED

DONE, NEGATIVE, BAD_INPUT, LEFT_OUT = 0, 1, 2, 3
"""Exit codes: done; a check came out negative; bad input; something left out; Ctrl-C."""

LONGEST_LINE = 100_000


class Result(Protocol):
    """Anything that `print_result` prints: most often a `wordnet_splits.base.jsonable.Jsonable`."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""


def print_result(
    result: Result | Mapping[str, Any], as_json: bool, print_text: Callable[[], None] | None = None
) -> None:
    """Print the result of a command: as a JSON object on stdout, or by ``print_text``."""
    if as_json:
        print_json(result if isinstance(result, Mapping) else result.as_dict())
    elif print_text is not None:
        print_text()


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


def to_stdout(text: str = "") -> None:
    """Print a line on stdout; control characters are escaped."""
    print(printable(text, LONGEST_LINE))


def to_stderr(text: str) -> None:
    """Print a line on stderr; control characters are escaped."""
    print(printable(text, LONGEST_LINE), file=sys.stderr)


def write_output(out: Path | None, write: Callable[[Path], None]) -> None:
    """Write the file of an option such as ``--out``, and report it on stderr; nothing without a file."""
    if out is not None:
        write(out)
        to_stderr(f"written to {out}")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on stdout; control characters are escaped."""
    for line in lines:
        to_stdout(line)


def print_first(
    lines: Sequence[str], most: int, *, of: str = "", write: Callable[[str], None] = to_stderr
) -> None:
    """Print the first ``most`` lines, and the number of further lines; ``of`` follows that number."""
    for line in lines[:most]:
        write(line)
    if len(lines) > most:
        indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        write(f"{indent}and {len(lines) - most:,} more{of} (--json has all)")


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """Print names and their texts on stdout; texts are wrapped next to their names."""
    start = max(len(name) for name, _ in fields) + len(GAP)
    width = terminal_width()
    for name, text in fields:
        text_width = max(width - start - len(GAP), NARROWEST)
        for n, line in enumerate(textwrap.wrap(text, text_width, break_on_hyphens=False) or [""]):
            to_stdout(f"{GAP}{'' if n else name:{start}}{line}".rstrip())


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
) -> None:
    """Print rows as a plain table, with the columns ``right`` aligned right.

    Where it is too wide, columns of text are wrapped, then the last columns left out, with a report.
    """
    text = [[_cell(v) for v in row] for row in rows]
    lines, left_out = text_table(columns, text, right=right, width=terminal_width())
    for line in lines:
        to_stdout(line)
    if left_out:
        to_stderr(f"too narrow for {', '.join(left_out)} (--json has all)")


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
