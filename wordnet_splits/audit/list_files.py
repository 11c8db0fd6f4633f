"""Files of lists: an entry per line, a table, or JSON.

In text, the words after a wnid are a comment. A table is TSV, or CSV by its ending. JSON is an array of
entries, rows or objects, or an object: with wnids as keys, with a class under each key, or with
a list under each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import (
    DELIMITERS,
    cells_of_line,
    check_delimiter,
    numbered_lines,
    parse_json,
)
from wordnet_splits.base.untrusted import read_text

COLUMNS = ("wnid", "wnids", "synset", "class_id", "class", "name", "index", "id")
"""Headers of the column that has the classes, in the order of preference."""
MAX_ENTRIES = 100_000
"""Largest number of entries in a list; WordNet has 82,115 nouns."""
MAX_EXAMPLES = 5
"""Entries or columns shown in an error."""

_WNID_FIRST = re.compile(r"(n\d{8})(?:\s|,|$)")
_WNID = re.compile(r"n\d{8}")

Entries = Sequence[tuple[str, str]]
"""(position in the file, entry) pairs."""


def read_entries(path: Path, column: str | None) -> Entries:
    """Return the entries of a file of classes.

    ``column`` : the table's column by name or number from 1, or the key of a JSON object.
    """
    text = read_text(path)
    if path.suffix == ".json":
        content = parse_json(text, where=str(path))
        entries = [(f"entry {n}", e) for n, e in enumerate(_of_json(content, column, str(path)), 1)]
    else:
        entries = list(_of_text(text, column, path))
    if not entries:
        raise DataError("contains no class", where=str(path))
    if len(entries) > MAX_ENTRIES:
        raise DataError(f"must have at most {MAX_ENTRIES:,} entries, got {len(entries):,}", where=str(path))
    return entries


def _of_json(content: Any, column: str | None, where: str) -> list[str]:
    if isinstance(content, dict):
        if column is not None and column in content:
            content = content[column]
        elif content and all(_WNID.fullmatch(key) for key in content):
            content = list(content)
        elif column is None and not all(map(_is_class, content, content.values())):
            hint = f"give one: --column {_some(content)}"
            raise DataError("contains a list under each key", where=where, hint=hint)
        else:
            content = list(content.values())
    if not isinstance(content, list):
        raise DataError("must contain a list of classes", where=where)
    return [_of_row(row, column, where) for row in content]


def _is_class(key: str, value: Any) -> bool:
    """Return whether an item of an object is one class, as ImageNet's ``"0": ["n01440764", "tench"]``."""
    if not isinstance(value, list):
        return True
    return len(value) <= 2 and (key.isdecimal() or any(_WNID.fullmatch(str(cell)) for cell in value[:1]))


def _of_row(row: Any, column: str | None, where: str) -> str:
    cell = row
    if isinstance(row, dict):
        cell = row.get(_named(list(row), column, where))
    elif isinstance(row, list) and row:
        cell = row[0]
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise DataError(f"an entry must be a wnid, name or index, got {printable(cell)!r}", where=where)
    return str(cell)


def _of_text(text: str, column: str | None, path: Path) -> Iterator[tuple[str, str]]:
    lines = numbered_lines(text.splitlines())
    mark = "," if path.suffix == ".csv" else "\t"
    if len(lines) == 1 and column is None:
        _check_one_line(lines[0][1], mark, path)
    if not lines or (mark not in lines[0][1] and path.suffix not in (".csv", ".tsv")):
        for n, line in lines:
            wnid = _WNID_FIRST.match(line.strip())
            yield f"line {n}", wnid[1] if wnid else line.strip()
        return
    rows = [cells_of_line(line, mark, where=f"{path}:{n}") for n, line in lines]
    head = rows[0]
    _check_delimiter(head, mark, column, str(path))
    if column is not None and column.isdecimal():
        column_index, start = int(column) - 1, 0
    elif column is not None or any(cell.lower() in COLUMNS for cell in head):
        column_index, start = head.index(_named(head, column, str(path))), 1
    else:
        column_index, start = 0, 0
    for (n, _), row in list(zip(lines, rows, strict=True))[start:]:
        if not 0 <= column_index < len(row):
            raise DataError(f"has no column {column_index + 1}", where=f"{path}:{n}")
        yield f"line {n}", row[column_index]


def _check_one_line(line: str, mark: str, path: Path) -> None:
    """Refuse a list whose classes are all in one line; a row of a wnid and its name is one class."""
    cells = [cell.strip() for cell in re.split("[,;\t]", line) if cell.strip()]
    wnids = _WNID.findall(line)
    is_row = len(wnids) == 1 and cells[0].startswith(wnids[0])
    if len(wnids) > 1 or (mark in line and len(cells) > 1 and not is_row):
        raise one_line(len(wnids) if len(wnids) > 1 else len(cells), str(path))


def one_line(count: int, where: str) -> DataError:
    """Return the error for a list whose classes are all in one line."""
    reason = f"a list must have one entry a line, got {count} in one line"
    return DataError(reason, where=where, hint="put each class in a line of its own")


def _check_delimiter(head: Sequence[str], mark: str, column: str | None, where: str) -> None:
    """Refuse a first row that another mark separates; in a single-column list, names may contain the mark."""
    if column is None:
        parts = (part.strip().lower() for delimiter in DELIMITERS for part in head[0].split(delimiter))
        is_head = any(part in COLUMNS for part in parts)
    else:
        is_head = int(column) > len(head) if column.isdecimal() else column not in head
    if is_head:
        check_delimiter(head, mark, where=where)


def _named(head: Sequence[str], column: str | None, where: str) -> str:
    """Return the header of the column that holds the classes."""
    if column is not None:
        if column not in head:
            raise unknown("column", column, head, where=where)
        return column
    lower = {cell.lower(): cell for cell in reversed(head)}
    for header in COLUMNS:
        if header in lower:
            return lower[header]
    raise DataError(
        "cannot tell which column contains the classes", where=where, hint=f"give --column {_some(head)}"
    )


def _some(names: Iterable[str]) -> str:
    return " or ".join(printable(name, 40) for name in list(names)[:MAX_EXAMPLES])
