"""Names of classes for a text encoder: a distinct and readable name of each class, by one rule.

A class has the first word of its name (*tench* of *tench, Tinca tinca*). The word is qualified if it is also
a name of another class (ImageNet has two classes *crane*, and *missile* is a synonym of *projectile*), or if
it misleads: a photo of it may show something else, at least as often in texts tagged with WordNet's senses
(*kite* is a toy, too, and ImageNet's *plane* the carpenter's). Proper names and figures of speech do not
mislead (*jay*, *tiger*), nor do the food or fur of the class (*broccoli*, *otter*), synsets with two words in
common (*radio*, *wireless*) and, where a text has the class's sense, too, abstractions (*church*). The first
of these that is distinct is taken:

1. a longer synonym with the word or a hypernym in it: *Cardigan Welsh corgi*, *amphibious vehicle*. Where no
   text has the word in this sense, it also replaces a word that says no kind (*basset hound*), or of which
   WordNet lists another sense first (*hockey puck*);
2. the word and a hypernym in common words, the closest that does not mislead: *crane (wading bird)*;
3. the word and a synonym in common words, *pick (plectrum)*, or any hypernym;
4. the word and WordNet's first definition of the class.

CLIP's authors qualify such names by hand ("kite (bird of prey)"); Ge et al. (Improving Zero-shot
Generalization and Robustness of Multi-modal Models, CVPR 2023) add hypernyms to prompts.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from wordnet_splits.base.names import same_spelling
from wordnet_splits.wordnet.lexicons import ENGLISH, frequency, gloss_counts, read_nouns, sense_counts
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.identifiers import is_wordnet30

RARE, LATER = "rare_sense", "later_sense"
COMMON, WIDE = 10, 1000
"""Least number of a common word in WordNet's glosses; least number of synsets below a hypernym that says
little, such as *device*."""
_WNID = re.compile(r"n\d{8}")
_FILES = (
    "n00001740: n01313093:animal n02665985:artifact n04615866: n05216365:body n05611302: n07555863:food "
    "n07938773: n09483738:person n11408559: n11529603:plant n13240514: n14580597:substance n15113229:"
)
_FIRST, _KINDS = zip(*(text.split(":") for text in _FILES.split()), strict=True)
"""WordNet 3.0's lexicographer files of things, by their first synsets; ``""`` for abstractions and places."""
_FIGURE = re.compile(r"an? .*\bperson\b")
_SAME = ({"plant", "food"}, {"animal", "food"}, {"animal", "substance"}, {"plant", "substance"})

NamedClass = tuple[str, Sequence[str]]
"""The name of a class as its publisher writes it, and its wnids."""


def folded(name: str) -> str:
    """Return a name without case, hyphens and repeated separators, which tokenizers fold."""
    return re.sub(r"[\s-]+", " ", same_spelling(name)).strip().casefold()


class Nouns:
    """The nouns of WordNet: words of a synset, and the usual senses of a word."""

    in_english = True

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

    def kind(self, wnid: str) -> str:
        """Return what a photo of a synset shows, ``""`` for an abstraction or in another hierarchy."""
        return _KINDS[bisect(_FIRST, wnid) - 1] if self._tagged else ""

    def hypernyms(self, wnids: Iterable[str]) -> list[tuple[str, str]]:
        """Return the words above some synsets, and their synsets, the nearest first, without the root."""
        above = [(n, a) for wnid in wnids for a, n in self.taxonomy.ancestors(wnid).items() if a != wnid]
        return [(word, a) for _, a in sorted(above) if self.taxonomy.parents(a) for word in self.words(a)]

    def is_apart(self, wnid: str, word: str, wnids: Collection[str]) -> bool:
        """Return whether a sense of a word is another thing than a class, no name and no figure of speech."""
        above, own = self.taxonomy.ancestors, {w for own in wnids for w in self.words(own)}
        return not (
            not above(wnid).keys().isdisjoint(wnids)
            or any(wnid in above(w) for w in wnids)
            or (len(own.intersection(self.words(wnid))) > 1 and self.kind(wnid) in map(self.kind, wnids))
            or any(w[0].isupper() and folded(w) == folded(word) for w in {*self.words(wnid)} - own)
            or (self.kind(wnid) == "person" and _FIGURE.match(self.taxonomy.definition(wnid)))
        )

    def says(self, word: str, wnid: str) -> bool:
        """Return whether a word tells a kind of things: it mostly means this synset, which is no wide one."""
        usual = [w for w in self.usual(word) if self.kind(w) == self.kind(wnid)]
        clear = len(usual) == 1 or self.senses(word).get(wnid, 0) > 0
        return usual[:1] == [wnid] and clear and len(self.taxonomy.descendants(wnid)) < WIDE

    def is_common(self, words: str, least: int = COMMON) -> bool:
        """Return whether WordNet's glosses have each of some words at least so often; True elsewhere."""
        parts = re.findall("[a-z]+", words.lower())
        plain = len(parts) < 3 and all(gloss_counts()[part] >= least for part in parts)
        return plain or not (self._tagged and self.in_english)

    def synonyms(self, name: str, wnids: Sequence[str]) -> list[str]:
        """Return the words of a class, the preferred first: its publisher's, then those of its synsets."""
        words = [word for wnid in wnids for word in self.words(wnid)]
        return words if _WNID.fullmatch(name) else [*map(as_written, name.split(",")), *words]


class ForeignNouns(Nouns):
    """The nouns of another language; their senses are as frequent as their English words."""

    in_english = False

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


def nouns_of(language: str, taxonomy: Taxonomy) -> Nouns:
    """Return the nouns of a language: ``en``, or as of `wordnet_splits.wordnet.lexicons.read_nouns`."""
    return Nouns(taxonomy) if language == ENGLISH else ForeignNouns(taxonomy, language)


def prompt_names(classes: Sequence[NamedClass], nouns: Nouns) -> list[str]:
    """Return a name for each class.

    Names are distinct in `folded` form, unless classes have no synset, or nothing in WordNet tells them
    apart. They do not depend on the order of the classes. Without a word in ``nouns`` the name is ``""``.
    """
    named = names_of_classes(classes, nouns)

    def options(item: NamedClass) -> Iterator[str]:
        for word in name_options(*item, nouns):
            others = (classes[other] for other in named.get(folded(word), ()))
            if misleading(word, item[1], nouns) != RARE and not any(is_other(c, item) for c in others):
                yield word
        yield from name_options(*item, nouns)

    remaining = [options(item) for item in classes]
    names = [next(words, "") for words in remaining]
    while True:
        keys = [folded(name).removesuffix("es").removesuffix("s") for name in names]
        times = Counter(keys)  # ImageNet has a sunglass and sunglasses
        moved = {i: next(remaining[i], "") for i, key in enumerate(keys) if times[key] > 1}
        if not any(moved.values()):
            return names
        names = [moved.get(i) or name for i, name in enumerate(names)]


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
    """Return whether a word of a class means something else: `RARE` if a photo of it may show that.

    `LATER` : only WordNet lists another sense first; ``""`` : neither, or the class is no sense of the word.
    """
    senses = nouns.senses(word)
    own = {nouns.kind(wnid): senses[wnid] for wnid in wnids if wnid in senses}
    if not own:
        return ""
    most = max(own.values())
    for other, times in senses.items():
        kind = nouns.kind(other)
        tie = times == most and own.keys().isdisjoint(("", kind)) and (kind != "person" or "animal" in own)
        seen = (times > most or tie or times == most > 0) if kind else times > most == 0
        if not seen or any({kind, k} in _SAME for k in own) or not nouns.is_apart(other, word, wnids):
            continue
        if not folded(word).endswith(
            tuple(folded(k) for k, _ in nouns.hypernyms(wnids))
        ):  # a red fox is a fox
            return RARE
    return "" if next(iter(senses)) in wnids else LATER


def name_options(name: str, wnids: Sequence[str], nouns: Nouns) -> Iterator[str]:
    """Yield the word of a class and its qualified names, the preferred first; none without a word."""
    words = nouns.synonyms(name, wnids)
    own = [w for w in words[1:] if not set(nouns.usual(w)[:1]).isdisjoint(wnids)]
    for word in words[:1]:
        longer = [w for w in own if f" {folded(word)} " in f" {folded(w)} " and folded(w) != folded(word)]
        above = nouns.hypernyms(wnids)
        heads = {folded(kind) for kind, _ in above}
        telling = [w for w in own if " " in w and folded(w.split()[-1]) in heads]
        if not any(map(nouns.senses(word).get, wnids)):  # no text has it in this sense
            later = misleading(word, wnids, nouns) == LATER
            named = folded(word.split()[-1]) in heads
            yield from (w for w in longer if later or (w in telling and not named))
        yield word
        yield from longer
        yield from (w for w in telling if nouns.is_common(w, 1))
        above = [(kind, a) for kind, a in above if nouns.is_common(kind) and folded(word) not in folded(kind)]
        yield from (f"{word} ({kind})" for kind, a in above if nouns.says(kind, a))
        asides = [w for w in own if len(nouns.senses(w)) == 1 and nouns.is_common(w, 4)]
        definitions = map(nouns.taxonomy.first_definition, wnids if nouns.in_english else ())
        asides += [*(kind for kind, _ in above), *filter(None, definitions)]
        yield from (f"{word} ({aside})" for aside in asides)


def as_written(part: str) -> str:
    """Return a publisher's name in words: ``church/outdoor`` is *church (outdoor)*."""
    part = part.replace("_", " ").strip()
    word, _, aside = part.partition("/")
    return f"{word} ({aside})" if word and aside else part
