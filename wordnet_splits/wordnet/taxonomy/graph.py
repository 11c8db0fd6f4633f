"""The noun graph as arrays: parents and children in CSR form, depths, its projection to a tree, and parts.

Parts and wholes are WordNet's holonym pointers (member, part, substance), separate from the hierarchy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import TaxonomyError, unknown

Ints = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

TREE_CHOICES = files("wordnet_splits") / "data" / "wordnet" / "imagenet_tree.tsv"
UNREACHED = 255
"""The depth of a node without a chain of parents to a root (only below an unresolved node of a tree)."""


KINDS = ("member", "part", "substance")
SYMBOLS = {"#m": 0, "#p": 1, "#s": 2}
"""Holonym pointers of ``data.noun`` as indices of `KINDS`; meronym pointers (``%``) are the same edges."""

Edge = tuple[int, int, int]
"""Node of the part, node of the whole, index of the kind in `KINDS`."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed acyclic graph of n nodes 0..n-1, edges pointing from a node to its parents.

    Parameters
    ----------
    parent_indptr : (n + 1,) int32; the parents of node i are ``parent_indices[indptr[i]:indptr[i + 1]]``.
    parent_indices : (edges,) int32, ascending within a node.
    instance : (edges,) bool, whether the edge is an instance hypernym (Einstein -> physicist).
    unresolved : (n,) bool, nodes whose parent is undecided (tree projections only).
    """

    parent_indptr: Ints
    parent_indices: Ints
    instance: Flags
    unresolved: Flags | None = None

    def __post_init__(self) -> None:
        _freeze(self.parent_indptr, self.parent_indices, self.instance)

    def __len__(self) -> int:
        return len(self.parent_indptr) - 1

    @cached_property
    def _children(self) -> tuple[Ints, Ints]:
        n = len(self)
        owner = np.repeat(np.arange(n, dtype=np.int32), np.diff(self.parent_indptr))
        by_parent = np.argsort(self.parent_indices, kind="stable")  # stable: children stay ascending
        indptr = np.zeros(n + 1, np.int32)
        np.cumsum(np.bincount(self.parent_indices, minlength=n), out=indptr[1:])
        children = owner[by_parent]
        _freeze(indptr, children)
        return indptr, children

    @property
    def child_indptr(self) -> Ints:
        """(n + 1,) int32; the children of node i are ``child_indices[indptr[i]:indptr[i + 1]]``."""
        return self._children[0]

    @property
    def child_indices(self) -> Ints:
        """(edges,) int32, ascending within a node."""
        return self._children[1]

    @cached_property
    def roots(self) -> Ints:
        """Nodes without parents, ascending; an unresolved node is not one."""
        bare = np.diff(self.parent_indptr) == 0
        if self.unresolved is not None:
            bare &= ~self.unresolved
        return np.flatnonzero(bare).astype(np.int32)

    @cached_property
    def max_depths(self) -> Bytes:
        """(n,) uint8: edges of the longest chain up to a root; UNREACHED below an unresolved node."""
        waiting = np.diff(self.parent_indptr).astype(np.int32)
        depths = np.full(len(self), UNREACHED, np.uint8)
        wave, depth = self.roots, 0
        while len(wave):  # a node joins the wave after its last parent: its wave is its longest chain
            if depth == UNREACHED:
                child = int(wave[0])
                problem = f"a chain of hypernyms has {UNREACHED} edges or more"
                raise EdgeError(problem, child, self.parents(child)[0])
            depths[wave] = depth
            below = gather(self.child_indptr, self.child_indices, wave)
            np.subtract.at(waiting, below, 1)
            wave = np.unique(below[waiting[below] == 0]).astype(np.int32)
            depth += 1
        if self.unresolved is None and (depths == UNREACHED).any():
            raise EdgeError("hypernyms form a cycle", *self._edge_of_cycle(depths == UNREACHED))
        _freeze(depths)
        return depths

    def _edge_of_cycle(self, unsettled: Flags) -> tuple[int, int]:
        """Return an edge of a cycle; each of the nodes on or below one has a parent among them."""
        child, passed = int(np.flatnonzero(unsettled)[0]), set()
        while True:
            parent = next(parent for parent in self.parents(child) if unsettled[parent])
            if parent in passed or parent == child:
                return child, parent
            passed.add(child)
            child = parent

    @cached_property
    def min_depths(self) -> Bytes:
        """(n,) uint8: edges of the shortest chain up to a root; UNREACHED below an unresolved node."""
        depths = np.full(len(self), UNREACHED, np.uint8)
        settled = self.max_depths != UNREACHED
        wave, depth = self.roots, 0
        while len(wave):
            depths[wave] = depth
            below = np.unique(gather(self.child_indptr, self.child_indices, wave))
            wave = below[(depths[below] == UNREACHED) & settled[below]].astype(np.int32)
            depth += 1
        _freeze(depths)
        return depths

    @cached_property
    def order(self) -> Ints:
        """(n,) int32: every node once, its parents before it."""
        order = np.argsort(self.max_depths, kind="stable").astype(np.int32)
        _freeze(order)
        return order

    @cached_property
    def _parent_lists(self) -> tuple[list[int], list[int]]:
        return self.parent_indptr.tolist(), self.parent_indices.tolist()

    @cached_property
    def _child_lists(self) -> tuple[list[int], list[int]]:
        return self.child_indptr.tolist(), self.child_indices.tolist()

    def parents(self, node: int) -> list[int]:
        """Return the parents of ``node``, ascending."""
        indptr, indices = self._parent_lists
        return indices[indptr[node] : indptr[node + 1]]

    def children(self, node: int) -> list[int]:
        """Return the children of ``node``, ascending."""
        indptr, indices = self._child_lists
        return indices[indptr[node] : indptr[node + 1]]

    def ancestors(self, node: int) -> Mapping[int, int]:
        """Return every ancestor of ``node``, itself included, with the fewest edges up to it."""
        return self._cached_ancestors(node)

    @cached_property
    def _cached_ancestors(self) -> Callable[[int], Mapping[int, int]]:
        return lru_cache(maxsize=1 << 14)(self._ancestors)  # of this graph, and gone with it

    def _ancestors(self, node: int) -> Mapping[int, int]:
        ancestors = {node: 0}
        wave, edges = [node], 0
        while wave:
            edges += 1
            above = []
            for below in wave:
                for parent in self.parents(below):
                    if parent not in ancestors:
                        ancestors[parent] = edges
                        above.append(parent)
            wave = above
        return ancestors

    def descendants(self, nodes: Iterable[int]) -> set[int]:
        """Return every node at or below any of ``nodes``."""
        stack = list(nodes)
        descendants = set(stack)
        while stack:
            for child in self.children(stack.pop()):
                if child not in descendants:
                    descendants.add(child)
                    stack.append(child)
        return descendants

    def chain_up(self, node: int, top: int, ancestors: Iterable[int]) -> list[int]:
        """Return a shortest chain from ``node`` up to ``top``, both included.

        At every step from ``node``, the smallest next node on a shortest chain is taken.
        ``ancestors`` : every ancestor of ``node``, including ``top``.
        """
        edges_up = {top: 0}  # of the ancestors below the top
        for ancestor in sorted(ancestors, key=lambda a: int(self.max_depths[a])):
            steps = [edges_up[parent] + 1 for parent in self.parents(ancestor) if parent in edges_up]
            if steps and ancestor != top:
                edges_up[ancestor] = min(steps)
        chain = [node]
        while chain[-1] != top:
            onward = edges_up[chain[-1]] - 1
            chain.append(next(p for p in self.parents(chain[-1]) if edges_up.get(p) == onward))
        return chain

    def __getstate__(self) -> dict[str, object]:  # without derived tables
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class EdgeError(TaxonomyError):
    """A chain of hypernyms, through the edge from ``child`` to ``parent``, that is a cycle or too long."""

    def __init__(self, what: str, child: int, parent: int) -> None:
        super().__init__(what)
        self.child, self.parent = child, parent


def _freeze(*arrays: npt.NDArray[np.generic]) -> None:
    for array in arrays:
        array.setflags(write=False)


def gather(indptr: Ints, indices: Ints, nodes: npt.NDArray[np.int32]) -> Ints:
    """Return the CSR rows of ``nodes``, one after the other."""
    starts = indptr[nodes]
    counts = indptr[nodes + 1] - starts
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    within = np.arange(total, dtype=np.int32) - np.repeat((ends - counts).astype(np.int32), counts)
    rows: Ints = indices[np.repeat(starts, counts) + within]
    return rows


def from_arrays(n: int, child: Ints, parent: Ints, instance: Flags) -> Graph:
    """Return the graph of n nodes whose edge i, of any order, goes from ``child[i]`` to ``parent[i]``."""
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(child, minlength=n), out=indptr[1:])
    order = np.lexsort((parent, child))
    return Graph(indptr, parent[order], instance[order])


def from_edges(parents: list[dict[int, bool]]) -> Graph:
    """Return the graph of ``parents[i]``: each parent of node i -> whether that is an instance edge."""
    edges = [
        (child, parent, instance) for child, row in enumerate(parents) for parent, instance in row.items()
    ]
    child, parent, instance = np.array(edges, np.int32).reshape(-1, 3).T
    return from_arrays(len(parents), child, parent, instance.astype(np.bool_))


@cache
def imagenet_choices() -> dict[str, str]:
    """Return child -> the parent it keeps, for every synset of WordNet 3.0 that has several hypernyms."""
    text = TREE_CHOICES.read_text("utf-8")
    rows = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    next(rows)  # column names
    return {child: parent for child, parent, *_ in rows}


def tree_of(graph: Graph, choices: Mapping[int, int], wnid: Callable[[int], str]) -> Graph:
    """Return ``graph`` without instance edges and with at most one parent for each node.

    Parameters
    ----------
    graph : the full graph of n nodes.
    choices : node -> the parent that it keeps. A node of several hypernyms without a choice loses them all
        and is marked ``unresolved``.
    wnid : function that returns the wnid of a node, for errors.

    Raises TaxonomyError if a chosen parent is not a hypernym of its child.
    """
    n = len(graph)
    owner = np.repeat(np.arange(n, dtype=np.int32), np.diff(graph.parent_indptr))
    keep = ~graph.instance
    hypernyms = np.bincount(owner[keep], minlength=n)
    kept_parent = np.full(n, -1, np.int32)
    for child, parent in choices.items():
        if parent not in graph.parents(child):
            raise TaxonomyError(f"{wnid(parent)} is not a hypernym of {wnid(child)}", where="tree choices")
        kept_parent[child] = parent
    ambiguous = hypernyms > 1
    keep &= ~ambiguous[owner] | (kept_parent[owner] == graph.parent_indices)
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(owner[keep], minlength=n), out=indptr[1:])
    unresolved = ambiguous & (kept_parent < 0)
    if graph.unresolved is not None:
        unresolved |= graph.unresolved
    return Graph(indptr, graph.parent_indices[keep], graph.instance[keep], unresolved)


@dataclass(frozen=True, eq=False)
class PartGraph:
    """Edges from parts to wholes, sorted by part, then by whole.

    Parameters
    ----------
    parts, wholes : (edges,) int32, the two ends of each edge.
    kinds : (edges,) uint8, indices of `KINDS`.
    """

    parts: Ints
    wholes: Ints
    kinds: Bytes

    @classmethod
    def from_edges(cls, edges: Sequence[Edge]) -> PartGraph:
        """Return the graph of edges in any order."""
        table = np.array(sorted(edges), np.int32).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].astype(np.uint8))

    @classmethod
    def from_names(cls, wholes: Mapping[str, Sequence[str]], node_of: Mapping[str, int]) -> PartGraph:
        """Return the graph of part -> wholes, all of kind ``part``."""
        kind = KINDS.index("part")
        return cls.from_edges([(node_of[p], node_of[w], kind) for p, row in wholes.items() for w in row])

    def wholes_of(self, node: int, kind: str | None = None) -> list[int]:
        """Return the direct wholes of ``node``, ascending; ``kind`` (of `KINDS`) limits the relation."""
        return _select(self._wholes.get(node, ()), kind)

    def parts_of(self, node: int, kind: str | None = None) -> list[int]:
        """Return the direct parts of ``node``, ascending; ``kind`` (of `KINDS`) limits the relation."""
        return _select(self._parts.get(node, ()), kind)

    @cached_property
    def _wholes(self) -> dict[int, list[tuple[int, int]]]:
        wholes: dict[int, list[tuple[int, int]]] = {}
        for part, whole, kind in self._edges():
            wholes.setdefault(part, []).append((whole, kind))
        return wholes

    @cached_property
    def _parts(self) -> dict[int, list[tuple[int, int]]]:
        parts: dict[int, list[tuple[int, int]]] = {}
        for part, whole, kind in self._edges():  # sorted by part, which stay ascending
            parts.setdefault(whole, []).append((part, kind))
        return parts

    def _edges(self) -> Iterator[Edge]:
        return zip(self.parts.tolist(), self.wholes.tolist(), self.kinds.tolist(), strict=True)

    def __getstate__(self) -> dict[str, object]:  # without derived tables
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _select(ends: Iterable[tuple[int, int]], kind: str | None) -> list[int]:
    if kind is None:
        return [node for node, _ in ends]
    if kind not in KINDS:
        raise unknown("kind of part", kind, KINDS)
    return [node for node, index in ends if KINDS[index] == kind]


NO_PARTS = PartGraph.from_edges([])
