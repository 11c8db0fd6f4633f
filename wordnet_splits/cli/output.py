"""What every command shares: one JSON object or a table on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wordnet_splits.errors import SplitsError

DONE, NEGATIVE, BAD_INPUT, LEFT_OUT, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: done; a check came out negative; bad input; something left out; Ctrl-C."""


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


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()
) -> None:
    """Print rows as a plain aligned table; columns named in ``right`` are aligned right."""
    text = [[_cell(v) for v in row] for row in rows]
    widths = [max(len(c), *(len(r[n]) for r in text)) if text else len(c) for n, c in enumerate(columns)]

    def line(cells: Sequence[str]) -> str:
        aligned = (
            c.rjust(w) if name in right else c.ljust(w)
            for c, w, name in zip(cells, widths, columns, strict=True)
        )
        return "  ".join(aligned).rstrip()

    print(line(columns))
    print("  ".join("-" * w for w in widths))
    for row in text:
        print(line(row))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def say(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr)


def parse_roots(given: Sequence[str]) -> dict[str, Path]:
    """Return the folder of every source that has one: ``--root NAME=DIR``, environment, roots.toml.

    Raises
    ------
    SplitsError : not of that form, or of an unknown source.
    """
    from wordnet_splits.errors import unknown
    from wordnet_splits.sources import source_class, source_names
    from wordnet_splits.sources.roots import resolve_root

    flags: dict[str, Path] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not equals or not folder:
            raise SplitsError(
                f"{text!r} is not NAME=DIR", where="--root", hint="as in --root cifar100=data/cifar"
            )
        if name not in source_names():
            raise unknown("source", name, source_names(), where="--root")
        flags[name] = Path(folder)
    rooted = (n for n in source_names() if source_class(n).rooted)
    found = {n: resolve_root(n, flags) for n in rooted}
    return {n: root for n, root in found.items() if root is not None}
