"""Parts and wholes: WordNet's holonym pointers (member, part, substance), beside the hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordnet_splits.base.errors import unknown
from wordnet_splits.taxonomy.graph import Bytes, Ints

KINDS = ("member", "part", "substance")
SYMBOLS = {"#m": 0, "#p": 1, "#s": 2}
"""Holonym pointers of ``data.noun`` as places in `KINDS`; meronym pointers (``%``) are the same edges."""

Edge = tuple[int, int, int]
"""Node of the part, node of the whole, place of the kind in `KINDS`."""


@dataclass(frozen=True, eq=False)
class PartGraph:
    """Edges from parts to wholes, sorted by part, then by whole.

    Parameters
    ----------
    parts, wholes : (edges,) int32, the two ends of each edge.
    kinds : (edges,) uint8, places in `KINDS`.
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
        return cls.from_edges([(node_of[p], node_of[w], kind) for p, named in wholes.items() for w in named])

    def wholes_of(self, node: int, kind: str | None = None) -> list[int]:
        """Return what ``node`` is a direct part, member or substance of, ascending."""
        return self._ends(self.parts, self.wholes, self.kinds, node, kind)

    def parts_of(self, node: int, kind: str | None = None) -> list[int]:
        """Return the direct parts, members and substances of ``node``, ascending."""
        return self._ends(*self._by_whole, node, kind)

    @cached_property
    def _by_whole(self) -> tuple[Ints, Ints, Bytes]:
        order = np.argsort(self.wholes, kind="stable")  # stable: parts stay ascending
        return self.wholes[order], self.parts[order], self.kinds[order]

    @staticmethod
    def _ends(near: Ints, far: Ints, kinds: Bytes, node: int, kind: str | None) -> list[int]:
        if kind is not None and kind not in KINDS:
            raise unknown("kind of part", kind, KINDS)
        span = slice(*np.searchsorted(near, (node, node + 1)).tolist())
        wanted = slice(None) if kind is None else kinds[span] == KINDS.index(kind)
        found: list[int] = far[span][wanted].tolist()
        return found


NO_PARTS = PartGraph.from_edges([])
