"""Subtrees of classes: cut below their least common subsumer, so that twelve dogs count as a single kind."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from wordnet_splits.base.errors import DataError
from wordnet_splits.wordnet.taxonomy.synsets import Taxonomy

Key = TypeVar("Key", bound=Hashable)


def least_common_subsumer(classes: Sequence[Sequence[str]], taxonomy: Taxonomy) -> str:
    """Return the deepest synset at or above every class; of equally deep synsets, the smallest wnid.

    Parameters
    ----------
    classes : wnids of each class; a synset above any of a class's synsets is above the class.

    Raises
    ------
    DataError : no classes, or a class without a synset.
    TaxonomyError : a wnid is not in the taxonomy.
    """
    if not classes or not all(classes):
        raise DataError("a least common subsumer requires classes with synsets")
    common: set[int] = set.intersection(
        *({node for wnid in wnids for node in taxonomy.ancestor_nodes(wnid)} for wnids in classes)
    )
    if not common:
        raise DataError("no synset is above all classes", hint="the hierarchy has several roots")
    depths = taxonomy.graph.max_depths
    return taxonomy.wnid(min(common, key=lambda node: (-int(depths[node]), taxonomy.wnid(node))))


SHARE = 0.2
"""Greatest share of the classes that a subtree holds, unless a cut is given."""


def subtree_roots(
    classes: Mapping[Key, Sequence[str]], taxonomy: Taxonomy, *, cut: int | None = None
) -> dict[Key, str]:
    """Return class -> wnid of the root of its subtree.

    Subtrees are cut below the least common subsumer of all classes: ``cut`` edges below it or, without
    ``cut``, as high as leaves no more than a fifth (`SHARE`) of the classes in a subtree. (The children of
    the least common subsumer are too few: those of entity.n.01 divide Places365 into 356 and 9 classes.)
    A class with a shorter chain is a subtree of its own.

    Parameters
    ----------
    classes : class -> its wnids; of several, the nearest to the least common subsumer counts.
    cut : edges between the least common subsumer and the roots, at least 1.

    Raises
    ------
    DataError : no classes, a class without a synset, or ``cut`` below 1.
    """
    if cut is not None and cut < 1:
        raise DataError(f"the cut must be at least 1 edge below the least common subsumer, got {cut}")
    top = taxonomy.index(least_common_subsumer(list(classes.values()), taxonomy))
    chains = {key: _chain_down(wnids, top, taxonomy) for key, wnids in classes.items()}
    most = 0 if cut is not None else max(1, int(SHARE * len(classes)))
    roots: dict[Key, str] = {}
    level, rest = 0, list(classes)
    while rest:  # the classes whose subtree has its root further down
        level += 1
        below: dict[int, list[Key]] = {}
        for key in rest:
            below.setdefault(chains[key][min(level, len(chains[key]) - 1)], []).append(key)
        rest = []
        for node, keys in below.items():
            longer = [key for key in keys if len(chains[key]) > level + 1]
            whole = level == cut if cut is not None else len(keys) <= most
            for key in keys:
                if whole or key not in longer:
                    roots[key] = taxonomy.wnid(node)
                else:
                    rest.append(key)
    return {key: roots[key] for key in classes}


def _chain_down(wnids: Sequence[str], top: int, taxonomy: Taxonomy) -> list[int]:
    """Return a shortest chain from ``top`` down to the nearest of the synsets below it."""
    above = {wnid: taxonomy.ancestor_nodes(wnid) for wnid in wnids}
    nearest = min((wnid for wnid in wnids if top in above[wnid]), key=lambda w: (above[w][top], w))
    return taxonomy.graph.chain_up(taxonomy.index(nearest), top, above[nearest])[::-1]
