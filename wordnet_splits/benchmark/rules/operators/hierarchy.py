"""Operators that read the hierarchy of synsets, and WordNet's parts and wholes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.rules.context import Candidates, ClassesBySynset, Key, Operand, OperandField
from wordnet_splits.benchmark.rules.registry import (
    GRAPH,
    MEASURE,
    NAMES,
    PARTS,
    Finding,
    Names,
    Via,
    join_names,
    register_operator,
)
from wordnet_splits.benchmark.rules.relations import (
    ABOVE,
    BELOW,
    EQUAL,
    KnownClasses,
    Mapped,
    MappedClass,
    synsets_alone,
)
from wordnet_splits.wordnet.similarity import similarity_matrix
from wordnet_splits.wordnet.taxonomy import Taxonomy

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.syntax import Expression

StepUp = tuple[int, str]
"""Edges up to a synset, and its wnid; sorted, the nearest is first, ties to the smaller wnid."""
Step = tuple[str, str, int]
"""Relation of a synset of the operand to a class, its wnid, and the edges up to it."""
Evidence = Iterable[Via]
"""Evidence of an operator for a class, nearest first; empty if the operator is false for the class."""
WHOLE, PART = "whole", "part"
OVERLAPS = {
    "equal": (EQUAL,),
    "self-or-below": (EQUAL, BELOW),
    "self-or-above": (EQUAL, ABOVE),
    "ancestry": (EQUAL, BELOW, ABOVE),
    "kin": (EQUAL, BELOW, ABOVE),
}
"""The relations of a class that each ``relation`` of ``overlaps`` counts."""
VIA_OF = {EQUAL: "equal", BELOW: "ancestor", ABOVE: "descendant"}
"""Relation of a class to a known class -> relation of the known class's synset to the class."""


def _subtree_wording(finding: Finding, names: Names) -> str:
    if not finding.holds:
        return f"{names.subject} is not at or below {names.any_of(finding.expression.value, finding.via)}"
    via = finding.via[0]
    verb = "is" if via.relation == "equal" else "is below"
    return f"{names.subject} {verb} {names.synset(via.wnid)}"


@register_operator(
    "subtree",
    value=OperandField,
    meaning="at or below a synset",
    reads=GRAPH,
    wording=_subtree_wording,
    clause="lie at or below {}",
)
def subtree(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes at or below any synset of the operand."""
    roots = candidates.synsets(expression.value)

    def steps(class_id: str) -> Iterator[Step]:
        for edges, wnid in all_above(candidates.wnids(class_id), roots, candidates.context.graph):
            yield "ancestor" if edges else "equal", wnid, edges

    return _judge(expression, candidates, roots, roots, steps)


def _below_one_wording(finding: Finding, names: Names) -> str:
    if not finding.via or finding.via[0].relation == "unrelated":
        return f"{names.subject} is not at or below {names.any_of(finding.expression.value, finding.via)}"
    synsets = join_names([names.synset(via.wnid) for via in finding.via])
    if len(finding.via) > 1:
        return f"{names.subject} is below several of the {names.noun}s: {synsets}"
    verb = "is" if finding.via[0].relation == "equal" else "is below"
    return f"{names.subject} {verb} {synsets} and no other of the {names.noun}s"


@register_operator(
    "below_one",
    value=OperandField,
    meaning="at or below exactly one synset",
    reads=GRAPH,
    wording=_below_one_wording,
    clause="lie at or below exactly one synset of {}",
)
def below_one(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes at or below exactly one synset of the operand (Ren et al. 2018: categories).

    The evidence is that synset; a class below several synsets has all as evidence, nearest first.
    """
    roots = candidates.synsets(expression.value)

    vias = {
        c: tuple(
            Via("ancestor" if edges else "equal", wnid, *roots[wnid][0], float(edges))
            for edges, wnid in all_above(candidates.wnids(c), roots, candidates.context.graph)
        )
        for c in candidates.class_ids
    }
    nearest = unrelated([c for c, via in vias.items() if not via], roots, candidates)
    return {c: Finding(expression, len(via) == 1, via or nearest[c]) for c, via in vias.items()}


def _parent_wording(finding: Finding, names: Names) -> str:
    operand: Operand = finding.expression.value
    if not finding.holds:
        shares = finding.expression.operator == "shares_parent_with"
        verb = "shares no parent with" if shares else "is not at or below a parent of"
        return f"{names.subject} {verb} {names.any_of(operand, finding.via)}"
    relation = finding.via[0].relation
    classes, parent = _nearest(finding, operand, names)
    if relation == "sibling":
        return f"{names.subject} and {classes} share the parent {parent}"
    return f"{names.subject} {'is' if relation == 'equal' else 'is below'} {parent}, a parent of {classes}"


@register_operator(
    "shares_parent_with",
    value=OperandField,
    meaning="a direct hypernym in common",
    reads=GRAPH | {MEASURE},
    wording=_parent_wording,
    clause="share a direct hypernym with {}",
)
def shares_parent_with(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes that have a direct hypernym in common with another class of the operand."""
    graph, synsets = candidates.context.graph, candidates.synsets(expression.value)
    parents = parents_of(synsets, graph)

    def steps(class_id: str) -> Iterator[Step]:
        for parent in sorted({p for wnid in candidates.wnids(class_id) for p in graph.parents(wnid)}):
            if {*parents.get(parent, ())} - {candidates.key(class_id)}:
                yield "sibling", parent, 1

    return _judge(expression, candidates, synsets, parents, steps)


@register_operator(
    "below_parent_of",
    value=OperandField,
    meaning="at or below a direct hypernym",
    reads=GRAPH | {MEASURE},
    wording=_parent_wording,
    clause="lie at or below a direct hypernym of {}",
)
def below_parent_of(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes at or below any direct hypernym of a class of the operand.

    This is the rule for near candidates of Kim et al. (2023), section 3.2. It is true of the operand's
    classes themselves, too, which their own group has taken before.
    """
    graph, synsets = candidates.context.graph, candidates.synsets(expression.value)
    parents = parents_of(synsets, graph)

    def steps(class_id: str) -> Iterator[Step]:
        for edges, parent in all_above(candidates.wnids(class_id), parents, graph):
            yield {0: "equal", 1: "sibling"}.get(edges, "ancestor"), parent, edges

    return _judge(expression, candidates, synsets, parents, steps)


def _overlaps_wording(finding: Finding, names: Names) -> str:
    operand: Operand = finding.expression.value
    if not finding.holds:
        relative = {
            "equal": "",
            "self-or-above": ", nor a superclass of one",
            "ancestry": ", nor a subclass or superclass of one",
            "kin": ", nor a subclass or superclass of one",
        }.get(finding.expression.relation or "", ", nor a subclass of one")
        sense = "a sense of the name of " if finding.expression.senses == "any" else ""
        return f"{names.subject} is not {sense}{names.any_of(operand, finding.via)}{relative}"
    classes, synset = _nearest(finding, operand, names)
    verb = {"equal": "is", "ancestor": "is below", "descendant": "is above"}[finding.via[0].relation]
    stands_for = "a sense of the name of" if finding.expression.senses == "any" else f"the {names.noun} of"
    return f"{names.subject} {verb} {synset}, {stands_for} {classes}"


@register_operator(
    "overlaps",
    value=OperandField,
    meaning="equal, above or below",
    reads=GRAPH | {MEASURE},
    wording=_overlaps_wording,
    clause="equal, or lie above or below, {}",
)
def overlaps(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes with a synset equal to, below or above a synset of an operand's class.

    ``senses = "any"`` compares with all noun senses of the name of an operand's class, as NLTK's
    ``synsets(name)`` returns them; ``"catalog"``, the default, with the synsets in its catalog. ``relation``
    is ``self-or-below`` by default. ``kin`` counts the relations of `thresholds` and `audit_classes`; the
    other values do not distinguish a class from a synset wider than its name. Follows the full graph.
    """
    operand: Operand = expression.value
    if expression.senses == "any":
        candidates.require(frozenset({NAMES}), 'overlaps with senses = "any"')
        classes = _any_sense(operand, candidates)
    else:
        classes = candidates.mapped_classes(operand)
    relation = expression.relation or "self-or-below"
    alone = relation != "kin"
    known = KnownClasses(
        {key: synsets_alone(item) if alone else item for key, item in classes.items()}, candidates.taxonomy
    )
    counted_relations = OVERLAPS[relation]

    def evidence(class_id: str) -> Evidence:
        item = candidates.mapped(class_id)
        keys: dict[tuple[int, int, str], set[Key]] = {}
        for kin in known.kin(synsets_alone(item) if alone else item):
            if kin.relation in counted_relations:
                step = counted_relations.index(kin.relation), kin.edges, kin.known_wnid
                keys.setdefault(step, set()).add(kin.known)
        for n, edges, wnid in sorted(keys) if alone else keys:  # else the closest first
            relatives = keys[n, edges, wnid]
            yield from _vias(VIA_OF[counted_relations[n]], wnid, relatives, candidates.key(class_id), edges)

    synsets = candidates.by_synset((wnid, key) for key, item in classes.items() for wnid in item.wnids)
    return _findings(expression, candidates, synsets, evidence)


def _part_whole_with_wording(finding: Finding, names: Names) -> str:
    operand = finding.expression.value
    if not finding.holds:
        return (
            f"neither {names.subject} nor a {names.noun} above it is a part, member or substance of "
            f"{names.any_of(operand)}, or has one"
        )
    relation, edges = finding.via[0].relation, int(finding.via[0].value or 0)
    above = f"{names.synset(finding.words[0])}, {counted(edges, 'edge')} above {names.subject},"
    verb = "is a part, member or substance of" if relation == WHOLE else "has the part, member or substance"
    classes, synset = _nearest(finding, operand, names)
    return f"{above if edges else names.subject} {verb} {synset}, the {names.noun} of {classes}"


@register_operator(
    "part_whole_with",
    value=OperandField,
    meaning="a part, member or substance, either way",
    reads=GRAPH | {PARTS},
    wording=_part_whole_with_wording,
    clause="are a part, member or substance of {}, or have it as one",
)
def part_whole_with(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes with a part, member or substance relation to a class of the operand, either way.

    A pointer counts between the other class's own synset and the candidate's synset or an ancestor: a
    four-poster is a bed, and a bed is part of a bedroom. Follows the full graph.
    """
    taxonomy = candidates.taxonomy
    synsets = candidates.synsets(expression.value)
    findings = {}
    for class_id in candidates.class_ids:
        pointers: set[tuple[int, str, str, str]] = set()
        for wnid in candidates.wnids(class_id):
            for above, edges in taxonomy.ancestors(wnid).items():
                pointers |= {(edges, above, WHOLE, w) for w in taxonomy.wholes(above) if w in synsets}
                pointers |= {(edges, above, PART, w) for w in taxonomy.parts(above) if w in synsets}
        via, words = [], []
        for edges, above, relation, wnid in sorted(pointers):
            for key in synsets[wnid]:
                if key != candidates.key(class_id):
                    via.append(Via(relation, wnid, *key, float(edges)))
                    words.append(above)
        findings[class_id] = Finding(expression, bool(via), tuple(via), tuple(words[:1]))
    return findings


def _nearest(finding: Finding, operand: Operand, names: Names) -> tuple[str, str]:
    """Return the classes of the nearest synset of the evidence, and that synset."""
    nearest = finding.via[0]
    classes = names.others(operand, [v for v in finding.via if v[:2] == nearest[:2]])  # of that synset
    return classes, names.synset(nearest.wnid)


def all_above(wnids: Iterable[str], targets: ClassesBySynset, graph: Taxonomy) -> list[StepUp]:
    """Return the targets at or above any of the wnids, each once, the nearest first."""
    nearest: dict[str, int] = {}
    for wnid in wnids:
        for above, edges in graph.ancestors(wnid).items():
            if above in targets:
                nearest[above] = min(edges, nearest.get(above, edges))
    return sorted((edges, wnid) for wnid, edges in nearest.items())


def unrelated(
    class_ids: Sequence[str], targets: ClassesBySynset, candidates: Candidates
) -> dict[str, tuple[Via, ...]]:
    """Return, for each class, the targets as evidence of no relation, the nearest first.

    Edges are counted on the full graph, whatever hierarchy the rule follows.
    """
    columns, rows = sorted(targets), candidates.select(class_ids).all_wnids()
    if not rows or not columns:
        return dict.fromkeys(class_ids, ())
    distances = similarity_matrix("distance", rows, columns, candidates.taxonomy)
    row_of = {wnid: n for n, wnid in enumerate(rows)}

    def evidence(class_id: str) -> Evidence:
        if not (class_rows := [row_of[wnid] for wnid in candidates.wnids(class_id)]):
            return
        edges, key = distances[class_rows].min(axis=0), candidates.key(class_id)
        for n in edges.argsort(kind="stable").tolist():
            yield from _vias("unrelated", columns[n], targets[columns[n]], key, edges[n])

    return {c: tuple(evidence(c)) for c in class_ids}


def parents_of(synsets: ClassesBySynset, graph: Taxonomy) -> ClassesBySynset:
    """Return the direct hypernyms of synsets, each with the classes whose parent it is."""
    pairs = [
        (parent, key) for wnid, keys in synsets.items() for parent in graph.parents(wnid) for key in keys
    ]
    return Candidates.by_synset(pairs)


def _any_sense(operand: Operand, candidates: Candidates) -> dict[Key, MappedClass]:
    """Return the classes of an operand with all noun senses of their names."""
    senses = (
        (key, item.name, candidates.taxonomy.senses(item.name.replace(" ", "_")))
        for key, item in candidates.items(operand)
    )
    return {key: Mapped(name, wnids, wnids) for key, name, wnids in senses}


def _vias(relation: str, wnid: str, keys: Iterable[Key], candidate: Key, edges: int) -> Iterator[Via]:
    """Yield the evidence for every class of a synset, for the candidate itself only if it is the only one."""
    for source, class_id in sorted([key for key in keys if key != candidate]) or [candidate]:
        yield Via(relation, wnid, source, class_id, float(edges))


def _judge(
    expression: Expression,
    candidates: Candidates,
    synsets: ClassesBySynset,
    targets: ClassesBySynset,
    steps: Callable[[str], Iterable[Step]],
) -> dict[str, Finding]:
    """Return a finding for each candidate from its steps to the targets, the nearest first."""

    def evidence(class_id: str) -> Evidence:
        for relation, wnid, edges in steps(class_id):
            yield from _vias(relation, wnid, targets[wnid], candidates.key(class_id), edges)

    return _findings(expression, candidates, synsets, evidence)


def _findings(
    expression: Expression,
    candidates: Candidates,
    synsets: ClassesBySynset,
    evidence: Callable[[str], Evidence],
) -> dict[str, Finding]:
    """Return a finding for each candidate: its evidence, or the nearest of the synsets in an array."""
    vias = {c: tuple(evidence(c)) for c in candidates.class_ids}
    refused = [c for c, via in vias.items() if not via] if expression.value.kind == "ids" else []
    nearest = unrelated(refused, synsets, candidates)
    return {c: Finding(expression, bool(via), via or nearest.get(c, ())) for c, via in vias.items()}
