"""Operators that look at the hierarchy: subtree, shares_parent_with, below_parent_of, overlaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from wordnet_splits.rules.context import ClassesBySynset, Question
from wordnet_splits.rules.model import Expression
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.verdict import Finding, Key, Via
from wordnet_splits.similarity import similarity
from wordnet_splits.taxonomy import Taxonomy

StepUp = tuple[int, str]
"""Edges to a synset, and its wnid: the nearest first, ties to the smaller wnid."""
Evidence = Iterable[Via]
"""What an operator found out about a class, the nearest first; nothing where it is not true of it."""


@operator("subtree")
def subtree(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes at or below any synset of the operand."""
    roots = ask.synsets(test.value)

    def evidence(class_id: str) -> Evidence:
        for edges, wnid in all_above(ask.wnids(class_id), roots, ask.context.graph):
            yield from _vias(
                "equal" if edges == 0 else "ancestor", wnid, roots[wnid], ask.key(class_id), edges
            )

    return _judge(test, ask, roots, evidence)


@operator("shares_parent_with")
def shares_parent_with(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes that have a direct hypernym in common with another class of the operand."""
    graph = ask.context.graph
    synsets = ask.synsets(test.value)
    parents = parents_of(synsets, graph)

    def evidence(class_id: str) -> Evidence:
        own = ask.key(class_id)
        shared = sorted({p for wnid in ask.wnids(class_id) for p in graph.parents(wnid) if p in parents})
        for parent in shared:
            if others := [key for key in parents[parent] if key != own]:
                yield from _vias("sibling", parent, others, own, 1)

    return _judge(test, ask, synsets, evidence)


@operator("below_parent_of")
def below_parent_of(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes at or below any direct hypernym of a class of the operand.

    This is the rule for near candidates of Kim et al. (2023), section 3.2; true of the operand's own
    classes too, which are taken before the rule is asked.
    """
    graph = ask.context.graph
    synsets = ask.synsets(test.value)
    parents = parents_of(synsets, graph)

    def evidence(class_id: str) -> Evidence:
        for edges, parent in all_above(ask.wnids(class_id), parents, graph):
            relation = {0: "equal", 1: "sibling"}.get(edges, "ancestor")
            yield from _vias(relation, parent, parents[parent], ask.key(class_id), edges)

    return _judge(test, ask, synsets, evidence)


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
    looks_up = relation in ("self-or-below", "ancestry")
    lower = _all_below(synsets, taxonomy) if relation in ("self-or-above", "ancestry") else {}

    def evidence(class_id: str) -> Evidence:
        own, wnids = ask.key(class_id), ask.wnids(class_id)
        for wnid in sorted(w for w in wnids if w in synsets):
            yield from _vias("equal", wnid, synsets[wnid], own, 0)
        for edges, wnid in all_above(wnids, synsets, taxonomy) if looks_up else ():
            if edges:
                yield from _vias("ancestor", wnid, synsets[wnid], own, edges)
        for edges, wnid in sorted({step for w in wnids for step in lower.get(w, ())}):
            yield from _vias("descendant", wnid, synsets[wnid], own, edges)

    return _judge(test, ask, synsets, evidence)


def all_above(wnids: Iterable[str], targets: ClassesBySynset, graph: Taxonomy) -> list[StepUp]:
    """Return the targets at or above any of the wnids, each once, the nearest first."""
    found: dict[str, int] = {}
    for wnid in wnids:
        for above, edges in graph.ancestors(wnid).items():
            if above in targets:
                found[above] = min(edges, found.get(above, edges))
    return sorted((edges, wnid) for wnid, edges in found.items())


def unrelated(classes: Sequence[str], targets: ClassesBySynset, ask: Question) -> dict[str, tuple[Via, ...]]:
    """Return, for each of ``classes``, the synsets that a rule names and that are unrelated to it.

    The nearest first; edges are counted on the full graph, whatever hierarchy the rule follows.
    """
    columns, rows = sorted(targets), sorted({wnid for c in classes for wnid in ask.wnids(c)})
    if not rows or not columns:
        return dict.fromkeys(classes, ())
    edges = similarity.similarity_matrix("distance", rows, columns, ask.context.taxonomy)
    at = {wnid: n for n, wnid in enumerate(rows)}

    def of_class(class_id: str) -> Evidence:
        if not (own := [at[wnid] for wnid in ask.wnids(class_id)]):
            return
        nearest, key = edges[own].min(axis=0), ask.key(class_id)
        for n in nearest.argsort(kind="stable").tolist():
            yield from _vias("unrelated", columns[n], targets[columns[n]], key, nearest[n])

    return {c: tuple(of_class(c)) for c in classes}


def parents_of(synsets: ClassesBySynset, graph: Taxonomy) -> ClassesBySynset:
    """Return the direct hypernyms of synsets, each with the classes whose parent it is."""
    pairs = [
        (parent, key) for wnid, keys in synsets.items() for parent in graph.parents(wnid) for key in keys
    ]
    bare = {parent: () for wnid, keys in synsets.items() if not keys for parent in graph.parents(wnid)}
    return {**bare, **Question.by_synset(pairs)}


def _any_sense(test: Expression, ask: Question) -> ClassesBySynset:
    taxonomy = ask.context.taxonomy
    return Question.by_synset(
        (wnid, key)
        for key, item in ask.items(test.value)
        for wnid in taxonomy.senses(item.name.replace(" ", "_"))
    )


def _all_below(synsets: ClassesBySynset, taxonomy: Taxonomy) -> dict[str, list[StepUp]]:
    """Return, for every synset strictly above some of ``synsets``, those of them and the edges down."""
    found: dict[str, list[StepUp]] = {}
    for wnid in synsets:
        for above, edges in taxonomy.ancestors(wnid).items():
            if edges:
                found.setdefault(above, []).append((edges, wnid))
    return found


def _vias(relation: str, wnid: str, keys: Iterable[Key], own: Key, edges: int) -> Iterator[Via]:
    """Name every class concerned, the candidate itself only where there is no other."""
    for source, class_id in sorted(key for key in keys if key != own) or [own]:
        yield Via(relation, wnid, source, class_id, float(edges))


def _judge(
    test: Expression, ask: Question, named: ClassesBySynset, evidence: Callable[[str], Evidence]
) -> dict[str, Finding]:
    """Return a finding for each candidate: its evidence, or which synsets given one by one it misses."""
    found = {c: tuple(evidence(c)) for c in ask.candidates}
    misses = [c for c, via in found.items() if not via] if test.value.kind == "ids" else []
    missed = unrelated(misses, named, ask)
    return {c: Finding(test, bool(via), via or missed.get(c, ())) for c, via in found.items()}
