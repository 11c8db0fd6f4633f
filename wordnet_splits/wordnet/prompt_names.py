"""Names of classes for a text encoder: a distinct and readable name of each class, by one rule.

A class has the first word of its name (*tench* of *tench, Tinca tinca*). The word is qualified if it is also
a name of another class (ImageNet has two classes *crane*, and *missile* is a synonym of *projectile*), or if
texts tagged with WordNet's senses have it more often in another sense (ImageNet's *plane* is the
carpenter's). The first of these that is distinct is taken:

1. a longer synonym with the word in it: *Cardigan Welsh corgi*, *carpenter's plane*. It is also taken where
   no tagged text decides, but WordNet lists another sense first: *chow chow*, *hockey puck*;
2. the word and a hypernym, the closest whose own usual sense it is: *crane (wading bird)*;
3. the word and WordNet's first definition of the class.

CLIP's authors qualify such names by hand ("kite (bird of prey)"); Ge et al. (Improving Zero-shot
Generalization and Robustness of Multi-modal Models, CVPR 2023) add hypernyms to prompts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from wordnet_splits.base.names import same_spelling
from wordnet_splits.wordnet.lexicons import ENGLISH, frequency, read_nouns, sense_counts
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import is_wordnet30

RARE, LATER = "rare_sense", "later_sense"
_WNID = re.compile(r"n\d{8}")

NamedClass = tuple[str, Sequence[str]]
"""The name of a class as its publisher writes it, and its wnids."""


def folded(name: str) -> str:
    """Return a name without case, hyphens and repeated separators, which tokenizers fold."""
    return re.sub(r"[\s-]+", " ", same_spelling(name)).strip().casefold()


class Nouns:
    """The nouns of WordNet: words of a synset, and the usual senses of a word."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self._tagged = sense_counts() if is_wordnet30(taxonomy) else {}

    def words(self, wnid: str) -> Sequence[str]:
        """Return the words of a synset, the usual first, with blanks between their parts."""
        return [lemma.replace("_", " ") for lemma in self.taxonomy.lemmas(wnid)]

    def senses(self, word: str) -> Mapping[str, int]:
        """Return the senses of a word in WordNet's order, and how often each is tagged in texts."""
        lemma = word.replace(" ", "_").lower()
        counts = self._tagged.get(lemma) or self._tagged.get(self.taxonomy.morphy(lemma) or "", ())
        return {w: sum(counts[n : n + 1]) for n, w in enumerate(self.taxonomy.senses(lemma))}

    def usual(self, word: str) -> list[str]:
        """Return the senses of a word that no other sense exceeds in tagged texts."""
        senses = self.senses(word)
        most = max(senses.values(), default=0)
        return [wnid for wnid, count in senses.items() if count == most]

    def synonyms(self, name: str, wnids: Sequence[str]) -> list[str]:
        """Return the words of a class, the preferred first: its publisher's, then those of its synsets."""
        words = [word for wnid in wnids for word in self.words(wnid)]
        return words if _WNID.fullmatch(name) else [*map(as_written, name.split(",")), *words]

    def definition(self, wnid: str) -> str:
        """Return the first definition of a synset, ``""`` for none."""
        return self.taxonomy.first_definition(wnid)


class ForeignNouns(Nouns):
    """The nouns of another language; their senses are as frequent as their English words."""

    def __init__(self, taxonomy: Taxonomy, language: str) -> None:
        super().__init__(taxonomy)
        self._words: dict[str, list[str]] = {}
        self._wnids: dict[str, list[str]] = {}
        for lemma, wnid in read_nouns(language, taxonomy)[1]:
            self._words.setdefault(wnid, []).append(as_written(lemma))
            self._wnids.setdefault(folded(lemma), []).append(wnid)

    def words(self, wnid: str) -> Sequence[str]:
        """Return the words of a synset in the lexicon's order."""
        return self._words.get(wnid, ())

    def senses(self, word: str) -> Mapping[str, int]:
        """Return the senses of a word, the most frequent first."""
        counts = {wnid: frequency(wnid, self.taxonomy) for wnid in self._wnids.get(folded(word), ())}
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def synonyms(self, name: str, wnids: Sequence[str]) -> list[str]:
        """Return the words of a class: its publisher's if of this language, then the unambiguous ones."""
        words = [w for w in super().synonyms(name, wnids) if not self.senses(w).keys().isdisjoint(wnids)]
        own = words[:1] if words and as_written(name.split(",")[0]) == words[0] else []
        words.sort(key=lambda word: (not word.isalpha(), set(self.usual(word)).isdisjoint(wnids)))
        return own + words

    def definition(self, wnid: str) -> str:
        """Return ``""`` : WordNet's definitions are English."""
        return ""


def nouns_of(language: str, taxonomy: Taxonomy) -> Nouns:
    """Return the nouns of a language: ``en``, or as of `wordnet_splits.wordnet.lexicons.read_nouns`."""
    return Nouns(taxonomy) if language == ENGLISH else ForeignNouns(taxonomy, language)


def prompt_names(classes: Sequence[NamedClass], nouns: Nouns) -> list[str]:
    """Return a name for each class.

    Names are distinct in `folded` form, unless classes have no synset, or nothing in WordNet tells them
    apart. They do not depend on the order of the classes. Without a word in ``nouns`` the name is ``""``.
    """
    named = names_of_classes(classes, nouns)
    options = []
    for name, wnids in classes:
        words = name_options(name, wnids, nouns)
        has_longer = len(words) > 1 and not words[1].endswith(")")
        own = [
            word
            for word in words
            if misleading(word, wnids, nouns) not in ((RARE, LATER) if has_longer else (RARE,))
            and not any(is_other(classes[other], (name, wnids)) for other in named.get(folded(word), ()))
        ]
        options.append(own or words or [""])
    chosen = [0] * len(options)
    while True:
        names = [words[n] for words, n in zip(options, chosen, strict=True)]
        times = Counter(map(folded, names))
        movable = [
            i for i, name in enumerate(names) if times[folded(name)] > 1 and options[i][chosen[i] + 1 :]
        ]
        if not movable:
            return names
        for i in movable:
            chosen[i] += 1


def names_of_classes(classes: Sequence[NamedClass], nouns: Nouns) -> dict[str, list[int]]:
    """Return each name in `folded` form -> its classes: names of the publisher, and words of the synsets."""
    named: dict[str, list[int]] = {}
    for n, (name, wnids) in enumerate(classes):
        words = [name, *map(as_written, name.split(",")), *(w for wnid in wnids for w in nouns.words(wnid))]
        for key in dict.fromkeys(map(folded, words)):
            named.setdefault(key, []).append(n)
    return named


def is_other(a: NamedClass, b: NamedClass) -> bool:
    """Return whether two classes differ and have no synset in common, as *bedroom* and *bedchamber* do."""
    return a != b and set(a[1]).isdisjoint(b[1])


def misleading(word: str, wnids: Collection[str], nouns: Nouns) -> str:
    """Return whether a word of a class means something else: `RARE` if in most tagged texts.

    `LATER` : only WordNet lists another sense first; ``""`` : neither, or the class is no sense of the word.
    """
    senses = nouns.senses(word)
    if senses.keys().isdisjoint(wnids):
        return ""
    if set(nouns.usual(word)).isdisjoint(wnids):
        return RARE
    return "" if next(iter(senses)) in wnids else LATER


def name_options(name: str, wnids: Sequence[str], nouns: Nouns) -> list[str]:
    """Return the word of a class and its qualified names, the preferred first; none without a word."""
    return list(_options(nouns.synonyms(name, wnids), wnids, nouns))


def _options(synonyms: Sequence[str], wnids: Sequence[str], nouns: Nouns) -> Iterator[str]:
    yield from synonyms[:1]
    for word in synonyms[:1]:
        for synonym in synonyms[1:]:
            longer = f" {folded(word)} " in f" {folded(synonym)} " and folded(word) != folded(synonym)
            if longer and not set(nouns.usual(synonym)[:1]).isdisjoint(wnids):
                yield synonym
        for wnid in wnids:
            ancestors = nouns.taxonomy.ancestors(wnid)
            for ancestor in sorted(ancestors.keys() - {wnid}, key=lambda a: (ancestors[a], a)):
                for kind in nouns.words(ancestor) if nouns.taxonomy.parents(ancestor) else ():
                    if folded(word) not in folded(kind) and nouns.usual(kind)[:1] == [ancestor]:
                        yield f"{word} ({kind})"
                        break
        for definition in filter(None, map(nouns.definition, wnids)):
            yield f"{word} ({definition})"


def as_written(part: str) -> str:
    """Return a publisher's name in words: ``church/outdoor`` is *church (outdoor)*."""
    part = part.replace("_", " ").strip()
    word, _, aside = part.partition("/")
    return f"{word} ({aside})" if word and aside else part
