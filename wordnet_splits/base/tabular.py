"""What a command found, as rows: a table for programs, text and HTML for people, a screen at most."""

from __future__ import annotations

import csv
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHOWN_ROWS = 20
GAP = "  "
NARROWEST = 8
"""Characters of a column of text below which it is left out rather than wrapped further."""

_FORMULA: Final = r"^'*[=+\-@\t\r]"
_NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


class Tabular:
    """Base of results that are a list of rows of one kind; a subclass says which in `rows`."""

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows, each with the same keys in the same order."""
        raise NotImplementedError

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        import pyarrow as pa

        return pa.Table.from_pylist([dict(row) for row in self.rows()])

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame; pandas must be installed."""
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.rows()])

    def _repr_html_(self) -> str:
        rows = list(self.rows())
        return html_table(rows[:SHOWN_ROWS], left_out=len(rows) - SHOWN_ROWS)


Record = TypeVar("Record")


class Records(tuple[Record, ...], Tabular):
    """Results that are many of one dataclass: a tuple of them, and a table with their fields."""

    __slots__ = ()

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the fields of each."""
        return [dict(vars(record)) for record in self]


def text_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    width: int | None = None,
) -> tuple[list[str], list[str]]:
    """Return rows of text as the lines of an aligned table, and the columns left out of it.

    Parameters
    ----------
    right : columns aligned right. width : where the lines must not be longer, columns of text are wrapped,
        then the last of them left out; None: every row is one line.
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    kept = list(range(len(columns)))
    if width is not None:
        kept, widths = _fitted(columns, widths, right, width)
    lines = []
    for row in (columns, ["-" * each for each in widths], *rows):
        parts = {n: textwrap.wrap(row[n], max(widths[n], 1)) or [""] for n in kept}
        for at in range(max(map(len, parts.values()))):
            cells = {n: part[at] if at < len(part) else "" for n, part in parts.items()}
            shown = (
                text.rjust(widths[n]) if columns[n] in right else text.ljust(widths[n])
                for n, text in cells.items()
            )
            lines.append(GAP.join(shown).rstrip())
    return lines, [name for n, name in enumerate(columns) if n not in kept]


def terminal_width() -> int | None:
    """Return the columns of the terminal that stdout is, None where it is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _fitted(
    columns: Sequence[str], widths: Sequence[int], right: Sequence[str], available: int
) -> tuple[list[int], list[int]]:
    """Return which columns are shown, and the width of every one."""
    kept, fitted = list(range(len(columns))), list(widths)
    words = [max(map(len, name.split()), default=0) for name in columns]  # of a header are never broken
    least = [
        w if name in right else min(w, max(NARROWEST, word))
        for w, word, name in zip(widths, words, columns, strict=True)
    ]

    def needed(each: Sequence[int]) -> int:
        return sum(each[n] for n in kept) + len(GAP) * (len(kept) - 1)

    while needed(least) > available and len(kept) > 1:
        texts = [n for n in kept if columns[n] not in right]
        kept.remove(texts[-1] if len(texts) > 1 else kept[-1])
    while (excess := needed(fitted) - available) > 0:
        widest = max(kept, key=lambda n: (fitted[n] > least[n], fitted[n]))
        if fitted[widest] <= least[widest]:
            break
        others = [fitted[n] for n in kept if n != widest and columns[n] not in right]
        step = fitted[widest] - max([least[widest], *(w for w in others if w <= fitted[widest])])
        fitted[widest] -= max(1, min(excess, step))
    return kept, fitted


def csv_cell(text: str) -> str:
    """Return a text as a CSV cell that no spreadsheet takes for a formula.

    A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return gets an apostrophe in
    front, unless it is a number; so does one that already looks so, and `from_csv_cell` returns every text.

    >>> csv_cell("=1+1"), csv_cell("-1"), csv_cell("dog")
    ("'=1+1", '-1', 'dog')
    """
    return f"'{text}" if re.search(_FORMULA, text) and not re.search(_NUMBER, text) else text


def from_csv_cell(cell: str) -> str:
    """Return the text of which `csv_cell` made ``cell``."""
    return cell[1:] if cell.startswith("'") and re.search(_FORMULA, cell) else cell


def write_csv(file: TextIO, rows: Iterable[Iterable[object]]) -> None:
    """Write rows as CSV; texts pass `csv_cell`, None is empty."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows(
        ["" if v is None else csv_cell(v) if isinstance(v, str) else v for v in row] for row in rows
    )


def csv_table(table: pa.Table) -> pa.Table:
    """Return a table for pyarrow to write as CSV: its texts passed through `csv_cell`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            texts = table.column(at)
            unsafe = pc.and_not(
                pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _NUMBER)
            )
            safe = pc.if_else(unsafe, pc.binary_join_element_wise("'", texts, ""), texts)
            table = table.set_column(at, column, safe)
    return table


def markdown_text(value: object) -> str:
    """Return a value as text in Markdown, also in a table: one line, no HTML, no column of its own.

    >>> markdown_text("a | <b>b</b>")
    'a \\\\| &lt;b&gt;b&lt;/b&gt;'
    """
    text = escape("" if value is None else str(value), quote=False)
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").splitlines())


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()
) -> str:
    """Return rows as a Markdown table, every cell escaped; ``right``: columns aligned right."""

    def line(cells: Iterable[object]) -> str:
        return f"| {' | '.join(map(markdown_text, cells))} |\n"

    rule = "|".join("---:" if name in right else "---" for name in columns)
    return line(columns) + f"|{rule}|\n" + "".join(map(line, rows))


def html_table(rows: Sequence[Mapping[str, Any]], *, left_out: int = 0) -> str:
    """Return rows as an HTML table for a notebook, every cell escaped, with how many more there are."""
    names = list(rows[0]) if rows else []
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(row[n])}</td>' for n in names)}</tr>" for row in rows)
    more = f"<p>and {left_out:,} more rows</p>" if left_out > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return escape(f"{value:.4g}" if isinstance(value, float) else str(value))
