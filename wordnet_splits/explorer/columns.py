"""Tables as the pages read them: objects of columns, figures with the digits shown, synsets by number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wordnet_splits.wordnet.taxonomy import Taxonomy

DIGITS = 6

Columns = dict[str, list[Any]]


def to_columns(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Return rows as columns, in the order of ``names``; figures are `rounded`."""
    columns: Columns = {name: [] for name in names}
    for row in rows:
        for name in names:
            columns[name].append(rounded(row[name]))
    return columns


def rounded(value: Any) -> Any:
    """Return a float rounded to six digits, None if it is not finite; other values as they are."""
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    return value


class SynsetNumbers:
    """Numbers of synsets, in order of first use: pages refer to synsets by number."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self._numbers: dict[str, int] = {}

    def number(self, wnid: str | None) -> int | None:
        """Return the number of a synset, None for None."""
        return None if wnid is None else self._numbers.setdefault(wnid, len(self._numbers))

    def numbers(self, wnids: Iterable[str]) -> list[int]:
        """Return the numbers of synsets."""
        return [self._numbers.setdefault(wnid, len(self._numbers)) for wnid in wnids]

    def table(self) -> Columns:
        """Return wnid, words and definition of every numbered synset."""
        wnids = list(self._numbers)
        return {
            "wnid": wnids,
            "name": [", ".join(lemma.replace("_", " ") for lemma in self.taxonomy.lemmas(w)) for w in wnids],
            "gloss": [self.taxonomy.gloss(wnid) for wnid in wnids],
        }
