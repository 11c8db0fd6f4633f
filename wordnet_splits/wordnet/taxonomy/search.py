"""Search for synsets by a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordnet_splits.base.tabular import Tabular
from wordnet_splits.wordnet.taxonomy.synsets import Taxonomy, load


@dataclass(frozen=True)
class SynsetSearch(Tabular):
    """The synsets of a word: its senses first, then the synsets of compound nouns that contain it."""

    word: str
    wnids: tuple[str, ...]
    taxonomy: Taxonomy

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return wnid, name, words, number of synsets below, and definition of each synset."""
        t = self.taxonomy
        return [
            {
                "wnid": wnid,
                "name": t.name(wnid),
                "words": ", ".join(lemma.replace("_", " ") for lemma in t.lemmas(wnid)),
                "below": len(t.descendants(wnid)) - 1,
                "definition": t.definition(wnid),
            }
            for wnid in self.wnids
        ]


def find_synsets(word: str, taxonomy: Taxonomy | None = None) -> SynsetSearch:
    """Return the synsets of a word, and the synsets of compound nouns that contain it.

    Raises
    ------
    TaxonomyError : no noun is or contains that word; the error offers synsets of similar nouns.

    Examples
    --------
    >>> find_synsets("axolotl").wnids
    ('n01632777',)
    """
    taxonomy = taxonomy or load()
    key = word.strip().lower().replace(" ", "_")
    index = taxonomy.lemma_index()
    lemmas = sorted(lemma for lemma in index if f"_{key}_" in f"_{lemma.replace('-', '_')}_")
    wnids = dict.fromkeys([*taxonomy.senses(key), *(wnid for lemma in lemmas for wnid in index[lemma])])
    return SynsetSearch(word, tuple(wnids) or (taxonomy.find(word),), taxonomy)
