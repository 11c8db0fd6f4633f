"""Tables ready to print: as text, as HTML for a notebook, as LaTeX, as Markdown, and as JSON."""

from __future__ import annotations

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import groupby
from typing import Any, ClassVar, Final, TypeVar

from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import printable
from wordnet_splits.base.tabular import (
    GAP,
    NARROWEST,
    PAGE_WIDTH,
    Tabular,
    html_table,
    markdown_table,
    text_table,
)

NOTHING = "-"
"""Text of a cell without a value."""
TEXT_COLUMNS = frozenset(
    {"", "model", "rule", "detector", "group", "run", "than", "against", "mean of", "measure", "nearness to"}
)
"""Titles of columns of text; all other columns hold numbers."""


@dataclass(frozen=True)
class Table(Jsonable):
    """A table ready to print.

    Attributes
    ----------
    columns : titles of the columns.
    cells : rows of text, a cell per column.
    rows : the unrounded values of each row by name, for ``--json``.
    notes : sentences printed below.
    bold : (row, column) of the cells in bold, in formats with bold.
    bold_rule : meaning of bold.
    spans : for each column the heading that it shares with its neighbours, "" for none; or empty.
    """

    omitted: ClassVar = ("cells", "bold", "bold_rule", "spans")

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rows: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    bold: frozenset[tuple[int, int]] = frozenset()
    bold_rule: str = ""
    spans: tuple[str, ...] = ()

    @property
    def right(self) -> tuple[str, ...]:
        """Titles of the columns of numbers, which are aligned right."""
        return tuple(name for name in self.columns if name not in TEXT_COLUMNS)

    @property
    def names(self) -> tuple[str, ...]:
        """Titles of the columns of text, which name the rows."""
        return tuple(name for name in self.columns if name in TEXT_COLUMNS)

    def folded(self, width: int | None) -> list[Table]:
        """Return tables of at most ``width`` characters (None: any), each with the columns of text.

        Long names, which are wrapped when printed, take at most half of the width.
        """
        if width is None:
            return [self]
        widths = [max(map(len, column)) for column in zip(self.columns, *self.cells, strict=True)]
        texts = len(self.columns) - len(self.right)
        text_limit = max(width // 2, texts * (NARROWEST + len(GAP)))
        text_width = min(sum(each + len(GAP) for each in widths[:texts]), text_limit)
        blocks: list[list[int]] = [[]]
        for column in range(texts, len(self.columns)):
            block_width = text_width + sum(widths[n] + len(GAP) for n in blocks[-1])
            if blocks[-1] and block_width + widths[column] > width:
                blocks.append([])
            blocks[-1].append(column)
        parts = []
        for block in blocks:
            indices = [*range(texts), *block]
            columns, *cells = (tuple(row[n] for n in indices) for row in (self.columns, *self.cells))
            parts.append(replace(self, columns=columns, cells=tuple(cells), bold=frozenset(), spans=()))
        return parts

    def lines(self, width: int | None = None) -> list[str]:
        """Return the columns and cells as the lines of an aligned table."""
        columns, *cells = [[_one_line(cell) for cell in row] for row in (self.columns, *self.cells)]
        return text_table(columns, cells, right=[*map(_one_line, self.right)], width=width)[0]


Record = TypeVar("Record")


def table_of_records(
    title: str,
    records: Sequence[Record],
    columns: Mapping[str, Callable[[Record], str]],
    notes: Iterable[str] = (),
) -> Table:
    """Return a table of dataclass instances, given the text of each column for a record."""
    cells = tuple(tuple(text(record) for text in columns.values()) for record in records)
    rows = tuple(asdict(record) for record in records)  # type: ignore[call-overload] # any dataclass
    return Table(title, tuple(columns), cells, rows, tuple(notes))


def tables_as_text(tables: Sequence[Table], notes: Sequence[str], width: int | None = None) -> str:
    """Return tables, each below its title, followed by the notes.

    Parameters
    ----------
    width : largest number of characters in a line, None for any; wider tables are folded, and sentences
        wrapped.
    """
    parts = []
    for table in tables:
        lines = [line for part in table.folded(width) for line in part.lines(width)]
        parts.append("\n".join([*_wrapped([table.title], width), *lines, *_wrapped(table.notes, width)]))
    if notes:
        parts.append("\n".join(_wrapped(notes, width)))
    return "\n\n".join(parts)


def tables_as_html(tables: Sequence[Table], notes: Sequence[str]) -> str:
    """Return the same as HTML for a notebook."""
    parts = []
    for table in tables:
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.cells]
        parts += [f"<p>{escape(table.title)}</p>", html_table(rows)]
        parts += [f"<p>{escape(note)}</p>" for note in table.notes]
    return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in notes)])


def _wrapped(sentences: Iterable[str], width: int | None) -> Iterator[str]:
    for sentence in sentences:
        text = _one_line(sentence)
        yield from [text] if width is None else textwrap.wrap(text, width, break_on_hyphens=False)


def _one_line(text: str) -> str:
    return printable(text, len(text))  # two models whose names are cut could look like one


class TableReport(Jsonable, Tabular, ABC):
    """Base of results that print as several tables, followed by notes."""

    notes: tuple[str, ...]

    @abstractmethod
    def tables(self) -> list[Table]:
        """Return the tables, ready to print."""

    def __str__(self) -> str:
        return tables_as_text(self.tables(), self.notes)

    def preview(self) -> list[str]:
        """Return the lines of the tables that ``repr`` shows, as far as they fit."""
        return tables_as_text(self.tables(), self.notes, PAGE_WIDTH).splitlines()

    def to_latex(self) -> str:
        """Return the tables as LaTeX that needs the packages booktabs and graphicx."""
        return tables_as_latex(self.tables(), self.notes)

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return tables_as_markdown(self.tables(), self.notes)

    def _repr_html_(self) -> str:
        return tables_as_html(self.tables(), self.notes)


def number_text(value: float | None, factor: float = 1, digits: int = 2) -> str:
    """Return a value times a factor, a dash for None and NaN."""
    if value is None or value != value:  # NaN: the spread of a single run
        return NOTHING
    text = f"{factor * value:.{digits}f}"
    return text.removeprefix("-") if not float(text) else text  # no minus zero


def interval_text(lo: float | None, hi: float | None, factor: float = 1, digits: int = 2) -> str:
    """Return both ends of an interval times a factor, a dash for None."""
    if lo is None or hi is None:
        return NOTHING
    return f"{number_text(lo, factor, digits)} to {number_text(hi, factor, digits)}"


PREAMBLE: Final = "% needs \\usepackage{booktabs} and \\usepackage{graphicx}"
MAX_COLUMNS: Final = 8
"""Columns of a LaTeX table that fit a page; a wider table is scaled to the width of the text."""
MAX_TEXT_LENGTH: Final = 2000
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",
    "]": "{]}",
    "±": r"$\pm$",
    "×": r"$\times$",
    **{character: f"\\{character}" for character in "$&#_%"},
}
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>~$])")
_NEGATIVE: Final = re.compile(r"-(?=\.?\d)")


def latex_text(text: str) -> str:
    """Return any text as LaTeX that prints it: one line, every special character escaped.

    >>> latex_text("knn[k=10] & 5% of a_b")
    'knn{[}k=10{]} \\\\& 5\\\\% of a\\\\_b'
    """
    return "".join(_LATEX.get(character, character) for character in printable(text, MAX_TEXT_LENGTH))


def tables_as_latex(tables: Sequence[Table], notes: Sequence[str], label: str = "results") -> str:
    """Return tables as LaTeX, followed by the notes as comments.

    Parameters
    ----------
    label : letters, digits and hyphens; the label of table n is ``tab:LABEL-n``.
    """
    parts = [PREAMBLE]
    parts += [_latex_table(table, f"tab:{label}-{n}") for n, table in enumerate(tables, start=1)]
    comments = [f"% {printable(note, MAX_TEXT_LENGTH)}" for note in notes]
    return "\n\n".join([*parts, *(["\n".join(comments)] if comments else [])]) + "\n"


def _latex_table(table: Table, label: str) -> str:
    alignment = "".join("r" if name in table.right else "l" for name in table.columns)
    rows = [
        " & ".join(_latex_cell(cell, bold=(r, c) in table.bold) for c, cell in enumerate(cells)) + r" \\"
        for r, cells in enumerate(table.cells)
    ]
    scaled = len(table.columns) > MAX_COLUMNS
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(_caption(table))}}}",
        rf"\label{{{label}}}",
        *([r"\resizebox{\textwidth}{!}{%"] if scaled else []),
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        *_latex_head(table),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}" + ("}" if scaled else ""),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _latex_head(table: Table) -> list[str]:
    """Return the row of column titles, below a row of the headings that columns share, if there are any."""
    if not any(table.spans):
        return [" & ".join(map(latex_text, table.columns)) + r" \\"]
    cells, rules, start = [], [], 1
    for span, group in groupby(table.spans):
        count = len(list(group))
        cells.append(rf"\multicolumn{{{count}}}{{c}}{{{latex_text(span)}}}" if span else " & " * (count - 1))
        rules += [rf"\cmidrule(lr){{{start}-{start + count - 1}}}"] if span else []
        start += count
    titles = (name.removeprefix(f"{span} ") for name, span in zip(table.columns, table.spans, strict=True))
    return [" & ".join(cells) + r" \\", "".join(rules), " & ".join(map(latex_text, titles)) + r" \\"]


def _latex_cell(cell: str, *, bold: bool) -> str:
    text = _NEGATIVE.sub("$-$", latex_text(cell)) if re.match(r"-?[\d.]", cell) else latex_text(cell)
    return rf"\textbf{{{text}}}" if bold else text


def tables_as_markdown(tables: Sequence[Table], notes: Sequence[str]) -> str:
    """Return tables as Markdown, each below its caption, followed by the notes."""
    parts = []
    for table in tables:
        rows = [
            [f"**{cell}**" if (r, c) in table.bold else cell for c, cell in enumerate(cells)]
            for r, cells in enumerate(table.cells)
        ]
        parts.append(f"{_markdown_sentence(_caption(table))}\n")
        parts.append(markdown_table(table.columns, rows, right=table.right))
    parts += [f"{_markdown_sentence(note)}\n" for note in notes]
    return "\n".join(parts)


def _markdown_sentence(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", printable(text, MAX_TEXT_LENGTH))


def _caption(table: Table) -> str:
    sentences: Iterable[str] = (table.title, table.bold_rule, *table.notes)
    return " ".join(s if s.endswith((".", "?", "!")) else f"{s}." for s in sentences if s)
