"""Results as rows: tables for programs, and text, HTML, Markdown and CSV for people."""

from __future__ import annotations

import csv
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, Final, TextIO, TypeVar

from wordnet_splits.base.lazy import MissingPackageError
from wordnet_splits.base.names import printable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHOWN_ROWS = 20
GAP = "  "
PAGE_WIDTH = 100
"""Longest line of a table in a file or a pipe, in letters."""
NARROWEST = 8
"""Narrowest column of text, in letters; narrower ones are left out."""

_FORMULA: Final = r"^'*[=+\-@\t\r]"
_NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


class Tabular:
    """Base of results that are a list of rows with the same keys.

    ``last_columns`` names keys of rows that are no values; data frames end with them.
    """

    last_columns: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__repr__ in (Tabular.__repr__, tuple.__repr__):
            cls.__repr__ = Tabular.__repr__  # type: ignore[method-assign] # dataclasses keep a class's own

    def __repr__(self) -> str:
        lines = self.preview()
        return "\n".join(lines if len(lines) <= SHOWN_ROWS else [*lines[: SHOWN_ROWS - 1], "..."])

    def preview(self) -> list[str]:
        """Return the lines that ``repr`` shows, as far as they fit: the first rows as a table."""
        rows = list(self.rows())
        title = f"{type(self).__name__}: {len(rows):,} row{'' if len(rows) == 1 else 's'}"
        cells = [[_short(value) for value in row.values()] for row in rows[:SHOWN_ROWS]]
        if len(cells) == 1:
            return [title, *(f"{name}: {cell}" for name, cell in zip(rows[0], cells[0], strict=True))]
        lines = text_table([*rows[0]], cells, width=PAGE_WIDTH)[0] if rows else []
        return [title, *lines, *["..."] * (len(rows) - len(cells))]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows, each with the same keys in the same order."""
        raise NotImplementedError

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        import pyarrow as pa

        return pa.Table.from_pylist([dict(row) for row in self.rows()])

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame; pandas must be installed."""
        frame = data_frame(self.rows())
        last = [name for name in self.last_columns if name in frame.columns]
        return frame[[*frame.columns.drop(last), *last]]

    def _repr_html_(self) -> str:
        rows = list(self.rows())
        return html_table(rows[:SHOWN_ROWS], left_out=len(rows) - SHOWN_ROWS)


def _short(value: object) -> str:
    """Return a value as a text of a line, for a table of the first rows."""
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return printable(text, PAGE_WIDTH // 2)


def data_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a pandas DataFrame; raise MissingPackageError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackageError("pandas is not installed", hint="pip install pandas") from None
    return pd.DataFrame([dict(row) for row in rows])


Record = TypeVar("Record")


class Records(tuple[Record, ...], Tabular):
    """Results that are a tuple of dataclass objects, each a row with its fields."""

    __slots__ = ()

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the fields of each object."""
        return [dict(vars(record)) for record in self]


def text_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    width: int | None = None,
) -> tuple[list[str], list[str]]:
    """Return the lines of an aligned table, and the columns that are left out.

    Parameters
    ----------
    right : columns aligned right.
    width : greatest length of a line: columns of text are wrapped, then the last columns left out; None:
        every row is a single line.
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    included = list(range(len(columns)))
    if width is not None:
        included, widths = _fit(columns, rows, right, widths, width)
    lines = []
    for row in (columns, ["-" * column_width for column_width in widths], *rows):
        wrapped = [textwrap.wrap(row[n], max(widths[n], 1)) or [""] for n in included]
        for cells in zip_longest(*wrapped, fillvalue=""):
            aligned = (
                cell.rjust(widths[n]) if columns[n] in right else cell.ljust(widths[n])
                for n, cell in zip(included, cells, strict=True)
            )
            lines.append(GAP.join(aligned).rstrip())
    return lines, [name for n, name in enumerate(columns) if n not in included]


def terminal_width() -> int:
    """Return the width of the terminal at stdout, in letters, or of a page if stdout is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PAGE_WIDTH


def _fit(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str],
    natural: Sequence[int],
    width: int,
) -> tuple[list[int], list[int]]:
    """Return the indices of the columns that fit ``width`` letters, and the width of every column.

    Columns of text get equal widths, unless they need less. No header is broken, and no name in the first
    column that takes at most a third of the width.
    """
    words = [max(map(len, name.split()), default=0) for name in columns]
    names = [len(word) for row in rows for word in row[0].split() if len(word) <= width // 3]
    words[0] = max([words[0], *names])
    least = [
        of_column if name in right else min(of_column, max(NARROWEST, word))
        for of_column, word, name in zip(natural, words, columns, strict=True)
    ]
    included = list(range(len(columns)))

    def total(widths: Sequence[int]) -> int:
        return sum(widths[n] for n in included) + len(GAP) * (len(included) - 1)

    while total(least) > width and len(included) > 1:
        texts = [n for n in included if columns[n] not in right]
        included.remove(texts[-1] if len(texts) > 1 else included[-1])
    limit, widths = width, list(natural)
    while total(widths) > width and limit > 0:
        limit -= 1
        widths = [max(narrow, min(wide, limit)) for narrow, wide in zip(least, natural, strict=True)]
    return included, widths


def csv_cell(text: str) -> str:
    """Return a text as a CSV cell that no spreadsheet reads as a formula.

    A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return, after any apostrophes,
    gets another apostrophe in front, unless it is a number; `from_csv_cell` removes it.

    >>> csv_cell("=1+1"), csv_cell("-1"), csv_cell("dog")
    ("'=1+1", '-1', 'dog')
    """
    return f"'{text}" if re.search(_FORMULA, text) and not re.search(_NUMBER, text) else text


def from_csv_cell(cell: str) -> str:
    """Return the text of a cell of `csv_cell`."""
    return cell[1:] if cell.startswith("'") and re.search(_FORMULA, cell) else cell


def write_csv(file: TextIO, rows: Iterable[Iterable[object]]) -> None:
    """Write rows as CSV: texts by `csv_cell`, None as an empty cell."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows(
        ["" if v is None else csv_cell(v) if isinstance(v, str) else v for v in row] for row in rows
    )


def markdown_text(value: object) -> str:
    """Return a value as Markdown text that also fits a table: one line, no HTML, no column separator.

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
    """Return rows as an HTML table for a notebook, every cell escaped; ``left_out`` more rows are counted."""
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
