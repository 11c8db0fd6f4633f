"""Reasons for the synset that is proposed for a name, and words of the name that contradict it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wordnet_splits.linking.candidates import Lemmas, adjectives, spelt
from wordnet_splits.linking.class_names import ParsedName
from wordnet_splits.linking.gathering import INSIDE, OUTSIDE, WORD, stem
from wordnet_splits.wordnet.taxonomy import Taxonomy

TELLING = frozenset({"qualified", "told", "aside"})
"""Kinds of routes that use the qualifier of a name."""


def contradiction(name: ParsedName, kind: str, wnid: str, lemmas: Lemmas) -> str:
    """Return words of a name that mean another thing than its candidate, ``""`` for none.

    These are a qualifier (*mouse (computer)*), an alternative (*jaguar, car*), the last folders of a path
    (*clipart/zebra*) or the words next to a wnid (*n02085620-zebra*). They mean another thing if they are a
    lemma, no sense of the lemma is the candidate or an ancestor, and the candidate's lemmas and definition
    do not contain them. Adjectives, viewpoints of a place, and words that WordNet capitalises, such as the
    family of a species, do not count.
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


NO_NOUN = "no word of the name is a noun of WordNet"
COMMON = "common"
"""Kind of a candidate that comes from the other classes instead of the name."""

_ROUTES = {
    "synset": "the name contains the synset",
    "exact": "the name is the noun {lemma!r}",
    "variant": "the name is a form of {lemma!r}",
    "qualified": "the name and its qualifier are {lemma!r}",
    "related": "WordNet lacks the name; {lemma!r} begins with the same words",
    "within": "WordNet lacks the name; {lemma!r} contains its words",
    "apposed": "the name is {lemma!r}, followed by its kind",
    "head": "WordNet lacks the name; its head noun is {lemma!r}",
    "holding": "WordNet lacks the name and its last word; {lemma!r} contains the last word",
    "told": "its definition or lemma {lemma!r} contains the other words of the name",
    "part": "WordNet lacks the name, which ends in {lemma!r}",
    "modifier": "WordNet lacks the name and its last word; the words before are {lemma!r}",
    "aside": "WordNet lacks the name; its qualifier is {lemma!r}",
    "spelling": "WordNet lacks the name, which is {lemma!r} with one letter changed",
    "longer": "WordNet has {lemma!r}, which contains the name",
}
"""Kind of route -> its explanation."""
_ADDED = "assigned by our supplement to WordNet"


@dataclass(frozen=True)
class Candidate:
    """A synset that a name may mean: its share of the name's vote, and the route from the name to it.

    ``kind`` is one of `wordnet_splits.linking.candidates.KINDS`, or `COMMON` with a share of 0; ``sense``
    counts from 1 among the ``senses`` of ``lemma``. ``added`` if the supplement to WordNet gives the lemma
    this sense.
    """

    wnid: str
    share: float
    kind: str
    lemma: str
    sense: int
    senses: int
    added: bool = False


class Explainer:
    """Explains proposals; ``wnids`` has the wnid of each name, ``""`` for none.

    ``lexicon`` : lexicon of names in another language, which the reasons translate; ``""`` for English.
    """

    def __init__(self, taxonomy: Taxonomy, wnids: Sequence[str], lexicon: str = "") -> None:
        self._taxonomy = taxonomy
        self._lexicon = lexicon
        self._below: Counter[str] = Counter()
        self._same = Counter(wnids)
        self._kin_of: dict[str, str] = {}
        for wnid, count in self._same.items():
            if wnid:
                self._below.update(dict.fromkeys(taxonomy.ancestors(wnid), count))

    def reason(self, choice: Candidate | None) -> str:
        """Return the reason for the proposal ``choice``."""
        if choice is None or choice.kind == COMMON:
            among = self._among(choice.wnid) if choice else ""
            return self._in_lexicon("; ".join(filter(None, (NO_NOUN, among))))
        parts = [self._in_lexicon(_ROUTES[choice.kind].format(lemma=choice.lemma.replace("_", " ")))]
        if self._lexicon and choice.kind != "synset":
            words = ", ".join(lemma.replace("_", " ") for lemma in self._taxonomy.lemmas(choice.wnid))
            parts.append(f"in English {words} ({self._taxonomy.name(choice.wnid)})")
        if choice.added:
            parts.append(_ADDED)
        elif choice.kind != "synset":
            which = f"sense {choice.sense} of {choice.senses}"
            parts.append("its only sense" if choice.senses == 1 else which)
        parts.append(self._kin(choice.wnid))
        if count := self._same[choice.wnid] - 1:
            noun = "synset" if self._taxonomy.is_wordnet else "node"
            parts.append(f"{count} other class{'es have' if count > 1 else ' has'} this {noun}")
        return "; ".join(filter(None, parts))

    def _in_lexicon(self, text: str) -> str:
        """Return a text about WordNet with the lexicon of another language, or a hierarchy, in its place."""
        if self._lexicon:
            return text.replace("WordNet", self._lexicon)
        if self._taxonomy.is_wordnet:
            return text
        title = self._taxonomy.title
        named = text.replace("WordNet", title).replace("contains the synset", "identifies a node")
        return named if "WordNet" in text else f"{title}: {named}"

    def _among(self, wnid: str) -> str:
        """Return the number of names below a synset, for a name that does not lead to it."""
        word = self._taxonomy.lemmas(wnid)[0].replace("_", " ")
        return f"{self._below[wnid]} other classes are below {word!r}"

    def _kin(self, wnid: str) -> str:
        """Return the nearest synset above that other names share, with their number."""
        if wnid not in self._kin_of:
            self._kin_of[wnid] = self._find_kin(wnid)
        return self._kin_of[wnid]

    def _find_kin(self, wnid: str) -> str:
        same = self._same[wnid]
        shared = {
            w: n for w in self._taxonomy.ancestors(wnid) if (n := self._below[w] - same) > 0 and w != wnid
        }
        if not shared:
            return ""
        nearest = max(shared, key=lambda w: (self._taxonomy.max_depth(w), w))
        count = shared[nearest]
        if not self._taxonomy.max_depth(nearest):
            return ""
        word = self._taxonomy.lemmas(nearest)[0].replace("_", " ")
        return f"{count} other class{'es are' if count > 1 else ' is'} below {word!r}, too"
