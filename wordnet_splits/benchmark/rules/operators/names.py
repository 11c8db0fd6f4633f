"""Operators that compare names: keyword_overlap, shares_name_with, gloss_mentions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from wordnet_splits.benchmark.rules.context import (
    Candidates,
    ClassesBySynset,
    Key,
    KeywordOverlap,
    OperandField,
)
from wordnet_splits.benchmark.rules.keywords import Match, matches, stopwords
from wordnet_splits.benchmark.rules.registry import (
    GLOSSES,
    HIERARCHY,
    MEASURE,
    NAMES,
    SENSE,
    WORDNET,
    Finding,
    Names,
    Via,
    register_operator,
)
from wordnet_splits.wordnet.taxonomy import Taxonomy

if TYPE_CHECKING:
    from wordnet_splits.benchmark.rules.syntax import Expression

PRECEDENCE = ("equal", "sibling", "ancestor", "descendant")
"""Where a synset has several relations to the classes, the first of these counts."""
LONGEST = 4
"""Most words of a name that is searched for in a definition."""


def _keyword_overlap_wording(finding: Finding, names: Names) -> str:
    rule: KeywordOverlap = finding.expression.value
    if not finding.holds:
        all_kin = ", or a sibling, superclass or subclass of one"
        kin = all_kin if rule.nodes == "all" else " or a superclass of one"
        return f"no keyword of {names.subject} matches {names.a_kind(rule.with_)}{kin}"
    reached, relative = finding.via[:2]
    keyword, kind, lemma = finding.words
    variant = "" if kind in ("name", "tokens") else f" (variant: {kind})"
    related = names.others(rule.with_, [relative])
    relation = {
        "equal": f"which is {related}",
        "sibling": f"a sibling of {related} under {names.synset(relative.wnid)}",
        "ancestor": f"a subclass of {related}",
        "descendant": f"a superclass of {related}",
    }[relative.relation]
    spelled = "" if lemma == keyword else f" as {lemma.replace('_', ' ')!r}"
    return (
        f"the keyword {keyword.replace('_', ' ')!r}{variant} of {names.subject} matches "
        f"{names.synset(reached.wnid)}{spelled}, {relation}"
        + (f" (the closest of {len(finding.via) // 2:,} matches)" if len(finding.via) > 2 else "")
    )


# not SENSE: a keyword reaches every sense of a name
@register_operator(
    "keyword_overlap",
    value=KeywordOverlap,
    meaning="a keyword of the name reaches one or its kin",
    reads=frozenset({HIERARCHY, MEASURE, NAMES, WORDNET}),
    wording=_keyword_overlap_wording,
    clause="have a keyword in their name that reaches {} or its relatives",
)
def keyword_overlap(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes with a keyword that reaches an operand's class or its relative.

    A synset reached counts when it (i) is the synset of a class of ``with``, (ii) has one as a sibling, or
    (iii) has one as an ancestor or a descendant. ``nodes = "subtree"`` lets a keyword reach only the
    subtree that the classes span: their synsets and all ancestors, up to the root. Follows the full graph.
    """
    rule: KeywordOverlap = expression.value
    taxonomy = candidates.taxonomy
    near = relatives(candidates.synsets(rule.with_), taxonomy, rule.nodes == "subtree")
    findings: dict[str, Finding] = {}
    for class_id in candidates.class_ids:
        reached = matches(
            candidates.catalog[class_id].name,
            match=rule.match,
            qualifiers=rule.qualifiers,
            compounds=rule.compounds,
            taxonomy=taxonomy,
        )
        hits: dict[str, Match] = {}  # synset -> its first match, keywords that are lemmas before others
        for match in sorted(
            (match for match in reached if match.wnid in near),
            key=lambda m: (m.lemma != m.keyword, PRECEDENCE.index(near[m.wnid].relation)),
        ):
            hits.setdefault(match.wnid, match)
        via = []
        for wnid in hits:
            relative = near[wnid]
            via += [
                Via("keyword", wnid, *relative.key),
                Via(relative.relation, relative.wnid, *relative.key, float(relative.edges)),
            ]
        closest = next(iter(hits.values()), None)
        words = () if closest is None else (closest.keyword, closest.kind, closest.lemma)
        findings[class_id] = Finding(expression, bool(hits), tuple(via), words)
    return findings


@dataclass(frozen=True)
class Relative:
    """A class related to a synset: the relation, the synset that connects them, and the edges between."""

    relation: str
    wnid: str
    key: Key
    edges: int


def relatives(
    synsets: ClassesBySynset, taxonomy: Taxonomy, only_subtree: bool = False
) -> dict[str, Relative]:
    """Return every synset that equals or is related to a class's synset, with the closest relation.

    Relations in the order of `PRECEDENCE`, then fewest edges, then the smallest wnid and class.
    """
    closest: dict[str, tuple[int, int, str, Key]] = {}
    equal, sibling, ancestor, descendant = range(len(PRECEDENCE))

    def add(node: str, relative: tuple[int, int, str, Key]) -> None:
        if node not in closest or relative < closest[node]:
            closest[node] = relative

    for wnid, (key, *_) in synsets.items():
        add(wnid, (equal, 0, wnid, key))
        for above, edges in taxonomy.ancestors(wnid).items():
            if edges:
                add(above, (descendant, edges, wnid, key))
        for parent in taxonomy.parents(wnid):
            for child in taxonomy.children(parent):
                if child != wnid:
                    add(child, (sibling, 1, parent, key))
        for below, edges in _descents(wnid, taxonomy):
            add(below, (ancestor, edges, wnid, key))
    if only_subtree:
        spanned = {above for wnid in synsets for above in taxonomy.ancestors(wnid)}
        closest = {node: relative for node, relative in closest.items() if node in spanned}
    return {n: Relative(PRECEDENCE[r], wnid, key, edges) for n, (r, edges, wnid, key) in closest.items()}


def _descents(wnid: str, taxonomy: Taxonomy) -> Iterator[tuple[str, int]]:
    """Yield every synset strictly below, with the fewest edges down to it."""
    wave, visited, edges = [wnid], {wnid}, 0
    while wave:
        edges += 1
        wave = sorted({child for node in wave for child in taxonomy.children(node)} - visited)
        visited.update(wave)
        for node in wave:
            yield node, edges


def _shares_name_with_wording(finding: Finding, names: Names) -> str:
    operand = finding.expression.value
    if not finding.holds:
        return f"no lemma of {names.subject} is the name of {names.any_of(operand)}"
    word = finding.words[0].replace("_", " ")
    return f"the lemma {word!r} of {names.subject} is the name of {names.others(operand, finding.via)}"


@register_operator(
    "shares_name_with",
    value=OperandField,
    meaning="a word of its synset is a name",
    reads=frozenset({NAMES, SENSE, WORDNET}),
    wording=_shares_name_with_wording,
    clause="have a synset with the name of {} among its words",
)
def shares_name_with(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes with a synset that has the name of a class of the operand as a lemma.

    Labels are compared, not senses. Case, hyphens and the qualifier after ``/`` in a name are ignored.
    """
    keys_of: dict[str, list[Key]] = defaultdict(list)
    for key, item in candidates.items(expression.value):
        keys_of[_unqualified(item.name)].append(key)
    findings = {}
    for class_id in candidates.class_ids:
        via, words = [], []
        for wnid in sorted(candidates.wnids(class_id)):
            for lemma in candidates.taxonomy.lemmas(wnid):
                for key in keys_of.get(_comparable(lemma), ()):
                    if key != candidates.key(class_id):
                        via.append(Via("name", wnid, *key))
                        words.append(lemma)
        findings[class_id] = Finding(expression, bool(via), tuple(via), tuple(words[:1]))
    return findings


def _unqualified(name: str) -> str:
    """Return a class name without its qualifier after ``/``, to be compared with lemmas."""
    return _comparable(name.split("/")[0].strip().replace(" ", "_"))


def _comparable(lemma: str) -> str:
    return lemma.replace("-", "_").lower()


def _gloss_mentions_wording(finding: Finding, names: Names) -> str:
    operand = finding.expression.value
    if not finding.holds:
        return f"the definition of {names.subject} does not mention {names.any_of(operand)}, nor the reverse"
    via, word = finding.via[0], finding.words[0].replace("_", " ")
    if via.relation == "gloss":
        return f"the definition of {names.subject} mentions {word!r}, {names.others(operand, [via])}"
    classes = names.others(operand, [v for v in finding.via if v[:2] == via[:2]])
    return f"the definition of {names.synset(via.wnid)}, {classes}, mentions {word!r}"


@register_operator(
    "gloss_mentions",
    value=OperandField,
    meaning="a gloss names the other, either way",
    reads=frozenset({GLOSSES, SENSE, WORDNET}),
    wording=_gloss_mentions_wording,
    clause="are mentioned in the definition of {}, or mention it in theirs",
)
def gloss_mentions(expression: Expression, candidates: Candidates) -> dict[str, Finding]:
    """Accept the classes whose definition names a class of the operand, or is named in that class's.

    A class is named by the lemmas of its synsets and by its name without the qualifier after ``/``; the last
    word may be in the plural. Only the first definition of a gloss counts, not further ones or examples.
    """
    taxonomy = candidates.taxonomy
    named: dict[str, list[tuple[str, Key]]] = defaultdict(list)
    mentioning: dict[str, list[tuple[str, Key]]] = defaultdict(list)
    for key, item in candidates.items(expression.value):
        for wnid in item.wnids:
            for name in _names([wnid], item.name, taxonomy):
                named[name].append((wnid, key))
            for phrase in _phrases_of_gloss(wnid, taxonomy):
                mentioning[phrase].append((wnid, key))
    findings = {}
    for class_id in candidates.class_ids:
        mentions: list[tuple[Via, str]] = []
        wnids = sorted(candidates.wnids(class_id))
        for wnid in wnids:
            for phrase in sorted(_phrases_of_gloss(wnid, taxonomy)):
                mentions += [(Via("gloss", wnid, *key), phrase) for _, key in sorted(named.get(phrase, ()))]
        for name in sorted(_names(wnids, candidates.catalog[class_id].name, taxonomy)):
            pairs = sorted(mentioning.get(name, ()))
            mentions += [(Via("named-in-gloss", wnid, *key), name) for wnid, key in pairs]
        candidate = candidates.key(class_id)
        mentions = [(via, word) for via, word in mentions if (via.other_source, via.other_class) != candidate]
        vias = tuple(dict.fromkeys(via for via, _ in mentions))
        findings[class_id] = Finding(expression, bool(vias), vias, tuple(word for _, word in mentions[:1]))
    return findings


@lru_cache(maxsize=1 << 12)
def _phrases_of_gloss(wnid: str, taxonomy: Taxonomy) -> frozenset[str]:
    """Return every run of up to `LONGEST` words of a definition, each also with its last word singular."""
    text = taxonomy.first_definition(wnid)
    words = re.findall(r"[a-z][a-z'-]*", text.lower().replace("-", "_").replace("_", " "))
    runs = set()
    for start in range(len(words)):
        for stop in range(start + 1, min(start + LONGEST, len(words)) + 1):
            head, last = words[start : stop - 1], words[stop - 1]
            runs |= {"_".join([*head, form]) for form in (last, taxonomy.morphy(last) or last)}
    return frozenset(runs)


def _names(wnids: Iterable[str], name: str, taxonomy: Taxonomy) -> set[str]:
    names = {_comparable(lemma) for wnid in wnids for lemma in taxonomy.lemmas(wnid)} | {_unqualified(name)}
    return names - stopwords()
