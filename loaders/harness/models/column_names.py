"""Class names of a model's columns, matched with the labels of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import listed, same_spelling
from wordnet_splits.wordnet.taxonomy import load

if TYPE_CHECKING:
    from .class_map import Label

BY_FILE = "give --mapping (mapping=) a text file with the wnid or name of each column's class, one a line"
SHOWN = 5
"""Classes that an error lists."""


def match_names(labels: Sequence[Label], columns: Sequence[tuple[str, int]], *, where: str) -> list[int]:
    """Return the column of each label.

    Parameters
    ----------
    columns : (name of a class, its column): a class id, wnid or name, or synonyms joined by commas.

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
        synonyms = _synonyms(label.wnids)
        found |= _union(self._plain, map(_plain, synonyms))
        found = {column for column in found if not label.vocabulary & self._names[column] - set(texts)}
        complete = found & self._synonyms.get(synonyms, set())
        return complete if len(complete) == 1 and not by_id else found


def _union(table: Mapping[str, set[int]], keys: Iterable[str]) -> set[int]:
    return {column for key in keys for column in table.get(key, ())}


def _synonyms(wnids: Sequence[str]) -> frozenset[str]:
    if not wnids:
        return frozenset()
    taxonomy = load()
    lemmas = (lemma for wnid in wnids if wnid in taxonomy for lemma in taxonomy.lemmas(wnid))
    return frozenset(lemma.replace("_", " ") for lemma in lemmas)


def _parts(name: str) -> list[str]:
    return [part.strip() for part in name.split(",") if part.strip()]


def _readings(name: str) -> set[str]:
    """Return a name, and the synonyms that it lists, without case and separators."""
    return {_plain(name), *map(_plain, _parts(name))}


def _plain(name: str) -> str:
    return re.sub(r"[\s\-/]+", " ", same_spelling(name)).strip().casefold()
