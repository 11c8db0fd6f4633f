"""The tables of results for a paper: as text, LaTeX or Markdown, in the layout of any of the papers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wordnet_splits.base.errors import DataError, unknown

from .schema import ResultTables
from .sentences import composition_lines, lines_below
from .table import tables_as_text
from .table_formats import tables_as_latex, tables_as_markdown
from .tables import ResultSets, layout_of, layouts, tables

FORMATS: Final = ("text", "latex", "markdown")


def format_tables(
    results: ResultTables, table_format: str, layout: str | None = None, width: int | None = None
) -> str:
    """Return the tables of a layout as ``text``, ``latex`` or ``markdown``.

    Captions name the sets that were not scored whole, and the roles of the layout that the results lack.

    Parameters
    ----------
    layout : by default that of the benchmark's paper. width : letters of a line of text, None for any.

    Raises
    ------
    UnknownNameError : no such layout or format. DataError : none of the layout's tables can be filled.
    """
    if table_format not in FORMATS:
        raise unknown("format", table_format, FORMATS, where="--format")
    used = layout_of(results.about.benchmark, layout)
    name = next(name for name, each in layouts().items() if each is used)
    absent = " or ".join(missing_roles(results, name))
    filled = [
        table for table in tables(results, name) if table.rows and len(table.columns) > len(table.names)
    ]
    if not filled:
        message = f"the layout {name} is of {absent} sets, and the results have none"
        raise DataError(message, where=results.about.benchmark, hint="give another --layout")
    lacking = [f"The results have no {absent} set, so the layout {name} lacks its columns."] if absent else []
    notes = [*lines_below(results), *results.about.remarks]
    if table_format == "text":
        return tables_as_text(filled, [*lacking, *notes], width) + "\n"
    missing = composition_lines(results)[1:]
    filled = [replace(table, notes=(*table.notes, *lacking, *missing)) for table in filled]
    if table_format == "latex":
        return tables_as_latex(filled, notes, f"{results.about.benchmark}-{name}")
    return tables_as_markdown(filled, notes)


def missing_roles(results: ResultTables, layout: str) -> list[str]:
    """Return the roles that a layout has columns or tables for and the results have no set of."""
    specs = layouts()[layout]["table"]
    roles = dict.fromkeys(
        role for spec in specs for part in (spec, *spec["columns"]) for role in part.get("roles", ())
    )
    return [role for role in roles if role not in ResultSets.of(results).roles.values()]
