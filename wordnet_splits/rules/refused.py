"""What a rule saw that took no class at all, for the error that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from wordnet_splits.rules.context import Context, Question
from wordnet_splits.rules.structure import parents_of
from wordnet_splits.rules.verdict import Verdict

OF_PARENTS = ("shares_parent_with", "below_parent_of")
SHOWN = 5
"""Parents that the error names."""


def explain_refusals(source: str, verdicts: Mapping[str, Verdict], context: Context) -> str:
    """Say what a rule saw that took no candidate.

    That is how many candidates each operator refused, the parents that it asked about, and the score nearest
    to the bound.
    """
    if not verdicts:
        return "earlier groups have taken every class of the source"
    last = [v.findings[-1] for v in verdicts.values() if v.findings]
    counts = Counter(finding.test.operator for finding in last if not finding.undecided)
    said = [f"of {len(verdicts):,} candidates {name} decided against {n:,}" for name, n in counts.items()]
    if undecided := sum(finding.undecided for finding in last):
        said.append(
            f"{undecided:,} of {len(verdicts):,} candidates have no synset, and the rule reads WordNet"
        )
    scores = [
        (via.value, class_id, via)
        for class_id, verdict in verdicts.items()
        for via in verdict.via
        if via.relation == "threshold" and via.value is not None
    ]
    if scores:
        below = any(f.test.value.below is not None for f in last if f.test.operator == "similarity")
        value, class_id, via = (min if below else max)(scores, key=lambda score: score[:2])
        said.append(f"the nearest to pass is {class_id!r} with {value:.4g}, beside {via.other_class!r}")
    graph, ask = context.graph, Question(source, tuple(verdicts), context)
    for operand in dict.fromkeys(f.test.value for f in last if f.test.operator in OF_PARENTS):
        parents = sorted(parents_of(ask.synsets(operand), graph))
        named = ", ".join(f"{graph.name(wnid)} ({wnid})" for wnid in parents[:SHOWN])
        more = f" and {len(parents) - SHOWN:,} more" if len(parents) > SHOWN else ""
        said.append(f"the parents of {operand} are {named or 'none'}{more}")
    return "; ".join(said)
