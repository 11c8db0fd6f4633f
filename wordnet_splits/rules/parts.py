"""The operator of parts and wholes: part_whole_with."""

from __future__ import annotations

from wordnet_splits.rules.context import Question
from wordnet_splits.rules.evidence import Names, counted, renders
from wordnet_splits.rules.model import Expression
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.verdict import Finding, Via

WHOLE, PART = "whole", "part"


@operator("part_whole_with")
def part_whole_with(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes that are part, member or substance of one of the operand, or have one as theirs.

    A pointer counts between the other class's own synset and the candidate's or one above it: a four-poster
    is a bed, and a bed is part of a bedroom. Follows the full graph.
    """
    taxonomy = ask.context.taxonomy
    synsets = ask.synsets(test.value)
    found = {}
    for class_id in ask.candidates:
        own = ask.key(class_id)
        pieces: set[tuple[int, str, str, str]] = set()
        for wnid in ask.wnids(class_id):
            for above, edges in taxonomy.ancestors(wnid).items():
                pieces |= {
                    (edges, above, WHOLE, other) for other in taxonomy.wholes(above) if other in synsets
                }
                pieces |= {(edges, above, PART, other) for other in taxonomy.parts(above) if other in synsets}
        via, words = [], []
        for edges, above, relation, other in sorted(pieces):
            for source, name in synsets[other]:
                if (source, name) != own:
                    via.append(Via(relation, other, source, name, float(edges)))
                    words.append(above)
        found[class_id] = Finding(test, bool(via), tuple(via), tuple(words[:1]))
    return found


@renders("part_whole_with")
def _words(finding: Finding, names: Names) -> str:
    operand = finding.test.value
    if not finding.holds:
        return (
            f"neither {names.it} nor a synset above it is part of {names.any_of(operand)}, or has one as part"
        )
    first = finding.via[0]
    same = [v for v in finding.via if (v.relation, v.wnid) == (first.relation, first.wnid)]
    edges = int(first.value or 0)
    it = (
        names.it
        if not edges
        else f"{names.synset(finding.words[0])}, {counted(edges, 'edge')} above {names.it},"
    )
    verb = (
        "is part, member or substance of" if first.relation == WHOLE else "has as part, member or substance"
    )
    return f"{it} {verb} {names.synset(first.wnid)}, the synset of {names.others(operand, same)}"
