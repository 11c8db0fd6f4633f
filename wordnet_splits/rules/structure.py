"""Operators that look at the hierarchy: subtree, shares_parent_with, below_parent_of, overlaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wordnet_splits.rules.context import Question, Synsets
from wordnet_splits.rules.model import Expression
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.verdict import Finding, Key, Via
from wordnet_splits.taxonomy import Taxonomy

Step = tuple[int, str]
"""Edges to a synset, and its wnid: the nearest first, ties to the smaller wnid."""


@operator("subtree")
def subtree(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes at or below any synset of the operand."""
    roots = ask.synsets(test.value)

    def evidence(class_id: str) -> Via | None:
        step = nearest_above(ask.wnids(class_id), roots, ask.context.graph)
        if step is None:
            return None
        edges, wnid = step
        return _via("equal" if edges == 0 else "ancestor", wnid, roots[wnid], ask.key(class_id), edges)

    return _judge(test, ask, evidence)


@operator("shares_parent_with")
def shares_parent_with(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes that have a direct hypernym in common with another class of the operand."""
    graph = ask.context.graph
    parents = parents_of(ask.synsets(test.value), graph)

    def evidence(class_id: str) -> Via | None:
        own = ask.key(class_id)
        shared = sorted({p for wnid in ask.wnids(class_id) for p in graph.parents(wnid) if p in parents})
        for parent in shared:
            if others := [key for key in parents[parent] if key != own]:
                return _via("sibling", parent, others, own, 1)
        return None

    return _judge(test, ask, evidence)


@operator("below_parent_of")
def below_parent_of(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes at or below any direct hypernym of a class of the operand.

    This is the rule for near candidates of Kim et al. (2023), section 3.2; true of the operand's own
    classes too, which are taken before the rule is asked.
    """
    graph = ask.context.graph
    parents = parents_of(ask.synsets(test.value), graph)

    def evidence(class_id: str) -> Via | None:
        step = nearest_above(ask.wnids(class_id), parents, graph)
        if step is None:
            return None
        edges, parent = step
        relation = {0: "equal", 1: "sibling"}.get(edges, "ancestor")
        return _via(relation, parent, parents[parent], ask.key(class_id), edges)

    return _judge(test, ask, evidence)


@operator("overlaps")
def overlaps(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes whose synset is, lies below or lies above one that an operand's class stands for.

    With ``senses = "any"`` a class stands for every noun synset that bears its name, as NLTK's
    ``synsets(name)`` returns them, and a name without one for none; with ``"catalog"``, the default, for
    the synsets of its catalog. ``relation`` is ``self-or-below`` unless given. Follows the full graph.
    """
    taxonomy = ask.context.taxonomy
    synsets = _any_sense(test, ask) if test.senses == "any" else ask.synsets(test.value)
    relation = test.relation or "self-or-below"
    reach: list[Callable[[str], tuple[str, Step] | None]] = [lambda c: _equal(ask.wnids(c), synsets)]
    if relation in ("self-or-below", "ancestry"):
        reach.append(lambda c: _named("ancestor", nearest_above(ask.wnids(c), synsets, taxonomy)))
    if relation in ("self-or-above", "ancestry"):
        lower = _nearest_below(synsets, taxonomy)
        reach.append(lambda c: _named("descendant", _smallest(lower[w] for w in ask.wnids(c) if w in lower)))

    def evidence(class_id: str) -> Via | None:
        for look in reach:
            if found := look(class_id):
                name, (edges, wnid) = found
                return _via(name, wnid, synsets[wnid], ask.key(class_id), edges)
        return None

    return _judge(test, ask, evidence)


def nearest_above(wnids: Iterable[str], targets: Synsets, graph: Taxonomy) -> Step | None:
    """Return the nearest target at or above any of the wnids, with the edges up to it."""
    return _smallest(
        (edges, above) for wnid in wnids for above, edges in graph.ancestors(wnid).items() if above in targets
    )


def parents_of(synsets: Synsets, graph: Taxonomy) -> Synsets:
    """Return the direct hypernyms of synsets, each with the classes whose parent it is."""
    pairs = [
        (parent, key) for wnid, keys in synsets.items() for parent in graph.parents(wnid) for key in keys
    ]
    bare = {parent: () for wnid, keys in synsets.items() if not keys for parent in graph.parents(wnid)}
    return {**bare, **Question.by_synset(pairs)}


def _any_sense(test: Expression, ask: Question) -> Synsets:
    taxonomy = ask.context.taxonomy
    return Question.by_synset(
        (wnid, key)
        for key, item in ask.items(test.value)
        for wnid in taxonomy.senses(item.name.replace(" ", "_"))
    )


def _nearest_below(synsets: Synsets, taxonomy: Taxonomy) -> dict[str, Step]:
    """Return, for every synset at or above some of ``synsets``, the nearest of them."""
    found: dict[str, Step] = {}
    for wnid in synsets:
        for above, edges in taxonomy.ancestors(wnid).items():
            found[above] = min(found.get(above, (edges, wnid)), (edges, wnid))
    return found


def _equal(wnids: Iterable[str], synsets: Synsets) -> tuple[str, Step] | None:
    return _named("equal", _smallest((0, wnid) for wnid in wnids if wnid in synsets))


def _named(relation: str, step: Step | None) -> tuple[str, Step] | None:
    return None if step is None else (relation, step)


def _smallest(steps: Iterable[Step]) -> Step | None:
    return min(steps, default=None)


def _via(relation: str, wnid: str, keys: Iterable[Key], own: Key, edges: int) -> Via:
    """Name the first class concerned that is not the candidate itself, where there is one."""
    source, class_id = min(keys, key=lambda key: (key == own, key))
    return Via(relation, wnid, source, class_id, float(edges))


def _judge(test: Expression, ask: Question, evidence: Callable[[str], Via | None]) -> dict[str, Finding]:
    found = {c: evidence(c) for c in ask.candidates}
    return {c: Finding(test, via is not None, (via,) if via else ()) for c, via in found.items()}
