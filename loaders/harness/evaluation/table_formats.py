"""Tables as LaTeX and as Markdown, for a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from wordnet_splits.base.names import printable
from wordnet_splits.base.tabular import markdown_table

if TYPE_CHECKING:
    from .table import Table

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
    """Return tables as LaTeX, and the notes below all of them as comments.

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
    """Return tables as Markdown, each below its caption, and the notes below all of them."""
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
