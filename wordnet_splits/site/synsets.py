"""The synsets that pages name, each once: elsewhere a synset is its number."""

from __future__ import annotations

from collections.abc import Iterable

from wordnet_splits.site.columns import Columns
from wordnet_splits.taxonomy import Taxonomy


class Synsets:
    """Numbers of synsets, given in the order in which they are first asked for."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self._numbers: dict[str, int] = {}

    def number(self, wnid: str | None) -> int | None:
        """Return the number of a synset, None for none."""
        return None if wnid is None else self._numbers.setdefault(wnid, len(self._numbers))

    def numbers(self, wnids: Iterable[str]) -> list[int]:
        """Return the numbers of several."""
        return [self._numbers.setdefault(wnid, len(self._numbers)) for wnid in wnids]

    def table(self) -> Columns:
        """Return wnid, words and definition of every synset that was asked for."""
        wnids = list(self._numbers)
        return {
            "wnid": wnids,
            "name": [", ".join(lemma.replace("_", " ") for lemma in self.taxonomy.lemmas(w)) for w in wnids],
            "gloss": [self.taxonomy.gloss(wnid) for wnid in wnids],
        }
