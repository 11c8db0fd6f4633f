"""A taxonomy of nine nodes in which the measures and their readings disagree.

::

    root
    |-- animal
    |   |-- beast
    |   |   |-- hound
    |   |   |   `-- puppy      also directly below root
    |   |   `-- robodog        also below machine
    |   `-- bird
    `-- thing
        `-- machine
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

TOY: dict[str, tuple[str, ...]] = {
    "animal": ("root",),
    "thing": ("root",),
    "beast": ("animal",),
    "bird": ("animal",),
    "hound": ("beast",),
    "machine": ("thing",),
    "puppy": ("hound", "root"),
    "robodog": ("machine", "beast"),
}


def chains(parents: Mapping[str, Sequence[str]], x: str) -> Iterator[tuple[str, ...]]:
    """Every chain of parents from ``x`` to a root, by definition: slow, and obviously right."""
    above = parents.get(x, ())
    if not above:
        yield (x,)
    for parent in above:
        for chain in chains(parents, parent):
            yield (x, *chain)


class Definitions:
    """The quantities of the measures, spelled out over every chain."""

    def __init__(self, parents: Mapping[str, Sequence[str]]) -> None:
        nodes = set(parents) | set(itertools.chain.from_iterable(parents.values()))
        self.chains = {x: list(chains(parents, x)) for x in sorted(nodes)}
        self.height = max(len(chain) - 1 for all_of_x in self.chains.values() for chain in all_of_x)

    def up(self, x: str) -> dict[str, int]:
        """d(x, a) for every ancestor a."""
        pairs = [(a, edges) for chain in self.chains[x] for edges, a in enumerate(chain)]
        return {a: min(e for b, e in pairs if a == b) for a, _ in pairs}

    def distance(self, x: str, y: str) -> int | None:
        """D(x, y)."""
        up_x, up_y = self.up(x), self.up(y)
        return min((up_x[a] + up_y[a] for a in up_x if a in up_y), default=None)

    def min_depth(self, x: str) -> int:
        return min(len(chain) - 1 for chain in self.chains[x])

    def max_depth(self, x: str) -> int:
        return max(len(chain) - 1 for chain in self.chains[x])

    def common(self, x: str, y: str) -> list[str]:
        return sorted(set(self.up(x)) & set(self.up(y)))
