"""The operator that looks at names: keyword_overlap (Kim et al. 2023, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wordnet_splits.rules.context import ClassesBySynset, Question
from wordnet_splits.rules.keywords import Match, matches
from wordnet_splits.rules.model import Expression, KeywordOverlap
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.verdict import Finding, Key, Via
from wordnet_splits.taxonomy import Taxonomy

PRECEDENCE = ("equal", "sibling", "ancestor", "descendant")
"""Where a synset has several relations to the classes, the first of these counts."""


@operator("keyword_overlap")
def keyword_overlap(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes with a keyword that reaches a class of the operand or a relative of one.

    A synset reached counts when it (i) is the synset of a class of ``with``, (ii) has one as a sibling, or
    (iii) has one as an ancestor or a descendant. ``nodes = "subtree"`` lets a keyword reach only the
    subtree that the classes span: their synsets and all ancestors, up to the root. Follows the full graph.
    """
    rule: KeywordOverlap = test.value
    near = relatives(ask.synsets(rule.with_), ask.context.taxonomy, rule.nodes == "subtree")
    found: dict[str, Finding] = {}
    for class_id in ask.candidates:
        reached = reached_by_name(ask.catalog[class_id].name, rule, ask.context.taxonomy)
        hits = most_telling_first(reached, near)
        found[class_id] = _finding(test, hits, near) if hits else Finding(test, False)
    return found


@dataclass(frozen=True)
class Relative:
    """What a class is to a synset: ``relation`` of it by way of ``wnid``, ``edges`` away."""

    relation: str
    wnid: str
    key: Key
    edges: int


def relatives(
    synsets: ClassesBySynset, taxonomy: Taxonomy, only_subtree: bool = False
) -> dict[str, Relative]:
    """Return every synset that is, or is a relative of, a class's synset, with the most telling relation.

    Relations in the order of `PRECEDENCE`, then fewest edges, then the smallest wnid and class.
    """
    found: dict[str, tuple[int, int, str, Key]] = {}

    def note(node: str, relation: str, wnid: str, keys: tuple[Key, ...], edges: int) -> None:
        offer = PRECEDENCE.index(relation), edges, wnid, keys[0]
        found[node] = min(found.get(node, offer), offer)

    for wnid, keys in synsets.items():
        note(wnid, "equal", wnid, keys, 0)
        for above, edges in taxonomy.ancestors(wnid).items():
            if edges:
                note(above, "descendant", wnid, keys, edges)
        for parent in taxonomy.parents(wnid):
            for sibling in taxonomy.children(parent):
                if sibling != wnid:
                    note(sibling, "sibling", parent, keys, 1)
        for below, edges in _descents(wnid, taxonomy):
            note(below, "ancestor", wnid, keys, edges)
    if only_subtree:
        spanned = {above for wnid in synsets for above in taxonomy.ancestors(wnid)}
        found = {node: offer for node, offer in found.items() if node in spanned}
    return {node: Relative(PRECEDENCE[r], wnid, key, edges) for node, (r, edges, wnid, key) in found.items()}


def _descents(wnid: str, taxonomy: Taxonomy) -> Iterator[tuple[str, int]]:
    """Yield every synset strictly below, with the fewest edges down to it."""
    wave, seen, edges = [wnid], {wnid}, 0
    while wave:
        edges += 1
        wave = sorted({child for node in wave for child in taxonomy.children(node)} - seen)
        seen.update(wave)
        for node in wave:
            yield node, edges


def reached_by_name(name: str, rule: KeywordOverlap, taxonomy: Taxonomy) -> tuple[Match, ...]:
    """Return the synsets that a name's keywords reach under a rule's settings."""
    return matches(
        name, match=rule.match, qualifiers=rule.qualifiers, compounds=rule.compounds, taxonomy=taxonomy
    )


def most_telling_first(reached: tuple[Match, ...], near: Mapping[str, Relative]) -> list[Match]:
    """Return the matches of relatives, each synset once: keywords that are lemmas, the closest relation."""
    hits = [m for m in reached if m.wnid in near]
    hits.sort(key=lambda m: (m.lemma != m.keyword, PRECEDENCE.index(near[m.wnid].relation)))
    first: dict[str, Match] = {}
    for match in hits:
        first.setdefault(match.wnid, match)
    return list(first.values())


def _finding(test: Expression, hits: list[Match], near: Mapping[str, Relative]) -> Finding:
    via = []
    for hit in hits:
        relative = near[hit.wnid]
        source, class_id = relative.key
        via += [
            Via("keyword", hit.wnid, source, class_id),
            Via(relative.relation, relative.wnid, source, class_id, float(relative.edges)),
        ]
    first = hits[0]
    return Finding(test, True, tuple(via), (first.keyword, first.kind, first.lemma))
