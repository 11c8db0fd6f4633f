"""What a command found, as rows: a table for programs, text and HTML for people, a screen at most."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHOWN_ROWS = 20


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
        return [{f.name: getattr(r, f.name) for f in dataclasses.fields(r)} for r in self]  # type: ignore[arg-type]


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
