"""Names read together: their candidates, and what every candidate's features are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from wordnet_splits.catalog import load_catalog
from wordnet_splits.propose.candidates import Lemmas, routes
from wordnet_splits.propose.graphs import Graphs
from wordnet_splits.propose.joint import joint_features
from wordnet_splits.propose.pool import Floats, Pool, make_pool
from wordnet_splits.propose.words import ParsedName, parse_name
from wordnet_splits.taxonomy import Taxonomy

PICTURED = "imagenet21k"
"""The source whose synsets are known to have pictures."""


@dataclass(frozen=True, eq=False)
class Reading:
    """The candidates of the names of one dataset.

    ``joint`` turns shares of the candidates, (m,), into what the other names say of each, (m, features).
    """

    pool: Pool
    joint: Callable[[Floats], Floats]
    superclasses: tuple[str, ...]

    def table(self, shares: Floats) -> Floats:
        """Return all features, (m, len(UNARY) + len(JOINT)), given the shares."""
        return np.hstack([self.pool.unary, self.joint(shares)])


def read_names(
    names: Sequence[str], superclasses: Sequence[str], taxonomy: Taxonomy, *, supplemented: bool = True
) -> Reading:
    """Return the candidates of all names of a dataset; as `read_parsed`."""
    return read_parsed(list(map(parse_name, names)), superclasses, taxonomy, supplemented=supplemented)


def read_parsed(
    names: Sequence[ParsedName], superclasses: Sequence[str], taxonomy: Taxonomy, *, supplemented: bool = True
) -> Reading:
    """Return the candidates of all names of a dataset.

    Parameters
    ----------
    superclasses : the superclass of each name, ``""`` where there is none.
    supplemented : whether names that WordNet lacks are looked up in our supplement to it, too.
    """
    lemmas, graphs = _lookups(taxonomy, supplemented)
    pool = make_pool(names, superclasses, lemmas, graphs, _pictured())

    def senses(superclass: str) -> list[int]:
        whole = [r for r in routes(parse_name(superclass), lemmas) if r.left_out == 0 or r.kind == "head"]
        return [n for r in whole for n in (*lemmas.nodes(r.lemma), *lemmas.added.get(r.lemma, ()))]

    return Reading(pool, joint_features(pool, graphs, superclasses, senses), tuple(superclasses))


def graphs_of(taxonomy: Taxonomy) -> Graphs:
    """Return what the features need of a taxonomy."""
    return _lookups(taxonomy, True)[1]


@lru_cache(maxsize=2)
def _lookups(taxonomy: Taxonomy, supplemented: bool) -> tuple[Lemmas, Graphs]:
    return Lemmas(taxonomy, supplemented=supplemented), Graphs(taxonomy)


@lru_cache(maxsize=1)
def _pictured() -> frozenset[str]:
    return frozenset(wnid for item in load_catalog(PICTURED) for wnid in item.wnids)
