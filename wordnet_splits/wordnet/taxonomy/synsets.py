"""The WordNet noun taxonomy: synsets named by wnid, hypernyms, depths, words.

A wnid is ``n`` and the 8-digit offset of the synset in WordNet 3.0, as ImageNet uses it. Edges are
hypernyms and instance hypernyms: a directed acyclic graph with the single root entity (n00001740).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.taxonomy import graph, lexicon, wndb
from wordnet_splits.wordnet.taxonomy.graph import NO_PARTS, Graph, Ints, PartGraph
from wordnet_splits.wordnet.taxonomy.lexicon import LemmaIndex, Lexicon

if TYPE_CHECKING:
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

_WNID = re.compile(r"n\d{8}")
_NAME = re.compile(r".+\.n\.\d+")


class Taxonomy:
    """Noun synsets under hypernymy, immutable.

    Nodes are the integers 0..n-1 in the order of their wnids; methods take wnids, arrays are indexed by node.
    Every method that takes a wnid raises TaxonomyError when the synset is not in this version.
    """

    def __init__(
        self,
        version: str,
        ids: npt.NDArray[np.uint32] | tuple[str, ...],
        graph: Graph,
        lexicon: Lexicon,
        texts: Mapping[str, bytes] | None = None,
        *,
        parts: PartGraph = NO_PARTS,
        reference: str | None = None,
    ) -> None:
        self.version = version
        self.graph = graph
        self._ids = ids  # offsets in data.noun, or the wnids themselves
        self._words = lexicon
        self._texts = texts
        self._parts = parts
        self._reference = reference  # pickled instead of the content

    @classmethod
    def embedded(cls) -> Taxonomy:
        """Return WordNet 3.0 as shipped in the package; every call returns the same object."""
        return _embedded()

    @classmethod
    def from_wndb(cls, directory: str | Path) -> Taxonomy:
        """Return the nouns of a WNDB directory of any version (Debian's ``/usr/share/wordnet`` as it is).

        Raises
        ------
        TaxonomyError : ``data.noun``, ``index.noun`` or ``noun.exc`` is missing or malformed.
        """
        return cls.from_texts(wndb.directory_texts(Path(directory)), str(directory))

    @classmethod
    def from_nltk(cls, reader: WordNetCorpusReader | None = None) -> Taxonomy:
        """Return the nouns of NLTK's ``wordnet`` corpus, or of an NLTK reader of another one.

        Raises
        ------
        MissingPackageError : NLTK, the extra ``nltk``, is not installed.
        TaxonomyError : the corpus is not installed.
        """
        return cls.from_texts(wndb.nltk_texts(reader), "nltk")

    @classmethod
    def from_edges(
        cls,
        parents: Mapping[str, Sequence[str]],
        *,
        instances: Mapping[str, Sequence[str]] | None = None,
        lemmas: Mapping[str, Sequence[str]] | None = None,
        wholes: Mapping[str, Sequence[str]] | None = None,
        version: str = "toy",
    ) -> Taxonomy:
        """Return a small taxonomy from child -> parents; roots, without parents, may be left out.

        Parameters
        ----------
        parents, instances : hypernyms and instance hypernyms of each synset.
        lemmas : words of each synset; its id by default.
        wholes : child -> the synsets that it is a part of.
        version : name of the taxonomy in errors.
        """
        instances, lemmas = instances or {}, lemmas or {}
        all_parents = {p for edges in (parents, instances) for row in edges.values() for p in row}
        wnids = tuple(sorted(all_parents | set(parents) | set(instances)))
        node_of = {wnid: node for node, wnid in enumerate(wnids)}
        edges = [
            {node_of[p]: True for p in instances.get(wnid, ())}
            | {node_of[p]: False for p in parents.get(wnid, ())}
            for wnid in wnids
        ]
        words = lexicon.from_lemma_lists([list(lemmas.get(wnid, (wnid,))) for wnid in wnids])
        holonyms = PartGraph.from_names(wholes or {}, node_of)
        return cls(version, wnids, graph.from_edges(edges), words, parts=holonyms)._checked()

    @classmethod
    def from_texts(cls, texts: Mapping[str, bytes], where: str) -> Taxonomy:
        """Return the nouns of WNDB files: name -> content; ``where`` is their location in errors."""
        nouns = wndb.read(texts, where)
        taxonomy = cls(nouns.version, nouns.offsets, nouns.graph, nouns.lexicon, texts, parts=nouns.parts)
        return taxonomy._checked()

    def _checked(self) -> Taxonomy:
        if len(self) == 0:
            raise TaxonomyError("a taxonomy needs at least one synset", where=self.version)
        try:
            _ = self.graph.max_depths
        except graph.Cycle as error:
            raise TaxonomyError("hypernyms form a cycle", where=self.wnid(error.node)) from error
        return self

    def tree(self, choices: Mapping[str, str] | None = None) -> Taxonomy:
        """Return the projection to at most one parent per synset ("imagenet-tree").

        Instance edges are dropped. A synset with several hypernyms keeps its hypernym in ``choices``. Without
        a choice it is undecided: it and the synsets below it raise TaxonomyError for parents, ancestors and
        depth, and ``children`` and ``descendants`` do not reach it. To test whether a synset is below
        another in the tree, use ``is_ancestor``.

        Parameters
        ----------
        choices : child -> the parent that it keeps; default: ImageNet's former is-a file, which lists every
            synset with several hypernyms (WordNet 3.0 only).
        """
        if choices is None and self._reference == "embedded":
            return _imagenet_tree()
        choices = graph.imagenet_choices() if choices is None else choices
        nodes = {self.index(child): self.index(parent) for child, parent in choices.items()}
        projection = graph.tree_of(self.graph, nodes, self.wnid)
        return Taxonomy(self.version, self._ids, projection, self._words, self._texts, parts=self._parts)

    @cached_property
    def wnids(self) -> tuple[str, ...]:
        """Every wnid, ascending: the wnid of node i at i."""
        return self._ids if isinstance(self._ids, tuple) else wndb.wnids(self._ids)

    @cached_property
    def _node_of(self) -> dict[str, int]:
        return dict(zip(self.wnids, range(len(self)), strict=True))

    @property
    def root(self) -> str:
        """The wnid of the root; the smallest, where there are several."""
        return self.wnid(int(self.graph.roots[0]))

    def __len__(self) -> int:
        return len(self.graph)

    def __contains__(self, wnid: object) -> bool:
        return wnid in self._node_of

    def __iter__(self) -> Iterator[str]:
        return iter(self.wnids)

    def __repr__(self) -> str:
        kind = "" if self.graph.unresolved is None else ", tree"
        return f"Taxonomy(version={self.version!r}, synsets={len(self)}{kind})"

    def _repr_html_(self) -> str:
        return f"<p>WordNet {escape(self.version)}: {len(self):,} noun synsets, root {self.root}</p>"

    def __reduce__(self) -> tuple[object, ...]:
        if self._reference is not None:
            return _REFERENCES[self._reference], ()
        content = (self.version, self._ids, self.graph, self._words, self._texts)
        return partial(Taxonomy, parts=self._parts), content

    def index(self, wnid: str) -> int:
        """Return the node of ``wnid``."""
        try:
            return self._node_of[wnid]
        except KeyError:
            raise self._no_synset(wnid) from None

    def indices(self, wnids: Iterable[str]) -> Ints:
        """Return the nodes of ``wnids``: (len,) int32 in their order."""
        return np.array([self.index(wnid) for wnid in wnids], np.int32)

    def wnid(self, node: int) -> str:
        """Return the wnid of ``node``."""
        return self.wnids[node]

    def _no_synset(self, wnid: str) -> TaxonomyError:
        near: Sequence[str] = ()
        if self._words.is_lemma(wnid.lower()):  # a word instead of a wnid
            near = self.senses(wnid)[:3]
        return TaxonomyError(
            f"{wnid!r} is not a noun synset of WordNet {self.version}",
            near=near,
            hint="a wnid is n and the 8-digit offset in WordNet 3.0; other versions have other offsets",
        )

    def parents(self, wnid: str) -> tuple[str, ...]:
        """Return the hypernyms and instance hypernyms of ``wnid``, ascending."""
        node = self.index(wnid)
        if self.graph.unresolved is not None and self.graph.unresolved[node]:
            raise self._undecided(node)
        return tuple(self.wnids[parent] for parent in self.graph.parents(node))

    def children(self, wnid: str) -> tuple[str, ...]:
        """Return the hyponyms and instance hyponyms of ``wnid``, ascending."""
        return tuple(self.wnids[child] for child in self.graph.children(self.index(wnid)))

    def parts(self, wnid: str, kind: str | None = None) -> tuple[str, ...]:
        """Return the direct meronyms of ``wnid``, ascending; ``kind`` is member, part, substance or any."""
        return tuple(self.wnids[node] for node in self._parts.parts_of(self.index(wnid), kind))

    def wholes(self, wnid: str, kind: str | None = None) -> tuple[str, ...]:
        """Return the direct holonyms of ``wnid``: the wholes that it is a part, member or substance of."""
        return tuple(self.wnids[node] for node in self._parts.wholes_of(self.index(wnid), kind))

    def ancestors(self, wnid: str) -> dict[str, int]:
        """Return every ancestor with d(wnid, ancestor), the fewest edges up to it; itself at 0."""
        return {self.wnids[node]: edges for node, edges in self.ancestor_nodes(wnid).items()}

    def ancestor_nodes(self, wnid: str) -> Mapping[int, int]:
        """Return ``ancestors(wnid)`` as nodes."""
        ancestors = self.graph.ancestors(self.index(wnid))
        if self.graph.unresolved is not None:
            for node in ancestors:
                if self.graph.unresolved[node]:
                    raise self._undecided(node)
        return ancestors

    def descendants(self, *wnids: str) -> frozenset[str]:
        """Return every synset at or below any of ``wnids``."""
        return frozenset(self.wnids[node] for node in self.graph.descendants(map(self.index, wnids)))

    def is_ancestor(self, a: str, b: str) -> bool:
        """Return whether ``a`` is ``b`` or an ancestor of ``b``."""
        return self.index(a) in self.ancestor_nodes(b)

    def min_depth(self, wnid: str) -> int:
        """Return the edges of the shortest chain from ``wnid`` to the root."""
        return int(self.graph.min_depths[self._decided(wnid)])

    def max_depth(self, wnid: str) -> int:
        """Return the edges of the longest chain from ``wnid`` to the root."""
        return int(self.graph.max_depths[self._decided(wnid)])

    def _decided(self, wnid: str) -> int:
        node = self.index(wnid)
        if self.graph.max_depths[node] == graph.UNREACHED:
            self.ancestor_nodes(wnid)  # raises, naming the undecided ancestor
        return node

    def _undecided(self, node: int) -> TaxonomyError:
        return TaxonomyError(
            f"the tree records no choice among the hypernyms of {self.wnid(node)} ({self._words.name(node)})",
            hint="add its parent to the choices, or use the full hierarchy",
        )

    def path_up(self, x: str, a: str) -> tuple[str, ...]:
        """Return a shortest chain of parents from ``x`` up to ``a``, both included.

        At every step from ``x``, the smallest next synset on a shortest chain is taken.

        Raises TaxonomyError if ``a`` is not an ancestor of ``x``.
        """
        top, ancestors = self.index(a), self.ancestor_nodes(x)
        if top not in ancestors:
            raise TaxonomyError(f"{a} is not an ancestor of {x}")
        return tuple(self.wnids[node] for node in self.graph.chain_up(self.index(x), top, ancestors))

    def lemmas(self, wnid: str) -> tuple[str, ...]:
        """Return the words of ``wnid`` as the database spells them, underscores for spaces."""
        return self._words.lemmas(self.index(wnid))

    def gloss(self, wnid: str) -> str:
        """Return definition and examples of ``wnid``; the first call unpacks the database's text (0.2 s)."""
        text = self._gloss(wnid)
        if text is None:
            raise TaxonomyError("this taxonomy has no glosses", where=wnid)
        return text

    def _gloss(self, wnid: str) -> str | None:
        node = self.index(wnid)
        if self._texts is None or isinstance(self._ids, tuple):
            return None
        return wndb.gloss(self._texts["data.noun"], int(self._ids[node]))

    def definition(self, wnid: str) -> str:
        """Return the gloss of ``wnid`` without its examples, as NLTK; empty in a taxonomy without glosses."""
        return wndb.split_gloss(self._gloss(wnid) or "")[0]

    def first_definition(self, wnid: str) -> str:
        """Return the first definition of ``wnid``, up to a semicolon outside parentheses."""
        return wndb.first_definition(self.definition(wnid))

    def examples(self, wnid: str) -> tuple[str, ...]:
        """Return the quoted examples of ``wnid``'s gloss; none in a taxonomy without glosses."""
        return wndb.split_gloss(self._gloss(wnid) or "")[1]

    def name(self, wnid: str) -> str:
        """Return NLTK's name of ``wnid``, its first lemma and the number of its sense: ``dog.n.01``."""
        return self._words.name(self.index(wnid))

    def from_name(self, name: str) -> str:
        """Return the wnid of an NLTK name, with the first lemma or another one (``domestic_dog.n.01``)."""
        lemma, _, rest = name.lower().rpartition(".n.")
        nodes = self._words.nodes(lemma)
        if rest.isascii() and rest.isdigit() and 0 < int(rest) <= len(nodes):
            return self.wnids[nodes[int(rest) - 1]]
        raise TaxonomyError(
            f"{name!r} is not a noun synset of WordNet {self.version}",
            near=[] if nodes else self._words.similar(lemma),
            hint=f"{lemma!r} has {len(nodes)} senses" if nodes else "a name is LEMMA.n.NUMBER, as dog.n.01",
        )

    def find(self, text: str) -> str:
        """Return the wnid for a wnid, a name (``dog.n.01``) or a noun, whose first sense is taken.

        Raises
        ------
        TaxonomyError : the synset does not exist; the error offers synsets of similar nouns.
        """
        if text in self._node_of:
            return text
        if _NAME.fullmatch(text):
            return self.from_name(text)
        if _WNID.fullmatch(text):
            raise self._no_synset(text)
        if senses := self.senses(text.replace(" ", "_")):
            return senses[0]
        similar = self._words.similar(text.lower().replace(" ", "_"))
        raise TaxonomyError(
            f"{text!r} is not a noun of WordNet {self.version}",
            near=[f"{lemma}.n.01" for lemma in similar],
            hint="give a wnid, a synset such as dog.n.01, or a noun (see `wordnet-splits wordnet search`)",
        )

    def senses(self, word: str) -> tuple[str, ...]:
        """Return the synsets of ``word`` and of its base forms, the most frequent first.

        As NLTK's ``wordnet.synsets(word, "n")``: case is folded, spaces must be underscores.
        """
        forms = self._words.base_forms(word.lower())
        return tuple(self.wnids[node] for form in forms for node in self._words.nodes(form))

    def morphy(self, word: str) -> str | None:
        """Return the first base form of ``word`` that is a lemma, as NLTK's ``morphy(word, "n")``."""
        return next(iter(self._words.base_forms(word)), None)

    def lemma_index(self) -> Mapping[str, tuple[str, ...]]:
        """Return lower-case lemma (underscores for spaces) -> its synsets, the most frequent first."""
        return LemmaIndex(self._words, self.wnids)


@cache
def _embedded() -> Taxonomy:
    nouns, texts = wndb.load_shipped(), wndb.ShippedTexts()
    return Taxonomy(
        nouns.version,
        nouns.offsets,
        nouns.graph,
        nouns.lexicon,
        texts,
        parts=nouns.parts,
        reference="embedded",
    )


@cache
def _imagenet_tree() -> Taxonomy:
    tree = _embedded().tree(graph.imagenet_choices())
    tree._reference = "imagenet-tree"
    return tree


_REFERENCES: dict[str, Callable[[], Taxonomy]] = {"embedded": _embedded, "imagenet-tree": _imagenet_tree}


def load(spec: str | None = None) -> Taxonomy:
    """Load a taxonomy: embedded (None), from NLTK's corpus (``nltk``), or from a directory."""
    if spec is None:
        return Taxonomy.embedded()
    return Taxonomy.from_nltk() if spec == "nltk" else Taxonomy.from_wndb(spec)
