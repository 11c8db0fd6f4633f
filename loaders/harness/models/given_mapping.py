"""Mappings that the user gives, in Python or as a file: each is read in one way, or refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.base.untrusted import read_text

FORM = (
    "write a text file with the id, wnid or name of each column's class, one a line, or JSON from class to "
    'column, as in {"tench": 0, "crane": 1}'
)
GivenMapping = dict[str, int] | list[str] | list[int]
"""Class -> column; the class of each column; or the column of each label."""


def read_mapping(path: Path, names: Iterable[str]) -> GivenMapping:
    """Read a mapping from a text file, whose line k is the class of column k, or from JSON.

    Parameters
    ----------
    names : mappings that are not files, for the error message.

    Raises
    ------
    UnknownNameError : a name that is neither a mapping nor a file. DataError : no file at a path, malformed,
        or readable in two ways.
    """
    where = str(path)
    if not os.path.isfile(path):  # noqa: PTH113 (Path.is_file raises for a name that is too long)
        if path.suffix or path.name not in ("", where):
            raise DataError("no such file", where=where)
        raise unknown("mapping", where, names)
    text = read_text(path)
    if path.suffix.lower() != ".json":
        return _classes_of_lines(text, where)
    value = parse_json(text, where=where)
    if isinstance(value, dict) and len(json.loads(text, object_pairs_hook=list)) > len(value):
        raise DataError("a key occurs twice", where=where, hint=FORM)
    return checked_mapping(value, where=where)


def _classes_of_lines(text: str, where: str) -> list[str]:
    lines = [line.strip() for line in text.rstrip().splitlines()]
    for number, line in enumerate(lines, 1):
        if not line:
            message = "a blank line stands before other lines, and line k is the class of column k"
            raise DataError(message, where=f"{where}, line {number}", hint="name every column, or remove it")
        cells = [cell.strip() for cell in re.split(r"[,;\t]", line)]
        if len(cells) > 1 and any(cell.isdecimal() for cell in cells):
            message = f"a line must be a class alone, got {printable(line)!r}"
            raise DataError(message, where=f"{where}, line {number}", hint=FORM)
    return lines


def checked_mapping(mapping: Any, *, where: str) -> GivenMapping:
    """Return a mapping in one of three forms; a dictionary from column to class becomes a list of classes.

    Raises
    ------
    DataError : of other types, or a dictionary of numbers as text: its keys or its values may be the columns.
    """
    value = mapping.tolist() if hasattr(mapping, "tolist") else mapping
    if isinstance(value, Mapping):
        return _checked_dictionary(dict(value), where)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        message = f"a mapping must be a dictionary, list or file, got {type(mapping).__name__}"
        raise DataError(message, where=where, hint=FORM)
    if all(map(_is_number, value)):
        return [int(column) for column in value]
    if not all(isinstance(name, str) for name in value):
        other = next(entry for entry in value if not isinstance(entry, str))
        message = f"a class must be a name, got {printable(repr(other))}"
        raise DataError(message, where=where, hint=FORM)
    return list(value)


def _checked_dictionary(value: dict[Any, Any], where: str) -> GivenMapping:
    if all(isinstance(name, str) and _is_number(column) for name, column in value.items()):
        return {name: int(column) for name, column in value.items()}
    by_column = {str(column): name for column, name in value.items()}
    columns = [str(column) for column in range(len(value))]
    if by_column.keys() != set(columns) or not all(isinstance(name, str) for name in by_column.values()):
        pair = next((k, v) for k, v in value.items() if not (isinstance(k, str) and _is_number(v)))
        message = f"a mapping must have a column for each class, got {': '.join(map(repr, pair))}"
        raise DataError(printable(message), where=where, hint=FORM)
    if all(isinstance(key, str) for key in value) and all(name.isdecimal() for name in by_column.values()):
        message = "its keys and its values are numbers as text: which are the columns is not known"
        raise DataError(message, where=where, hint=FORM)
    return [by_column[column] for column in columns]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
