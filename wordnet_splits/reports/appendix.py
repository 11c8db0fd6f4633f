"""A benchmark's classes and their evidence as the table of a paper's appendix: CSV, Markdown or LaTeX."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wordnet_splits.base.errors import unknown
from wordnet_splits.base.tabular import markdown_table, write_csv

LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
Rows = Sequence[Mapping[str, Any]]


def format_rows(rows: Rows, kind: str) -> str:
    """Return rows as text of the kind ``csv``, ``md`` or ``latex``, with a header.

    Raises
    ------
    UnknownNameError : there is no such kind.
    """
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS, where="--format")
    return FORMATS[kind](rows)


def _csv(rows: Rows) -> str:
    text = io.StringIO()
    write_csv(text, [rows[0].keys(), *(row.values() for row in rows)])
    return text.getvalue()


def _markdown(rows: Rows) -> str:
    return markdown_table(list(rows[0]), [list(row.values()) for row in rows])


def _latex(rows: Rows) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(LATEX.get(c, c) for c in cell) for cell in cells) + " \\\\\n"

    columns = "l" * (len(rows[0]) - 1) + r"p{.4\textwidth}"
    body = "".join(line([_text(v) for v in row.values()]) for row in rows)
    head = line([name.replace("_", " ") for name in rows[0]])
    return (
        f"\\begin{{longtable}}{{{columns}}}\n\\toprule\n{head}\\midrule\n\\endhead\n"
        f"{body}\\bottomrule\n\\end{{longtable}}\n"
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


FORMATS: dict[str, Callable[[Rows], str]] = {"csv": _csv, "md": _markdown, "latex": _latex}
