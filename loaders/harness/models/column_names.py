"""Class names of the columns of an output: read from a given mapping, and matched with labels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import listed, printable, same_spelling
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.wordnet.taxonomy import load

if TYPE_CHECKING:
    from .class_map import Label


FORM = (
    "write a text file with the id, wnid or name of each column's class, one a line, or JSON from class to "
    'column, as in {"tench": 0, "crane": 1}'
)
GivenMapping = dict[str, int] | list[str] | list[int]
"""Class -> column; the class of each column; or the column of each label."""


def read_mapping(path: Path, names: Iterable[str]) -> GivenMapping:
    """Read a mapping from a text file, whose line k is the class of column k, or from JSON."""
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
    """Return a mapping in one of three forms; a dictionary from column to class becomes a list of classes."""
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


BY_FILE = "give --mapping (mapping=) a text file with the wnid or name of each column's class, one a line"
SHOWN = 5
"""Classes that an error lists."""


def match_names(labels: Sequence[Label], columns: Sequence[tuple[str, int]], *, where: str) -> list[int]:
    """Return the column of each label.

    Raises
    ------
    DataError : labels without a column, or with several by all readings of their names together.
    """
    names = ColumnNames(columns)
    matches = [names.columns_of(label) for label in labels]
    ambiguous = [
        f"{label.class_id} ({label.name}) columns {', '.join(map(str, sorted(found)[:SHOWN]))}"
        for label, found in zip(labels, matches, strict=True)
        if len(found) > 1
    ]
    if ambiguous:
        raise DataError(
            f"{len(ambiguous)} labels match several columns: {listed(ambiguous, SHOWN)}",
            where=where,
            hint="give wnids instead of names, or the column of each label, with --mapping (mapping=)",
        )
    matched = {column for found in matches for column in found}
    missing = [f"{x.class_id} ({x.name})" for x, found in zip(labels, matches, strict=True) if not found]
    spare = [name for name, column in columns if column not in matched]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(labels)} labels have no column: {listed(missing, SHOWN)}; "
            f"{len(spare)} classes of the model are not labels: {listed(spare, SHOWN) or 'none'}",
            where=where,
            hint=BY_FILE,
        )
    return [next(iter(found)) for found in matches]


class ColumnNames:
    """Columns of a model's output, given as (name of a class, column), by the readings of their names."""

    def __init__(self, columns: Sequence[tuple[str, int]]) -> None:
        self._exact: dict[str, set[int]] = {}
        self._plain: dict[str, set[int]] = {}
        self._synonyms: dict[frozenset[str], set[int]] = {}
        self._names: dict[int, set[str]] = {}
        for name, column in columns:
            self._names.setdefault(column, set()).add(name)
            self._exact.setdefault(name, set()).add(column)
            self._synonyms.setdefault(frozenset(_parts(name)), set()).add(column)
            for reading in _readings(name):
                self._plain.setdefault(reading, set()).add(column)

    def columns_of(self, label: Label) -> set[int]:
        """Return the columns that may be a label's.

        An id or wnid alone identifies a column. Otherwise all readings of the names count, also synonyms:
        *cardigan* is a sweater, and the first name of a corgi. If several columns match, a column with
        exactly the name of another class of the source is excluded, and a column with all synonyms wins.
        """
        ids = (label.class_id, *label.wnids)
        texts = (*ids, label.name, f"{label.name} ({label.class_id})")  # see Manifest.class_names
        by_id, exact = _union(self._exact, ids), _union(self._exact, texts)
        if len(exact) == 1 and exact == by_id:
            return exact
        found = _union(self._plain, (reading for text in texts for reading in _readings(text)))
        if not found:
            return found
        synonyms = _synonyms(label)
        found |= _union(self._plain, map(_plain, synonyms))
        found = {column for column in found if not label.vocabulary & self._names[column] - set(texts)}
        complete = found & self._synonyms.get(synonyms, set())
        return complete if len(complete) == 1 and not by_id else found


def _union(table: Mapping[str, set[int]], keys: Iterable[str]) -> set[int]:
    return {column for key in keys for column in table.get(key, ())}


def _synonyms(label: Label) -> frozenset[str]:
    if not label.wnids:
        return frozenset()
    taxonomy = load() if label.hierarchy is None else label.hierarchy.taxonomy()
    lemmas = (lemma for wnid in label.wnids if wnid in taxonomy for lemma in taxonomy.lemmas(wnid))
    return frozenset(lemma.replace("_", " ") for lemma in lemmas)


def _parts(name: str) -> list[str]:
    return [part.strip() for part in name.split(",") if part.strip()]


def _readings(name: str) -> set[str]:
    """Return a name, and the synonyms that it lists, without case and separators."""
    return {_plain(name), *map(_plain, _parts(name))}


def _plain(name: str) -> str:
    return re.sub(r"[\s\-/]+", " ", same_spelling(name)).strip().casefold()
