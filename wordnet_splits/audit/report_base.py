"""The form of every audit's report: figures and tables as text, JSON object, table file and page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from wordnet_splits.base import pages
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import listed
from wordnet_splits.base.parquet import write_table_file
from wordnet_splits.base.tabular import Tabular, text_table
from wordnet_splits.wordnet.taxonomy import Taxonomy

TEXT_WIDTH = 80
FILE_ENDINGS = (".csv", ".html", ".parquet")
"""Endings of the files that `AuditReport.write` writes."""


class Cell(NamedTuple):
    """A cell of a page: its text with a gloss, the value to sort by, or images with their description."""

    text: str
    gloss: str = ""
    value: str = ""
    number: bool = False
    images: Sequence[str] = ()
    alt: str = ""


class Page(NamedTuple):
    """The table of a page, and notes on it; readers can sort it but by the columns ``unsorted``."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Cell | str | int | None]]
    notes: str = ""
    unsorted: Sequence[str] = ()


@dataclass(frozen=True)
class AuditReport(Tabular, ABC):
    """Entries of a list compared with known classes; ``str`` gives tables of 80 columns.

    Attributes
    ----------
    schema : columns of the rows.
    sizes : text of the numbers of entries and known classes, as of `str.format`.
    limits : caveats, as lines for a terminal.
    max_rows : rows of each kind that ``str`` and the commands print.
    listed, against : names of the list, and of the known classes or their benchmark.
    known : number of known classes.
    """

    schema: ClassVar[pa.Schema]
    sizes: ClassVar[str]
    limits: ClassVar[Sequence[str]]
    max_rows: ClassVar[int] = 20

    listed: str
    against: str
    known: int

    @property
    @abstractmethod
    def ok(self) -> bool:
        """Whether the audit found nothing."""

    @abstractmethod
    def summary(self) -> list[tuple[str, str]]:
        """Return the figures as names and texts."""

    @abstractmethod
    def tables(self, width: int | None, most: int | None) -> Iterable[Sequence[str]]:
        """Return tables of the findings as lines, at most ``most`` of each kind."""

    @abstractmethod
    def page(self) -> Page:
        """Return the table of the page: the entries with a finding."""

    @property
    def heading(self) -> str:
        """Names and sizes of the two lists, in one line."""
        return f"{self.listed} against {self.against}: {self.sizes.format(len(self.rows()), self.known)}"

    @property
    def caveats(self) -> Sequence[str]:
        """`limits`, in the words of the audit's hierarchy."""
        return self.limits

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table, whose column types do not depend on the rows."""
        return pa.Table.from_pylist([dict(row) for row in self.rows()], schema=self.schema)

    def write(self, path: str | Path) -> None:
        """Write a row per entry as ``.csv`` or ``.parquet``, or a page of those with a finding as ``.html``.

        Raises
        ------
        DataError : another ending. OutputError : the file cannot be written.
        """
        path = Path(path)
        check_output(path)
        if path.suffix != ".html":
            write_table_file(self.to_table(), path, metadata={"list": self.listed, "against": self.against})
            return
        page = self.page()
        pages.write_page(
            path,
            "audit",
            title=self.heading,
            figures=self.summary(),
            columns=page.columns,
            unsorted=page.unsorted,
            rows=[[_cell(value) for value in row] for row in page.rows],
            notes=f"Select a heading to sort. {page.notes}".strip(),
            limits=" ".join(self.caveats),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the keys that the JSON objects of all audits have."""
        return {"list": self.listed, "against": self.against, "known": self.known, "ok": self.ok}

    def __str__(self) -> str:
        figures = text_table(("", ""), self.summary(), width=TEXT_WIDTH)[0][2:]
        tables = [line for lines in self.tables(TEXT_WIDTH, self.max_rows) if lines for line in ("", *lines)]
        return "\n".join([self.heading, *figures, *tables])


def _cell(value: Cell | str | int | None) -> Cell:
    if isinstance(value, int):
        return Cell(f"{value:,}", value=f"{value}", number=True)
    return value if isinstance(value, Cell) else Cell(value or "")


def check_output(path: Path | None) -> None:
    """Raise DataError for a file that `AuditReport.write` does not write, by its ending."""
    if path is not None and path.suffix not in FILE_ENDINGS:
        reason = f"its name must end in {' or '.join(FILE_ENDINGS)}"
        raise DataError(reason, where=str(path), hint=f"{path.stem}.csv")


def first_rows(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, most: int | None, right: str
) -> list[str]:
    """Return a table of the first ``most`` rows, and a line that counts the others; none without rows."""
    lines = text_table(columns, rows[:most], right=(right,), width=width)[0] if rows else []
    more = len(rows) - len(rows[:most])
    return [*lines, f"and {more:,} more"] if more else lines


def about_hierarchy(caveats: Sequence[str], taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return caveats about WordNet as caveats about a hierarchy."""
    return tuple(line.replace("WordNet", taxonomy.called) for line in caveats)


def shares(meanings: Mapping[str, str], counts: Mapping[str, int], total: int) -> list[tuple[str, str]]:
    """Return the words of each key, and its count, percentage of ``total`` and meaning in a sentence."""
    return [
        (key.replace("_", " "), f"{counts[key]:,} ({counts[key] / total:.1%}): {meaning}")
        for key, meaning in meanings.items()
    ]


def examples(names: Sequence[str]) -> str:
    """Return the number of names, and the first five."""
    return f"{len(names):,} ({listed(names, 5)})"
