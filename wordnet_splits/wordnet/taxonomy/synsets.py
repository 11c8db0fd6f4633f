"""The WordNet noun taxonomy: synsets named by wnid, hypernyms, depths, words.

A wnid is ``n`` and the 8-digit offset of the synset in WordNet 3.0, as ImageNet uses it. Edges are
hypernyms and instance hypernyms: a directed acyclic graph with the single root entity (n00001740).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.taxonomy import graph, lexicon, wndb
from wordnet_splits.wordnet.taxonomy.graph import NO_PARTS, Graph, PartGraph
from wordnet_splits.wordnet.taxonomy.lexicon import Lexicon
from wordnet_splits.wordnet.taxonomy.vocabulary import Glosses, Vocabulary

if TYPE_CHECKING:
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    from wordnet_splits.wordnet.taxonomy.hierarchy_files import Content


class Taxonomy(Vocabulary):
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
        glosses: Glosses | None = None,
        *,
        parts: PartGraph = NO_PARTS,
        counts: npt.NDArray[np.int64] | None = None,
        own_name: str = "",
        reference: str | None = None,
    ) -> None:
        super().__init__(version, ids, lexicon, glosses, own_name)
        self.graph = graph
        self.counts = counts
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
        glosses = wndb.Glosses(texts, nouns.offsets)
        taxonomy = cls(nouns.version, nouns.offsets, nouns.graph, nouns.lexicon, glosses, parts=nouns.parts)
        return taxonomy._checked()

    @classmethod
    def from_files(
        cls,
        tree: str | Path,
        nodes: str | Path | None = None,
        *,
        root: str | None = None,
        name: str = "",
        version: str = "",
    ) -> Taxonomy:
        """Return a custom hierarchy from ``tree.tsv`` and ``nodes.tsv``, in the form of `hierarchy_files`.

        Parameters
        ----------
        tree : edges: columns child, parent and, if need be, kind.
        nodes : columns node, names and, if need be, gloss and count; default: nodes are called by their ids.
        root : id of the node to be made above several roots, and above nodes without edges; with ``""`` these
            stay roots.
        name, version : title; default: the name of the file ``tree``, and the first 12 digits of `digest`.

        Raises
        ------
        TaxonomyError : a file is absent, too large or malformed, or the edges are not those of a directed
            acyclic graph with a single root; the error names the line.
        """
        from wordnet_splits.wordnet.taxonomy import hierarchy_files

        content = hierarchy_files.read(Path(tree), None if nodes is None else Path(nodes), root=root)
        return cls._of(content, name or Path(tree).name, version)

    @classmethod
    def from_lexicon(
        cls, specifier: str, *, root: str | None = None, name: str = "", version: str = ""
    ) -> Taxonomy:
        """Return the nouns of a lexicon that `wn` has on this machine: ``oewn:2024``.

        The ids are those of the synsets (``oewn-02084071-n``). A lexicon is read with those that it extends.
        Parameters and errors as in `from_files`, and MissingPackageError without `wn`.
        """
        from wordnet_splits.wordnet.taxonomy import hierarchy_files, wn_lexicons

        content = hierarchy_files.assemble(*wn_lexicons.read_lexicon(specifier), root=root)
        own_name, _, own_version = specifier.partition(":")
        return cls._of(content, name or own_name, version or own_version)

    @classmethod
    def _of(cls, content: Content, own_name: str, version: str) -> Taxonomy:
        make = partial(cls, parts=content.parts, counts=content.counts, own_name=own_name)
        return make(version, content.ids, content.graph, content.lexicon, content.glosses)

    def tables(self) -> tuple[bytes, bytes]:
        """Return the bytes of ``tree.tsv`` and ``nodes.tsv``: `from_files` reads an equal taxonomy from them.

        Raises
        ------
        TaxonomyError : an id, name or gloss cannot stand in a table, or there are no edges.
        """
        from wordnet_splits.wordnet.taxonomy import hierarchy_files

        glosses = None if self._glosses is None else tuple(map(self._glosses.__getitem__, range(len(self))))
        content = hierarchy_files.Content(
            self.wnids, self.graph, self._words, self._parts, glosses, self.counts
        )
        return hierarchy_files.tables(content)

    def to_files(self, tree: str | Path, nodes: str | Path) -> None:
        """Write ``tree.tsv`` and ``nodes.tsv``. Raises as `tables`, and OutputError."""
        from wordnet_splits.base.files import write_bytes

        for path, data in zip((tree, nodes), self.tables(), strict=True):
            write_bytes(Path(path), data)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `tables`, in hex."""
        return hashlib.sha256(b"".join(self.tables())).hexdigest()

    @cached_property
    def lacks(self) -> tuple[str, ...]:
        """The kinds of facts, of parts, glosses and names, that no node has; a node's id is not a name."""
        ids = "".join(f"{wnid}\n" for wnid in self.wnids)
        has = {
            "parts": len(self._parts.parts) > 0,
            "glosses": self._glosses is not None,
            "names": self._words.lemma_text != ids,
        }
        return tuple(kind for kind, present in has.items() if not present)

    def _checked(self) -> Taxonomy:
        if len(self) == 0:
            raise TaxonomyError("a taxonomy needs at least one synset", where=self.version)
        try:
            _ = self.graph.max_depths
        except graph.EdgeError as error:
            raise TaxonomyError(error.what, where=self.wnid(error.child)) from error
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
        if choices is None and not self.is_wordnet:
            raise TaxonomyError("the imagenet-tree is a projection of WordNet", where=self.title)
        choices = graph.imagenet_choices() if choices is None else choices
        nodes = {self.index(child): self.index(parent) for child, parent in choices.items()}
        projection = graph.tree_of(self.graph, nodes, self.wnid)
        make, content = self._parameters(projection)
        return make(*content)

    @property
    def root(self) -> str:
        """The wnid of the root; the smallest, where there are several."""
        return self.wnid(int(self.graph.roots[0]))

    def __repr__(self) -> str:
        kind = "" if self.graph.unresolved is None else ", tree"
        own = f"name={self.own_name!r}, " if self.own_name else ""
        nodes = "nodes" if self.own_name else "synsets"
        return f"Taxonomy({own}version={self.version!r}, {nodes}={len(self)}{kind})"

    def _repr_html_(self) -> str:
        nodes = "noun synsets" if self.is_wordnet else "nodes"
        return f"<p>{escape(self.title)}: {len(self):,} {nodes}, root {escape(self.root)}</p>"

    def __reduce__(self) -> tuple[object, ...]:
        if self._reference is not None:
            return _REFERENCES[self._reference], ()
        return self._parameters(self.graph)

    def _parameters(self, graph: Graph) -> tuple[Callable[..., Taxonomy], tuple[object, ...]]:
        make = partial(Taxonomy, parts=self._parts, counts=self.counts, own_name=self.own_name)
        return make, (self.version, self._ids, graph, self._words, self._glosses)

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


@cache
def _embedded() -> Taxonomy:
    nouns, texts = wndb.load_shipped(), wndb.ShippedTexts()
    return Taxonomy(
        nouns.version,
        nouns.offsets,
        nouns.graph,
        nouns.lexicon,
        wndb.Glosses(texts, nouns.offsets),
        parts=nouns.parts,
        reference="embedded",
    )


@cache
def _imagenet_tree() -> Taxonomy:
    tree = _embedded().tree(graph.imagenet_choices())
    tree._reference = "imagenet-tree"
    return tree


_REFERENCES: dict[str, Callable[[], Taxonomy]] = {"embedded": _embedded, "imagenet-tree": _imagenet_tree}


def load(spec: Taxonomy | str | None = None) -> Taxonomy:
    """Load a taxonomy; one that is loaded is returned as it is.

    Parameters
    ----------
    spec : None for the embedded WordNet, ``nltk`` for NLTK's corpus, a folder of WNDB files, ``oewn:2024`` as
        a lexicon of `wn`, or the tree.tsv of a custom hierarchy (with the nodes.tsv in its folder, if any).
    """
    if isinstance(spec, Taxonomy):
        return spec
    if spec is None or spec == "nltk":
        return Taxonomy.embedded() if spec is None else Taxonomy.from_nltk()
    path = Path(spec)
    if path.suffix == ".tsv":
        nodes = path.with_name("nodes.tsv")
        return Taxonomy.from_files(path, nodes if nodes.exists() else None)
    is_lexicon = ":" in spec and not path.exists()
    return Taxonomy.from_lexicon(spec) if is_lexicon else Taxonomy.from_wndb(spec)
