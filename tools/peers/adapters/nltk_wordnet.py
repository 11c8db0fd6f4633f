"""NLTK's WordNet reader, as far as nouns go, over our taxonomy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import total_ordering
from typing import Any

from tools.peers.statements import OutOfScope, Outside, adapted
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.similarity import compare
from wordnet_splits.taxonomy import Taxonomy

WORDNET = Taxonomy.embedded()


@total_ordering
class Synset:
    """A noun synset with the methods of NLTK's."""

    def __init__(self, wnid: str) -> None:
        self.wnid = wnid

    def __repr__(self) -> str:
        return f"Synset('{self.name()}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Synset) and self.wnid == other.wnid

    def __lt__(self, other: object) -> bool:
        return self.name() < other.name() if isinstance(other, Synset) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.wnid)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name, name=name, obj=self)
        raise OutOfScope(f"Synset.{name}")

    @adapted
    def name(self) -> str:
        return WORDNET.name(self.wnid)

    def pos(self) -> str:
        return "n"

    @adapted
    def offset(self) -> int:
        return int(self.wnid[1:])

    @adapted
    def definition(self) -> str:
        return WORDNET.definition(self.wnid)

    @adapted
    def examples(self) -> list[str]:
        return list(WORDNET.examples(self.wnid))

    @adapted
    def lemma_names(self, lang: str = "eng") -> list[str]:
        _english(lang)
        return list(WORDNET.lemmas(self.wnid))

    def lemmas(self, lang: str = "eng") -> list[Lemma]:
        return [Lemma(self, name) for name in self.lemma_names(lang)]

    def _edges(self, above: bool, instance: bool) -> list[Synset]:
        wnids = WORDNET.parents(self.wnid) if above else WORDNET.children(self.wnid)
        edges = {wnid: (self.wnid, wnid) if above else (wnid, self.wnid) for wnid in wnids}
        return [Synset(wnid) for wnid, edge in edges.items() if _is_instance(*edge) is instance]

    @adapted
    def hypernyms(self) -> list[Synset]:
        return self._edges(above=True, instance=False)

    @adapted
    def instance_hypernyms(self) -> list[Synset]:
        return self._edges(above=True, instance=True)

    @adapted
    def hyponyms(self) -> list[Synset]:
        return self._edges(above=False, instance=False)

    @adapted
    def instance_hyponyms(self) -> list[Synset]:
        return self._edges(above=False, instance=True)

    @adapted
    def member_holonyms(self) -> list[Synset]:
        return _synsets(WORDNET.wholes(self.wnid, "member"))

    @adapted
    def part_holonyms(self) -> list[Synset]:
        return _synsets(WORDNET.wholes(self.wnid, "part"))

    @adapted
    def substance_holonyms(self) -> list[Synset]:
        return _synsets(WORDNET.wholes(self.wnid, "substance"))

    @adapted
    def member_meronyms(self) -> list[Synset]:
        return _synsets(WORDNET.parts(self.wnid, "member"))

    @adapted
    def part_meronyms(self) -> list[Synset]:
        return _synsets(WORDNET.parts(self.wnid, "part"))

    @adapted
    def substance_meronyms(self) -> list[Synset]:
        return _synsets(WORDNET.parts(self.wnid, "substance"))

    @adapted
    def root_hypernyms(self) -> list[Synset]:
        return _synsets(wnid for wnid in WORDNET.ancestors(self.wnid) if not WORDNET.parents(wnid))

    @adapted
    def min_depth(self) -> int:
        return WORDNET.min_depth(self.wnid)

    @adapted
    def max_depth(self) -> int:
        return WORDNET.max_depth(self.wnid)

    @adapted
    def hypernym_paths(self) -> list[list[Synset]]:
        parents = WORDNET.parents(self.wnid)
        if not parents:
            return [[self]]
        return [[*path, self] for parent in parents for path in Synset(parent).hypernym_paths()]

    def closure(self, relation: Callable[[Synset], list[Synset]], depth: int = -1) -> Iterator[Synset]:
        reached, level = {self}, [self]
        while level and depth:
            depth -= 1
            level = [synset for below in level for synset in relation(below)]
            level = [synset for synset in dict.fromkeys(level) if synset not in reached]
            reached.update(level)
            yield from level

    @adapted
    def lowest_common_hypernyms(
        self, other: Synset, simulate_root: bool = False, use_min_depth: bool = False
    ) -> list[Synset]:
        if use_min_depth:
            raise OutOfScope("lowest_common_hypernyms(use_min_depth=True)")
        return [Synset(compare(self.wnid, _noun(other)).lcs)]

    @adapted
    def shortest_path_distance(self, other: Synset, simulate_root: bool = False) -> int:
        return compare(self.wnid, _noun(other)).distance

    @adapted
    def path_similarity(self, other: Synset, verbose: bool = False, simulate_root: bool = True) -> float:
        return compare(self.wnid, _noun(other)).path

    @adapted
    def lch_similarity(self, other: Synset, verbose: bool = False, simulate_root: bool = True) -> float:
        return compare(self.wnid, _noun(other)).lch

    @adapted
    def wup_similarity(self, other: Synset, verbose: bool = False, simulate_root: bool = True) -> float:
        return compare(self.wnid, _noun(other)).wup


@total_ordering
class Lemma:
    """One word of a synset, with the methods of NLTK's."""

    def __init__(self, synset: Synset, name: str) -> None:
        self._synset, self._name = synset, name

    def __repr__(self) -> str:
        return f"Lemma('{self._synset.name()}.{self._name}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lemma) and (self._synset, self._name) == (other._synset, other._name)

    def __lt__(self, other: object) -> bool:
        return repr(self) < repr(other) if isinstance(other, Lemma) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._synset, self._name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name, name=name, obj=self)
        raise OutOfScope(f"Lemma.{name}")

    def name(self) -> str:
        return self._name

    def synset(self) -> Synset:
        return self._synset


class Reader:
    """``nltk.corpus.wordnet`` of nouns."""

    NOUN, VERB, ADJ, ADV = "n", "v", "a", "r"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name, name=name, obj=self)
        raise OutOfScope(f"wordnet.{name}")

    def ensure_loaded(self) -> None:
        pass

    @adapted
    def synset(self, name: str) -> Synset:
        _noun_only(name.rsplit(".", 2)[1])
        return Synset(WORDNET.from_name(name))

    @adapted
    def synsets(self, lemma: str, pos: str | None = None, lang: str = "eng") -> list[Synset]:
        _english(lang)
        _noun_only(pos)
        return _synsets(WORDNET.senses(lemma.replace(" ", "_")))

    @adapted
    def lemma(self, name: str, lang: str = "eng") -> Lemma:
        _english(lang)
        synset, _, word = name.rpartition(".")
        return Lemma(self.synset(synset), word)

    @adapted
    def morphy(self, form: str, pos: str | None = None) -> str | None:
        _noun_only(pos)
        return WORDNET.morphy(form)

    @adapted
    def all_synsets(self, pos: str | None = None, lang: str = "eng") -> Iterator[Synset]:
        _english(lang)
        _noun_only(pos)
        return map(Synset, WORDNET)

    @adapted
    def synset_from_pos_and_offset(self, pos: str, offset: int) -> Synset:
        _noun_only(pos)
        wnid = f"n{offset:08d}"
        WORDNET.index(wnid)
        return Synset(wnid)

    def path_similarity(self, a: Synset, b: Synset, **options: bool) -> float:
        return a.path_similarity(b, **options)

    def lch_similarity(self, a: Synset, b: Synset, **options: bool) -> float:
        return a.lch_similarity(b, **options)

    def wup_similarity(self, a: Synset, b: Synset, **options: bool) -> float:
        return a.wup_similarity(b, **options)


def _synsets(wnids: Any) -> list[Synset]:
    return [Synset(wnid) for wnid in wnids]


def _is_instance(child: str, parent: str) -> bool:
    graph, node = WORDNET.graph, WORDNET.index(child)
    at = graph.parents(node).index(WORDNET.index(parent))
    return bool(graph.instance[graph.parent_indptr[node] + at])


def _noun(synset: object) -> str:
    if not isinstance(synset, Synset):
        raise TaxonomyError(f"{synset!r} is not a synset")
    return synset.wnid


def _noun_only(pos: str | None) -> None:
    if pos not in (None, "n"):
        raise OutOfScope("verbs, adjectives and adverbs")


def _english(lang: str) -> None:
    if lang != "eng":
        raise OutOfScope("other languages")


def install() -> None:
    """Put the adapter in the place of NLTK's corpora."""
    import nltk.corpus

    nltk.corpus.wordnet = Reader()
    for name in ("wordnet31", "genesis"):
        setattr(nltk.corpus, name, Outside("other corpora"))
    nltk.corpus.wordnet_ic = Outside("information content")
