"""Differences between the hierarchies of two manifests that take the place of WordNet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.manifest.parts import Manifest


@dataclass(frozen=True)
class MovedNode:
    """A node with other parents in the other hierarchy; of each, the parents ascending."""

    node: str
    before: Sequence[str]
    after: Sequence[str]


@dataclass(frozen=True)
class NodeChanges:
    """Differences between two hierarchies.

    Attributes
    ----------
    before, after : their titles, such as ``birds 2`` or ``WordNet 3.0``.
    same : whether they have the same edges, names, glosses and title.
    moved : nodes with other parents. Empty, as the following ones, where a manifest is of WordNet.
    came, went : nodes that only the second, or only the first, has; ascending.
    renamed : nodes with other names or another gloss; ascending.
    """

    before: str
    after: str
    same: bool
    moved: Sequence[MovedNode] = ()
    came: Sequence[str] = ()
    went: Sequence[str] = ()
    renamed: Sequence[str] = ()

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each node that moved, came or went, and one for all that were renamed."""
        if self.before != self.after:
            yield f"the hierarchy is {self.after}, not {self.before}"
        for moved in self.moved:
            yield f"node {moved.node} moved from {_nodes(moved.before)} to {_nodes(moved.after)}"
        for change, nodes in (("came", self.came), ("went", self.went)):
            yield from (f"node {node} {change}" for node in nodes)
        if self.renamed:
            count = counted(len(self.renamed), "node")
            yield f"other names or another gloss: {count}, such as {self.renamed[0]}"
        if (
            not self.same
            and self.before == self.after
            and not (*self.moved, *self.came, *self.went, *self.renamed)
        ):
            yield "kinds of edges, parts or counts of the hierarchy differ"


def _nodes(nodes: Sequence[str]) -> str:
    return " and ".join(nodes) or "the top"


def node_changes(a: Manifest, b: Manifest) -> NodeChanges | None:
    """Return the differences between two manifests' hierarchies, None if WordNet decides both."""
    if a.own_hierarchy is None and b.own_hierarchy is None:
        return None
    title_a, title_b = (f"{m.data.taxonomy.name} {m.data.taxonomy.version}" for m in (a, b))
    if a.own_hierarchy is None or b.own_hierarchy is None:
        return NodeChanges(title_a, title_b, same=False)
    if (title_a, a.data.fingerprints.hierarchy) == (title_b, b.data.fingerprints.hierarchy):
        return NodeChanges(title_a, title_b, same=True)
    before, after = a.own_hierarchy.taxonomy(), b.own_hierarchy.taxonomy()
    shared = [node for node in before if node in after]
    parents = ((node, before.parents(node), after.parents(node)) for node in shared)
    words = ((node, [(t.lemmas(node), t.definition(node)) for t in (before, after)]) for node in shared)
    return NodeChanges(
        title_a,
        title_b,
        same=False,
        moved=[MovedNode(*row) for row in parents if row[1] != row[2]],
        came=[node for node in after if node not in before],
        went=[node for node in before if node not in after],
        renamed=[node for node, (old, new) in words if old != new],
    )
