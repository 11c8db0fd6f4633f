"""wn's ``similarity`` and ``taxonomy`` on the synsets of its lexicons, computed by our taxonomy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import wn

from tools.peers.statements import OutOfScope, adapted
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.similarity import compare, measures
from wordnet_splits.similarity.similarity import path_between
from wordnet_splits.taxonomy import Taxonomy

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _taxonomy(specifier: str) -> Taxonomy:
    """Return every synset of a lexicon under its own hypernyms."""
    synsets = wn.Wordnet(specifier, expand="").synsets()
    hypernyms, instances = (
        {synset.id: [above.id for above in synset.get_related(relation)] for synset in synsets}
        for relation in ("hypernym", "instance_hypernym")
    )
    return Taxonomy.from_edges(hypernyms, instances=instances)


def _of(synset: wn.Synset) -> Taxonomy:
    specifier = synset.lexicon().specifier()
    if not specifier.startswith("test-en"):
        raise OutOfScope("relations of another language's lexicon")
    return _taxonomy(specifier)


def _synset(wnid: str) -> wn.Synset:
    return wn.Wordnet("test-en").synset(wnid)


def _as_peer(function: Callable[P, R]) -> Callable[P, R]:
    """Count the call, and raise wn's error where ours is raised."""

    @wraps(function)
    def translated(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs.pop("simulate_root", False):
            raise OutOfScope("simulate_root")
        try:
            return function(*args, **kwargs)
        except TaxonomyError as error:
            raise wn.Error(str(error)) from error

    return adapted(translated)


@_as_peer
def path(a: wn.Synset, b: wn.Synset) -> float:
    return compare(a.id, b.id, _of(a)).path


@_as_peer
def wup(a: wn.Synset, b: wn.Synset) -> float:
    return compare(a.id, b.id, _of(a)).wup_wn


@_as_peer
def lch(a: wn.Synset, b: wn.Synset, max_depth: int) -> float:
    return measures.lch(compare(a.id, b.id, _of(a)).distance, max_depth)


@_as_peer
def roots(lexicon: wn.Wordnet, pos: str | None = None) -> list[wn.Synset]:
    return [synset for synset in _synsets_of(lexicon, pos) if not _of(synset).parents(synset.id)]


@_as_peer
def leaves(lexicon: wn.Wordnet, pos: str | None = None) -> list[wn.Synset]:
    return [synset for synset in _synsets_of(lexicon, pos) if not _of(synset).children(synset.id)]


@_as_peer
def taxonomy_depth(lexicon: wn.Wordnet, pos: str) -> int:
    return max(_of(synset).max_depth(synset.id) for synset in _synsets_of(lexicon, pos))


def _synsets_of(lexicon: wn.Wordnet, pos: str | None) -> list[wn.Synset]:
    return list(lexicon.synsets(pos=pos))


@_as_peer
def min_depth(synset: wn.Synset) -> int:
    return _of(synset).min_depth(synset.id)


@_as_peer
def max_depth(synset: wn.Synset) -> int:
    return _of(synset).max_depth(synset.id)


@_as_peer
def hypernym_paths(synset: wn.Synset) -> list[list[wn.Synset]]:
    taxonomy = _of(synset)

    def paths(wnid: str) -> list[list[str]]:
        return [[parent, *rest] for parent in taxonomy.parents(wnid) for rest in (paths(parent) or [[]])]

    return [[_synset(wnid) for wnid in wnids] for wnids in paths(synset.id)]


@_as_peer
def shortest_path(a: wn.Synset, b: wn.Synset) -> list[wn.Synset]:
    up, _, down = path_between(a.id, b.id, _of(a))
    return [_synset(wnid) for wnid in (*up[1:], *reversed(down[:-1]))]


ADAPTED: dict[str, dict[str, Any]] = {
    "wn.similarity": {"path": path, "wup": wup, "lch": lch},
    "wn.taxonomy": {
        "roots": roots,
        "leaves": leaves,
        "taxonomy_depth": taxonomy_depth,
        "min_depth": min_depth,
        "max_depth": max_depth,
        "hypernym_paths": hypernym_paths,
        "shortest_path": shortest_path,
    },
}


def install() -> None:
    """Put our functions in the place of wn's."""
    from importlib import import_module

    for module, functions in ADAPTED.items():
        for name, function in functions.items():
            setattr(import_module(module), name, function)
