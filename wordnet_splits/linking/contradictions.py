"""Class names with words that mean another thing than their synset: *mouse (computer)*, *clipart/zebra*."""

from __future__ import annotations

from wordnet_splits.linking.candidates import Lemmas, adjectives, spelt
from wordnet_splits.linking.class_names import ParsedName
from wordnet_splits.linking.gathering import INSIDE, OUTSIDE
from wordnet_splits.linking.graphs import WORD, stem

TELLING = frozenset({"qualified", "told", "aside"})
"""Kinds of routes that use the qualifier of a name."""


def contradiction(name: ParsedName, kind: str, wnid: str, lemmas: Lemmas) -> str:
    """Return words of a name that mean another thing than its candidate, ``""`` for none.

    These are a qualifier (*mouse (computer)*), an alternative (*jaguar, car*), the last folders of a path
    (*clipart/zebra*) or the words next to a wnid (*n02085620-zebra*). They mean another thing if they are a
    lemma, no sense of the lemma is the candidate or an ancestor, and the candidate's lemmas and definition
    do not contain them. Adjectives, viewpoints of a place, and words that WordNet capitalises, such as the
    family of a species, do not count.

    Parameters
    ----------
    kind, wnid : the kind of the route to the candidate, and its synset.
    """
    if not lemmas.english or kind in TELLING:
        return ""
    taxonomy = lemmas.taxonomy
    above = set(map(taxonomy.index, taxonomy.ancestors(wnid)))
    text = f"{taxonomy.definition(wnid)} {' '.join(taxonomy.lemmas(wnid))}".lower().replace("_", " ")
    told = {stem(word) for word in WORD.findall(text)}
    asides = [aside for aside in name.asides if not all(map(lemmas.proper, aside))]
    for words in (*asides, *name.phrases):
        if not set(words) <= OUTSIDE | INSIDE | adjectives() and told.isdisjoint(map(stem, words)):
            senses = {sense for lemma in spelt(words, lemmas) for sense in lemmas.nodes(lemma)}
            if senses and above.isdisjoint(senses):
                return " ".join(words)
    return ""
