"""The margin by which a rule decided about a class, and what would change its role, from its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.rules import ClassRule
from wordnet_splits.benchmark.rules.operators.similarity import SimilarityBound
from wordnet_splits.benchmark.rules.syntax import Expression
from wordnet_splits.wordnet.taxonomy import Taxonomy

KIN = ("equal", "ancestor", "descendant")
TableRow = Mapping[str, Any]
MarginAndChange = tuple[str, str]
"""Margin, and what would change the role."""


def margin(row: TableRow, rules: Sequence[ClassRule], taxonomy: Taxonomy) -> MarginAndChange:
    """Return the margin of the decision about a row of a class table, and what would change its role.

    ``rules`` has the rule of the group that took the class, or the rules that refused it, in order.
    """
    via, rule = list(row["via"]), rules[-1] if rules else None
    draw_evidence = [v for v in via if v["relation"] == "draw"]
    if draw_evidence:
        return _of_draw(int(draw_evidence[-1]["value"]), [r.draw for r in rules if r.draw is not None][-1])
    if rule is not None and rule.operator == "slice" and via and via[0]["relation"] == "ancestor":
        position = f"place {via[0]['value']:.0f} of the sorted classes below {_synset_name(via[0], taxonomy)}"
        return position, "more or fewer classes before it in that order"
    if not via:
        nearest = "no distance" if row["distance"] is None else counted(row["distance"], "edge")
        if rule is not None and rule.operator == "rest":
            return f"no earlier group takes it; {nearest} to ID", "an earlier group that takes it"
        return (
            f"nothing of the rule touches it; {nearest} to ID",
            "a rule that touches it, or an earlier group",
        )
    by_bound = row["role"] == "excluded" and via[-1]["relation"] == "threshold"
    if by_bound and rule is not None and _refuses_kin(rule):  # then no bound would take kin of an ID class
        by_bound = via[0]["relation"] not in KIN
    decisive = via[-1] if by_bound else via[0]
    return MARGINS[decisive["relation"]](via, rule, taxonomy)


def _refuses_kin(rule: Expression) -> bool:
    """Say whether a rule combines its bound with ``{ not = { overlaps = ... } }``."""
    return rule.operator == "all" and any(
        part.operator == "not" and part.value.operator == "overlaps" for part in rule.value
    )


def _of_draw(position: int, count: int) -> MarginAndChange:
    if position <= count:
        spare = counted(count - position, "place")
        fewer = f"a draw of fewer than {counted(position, 'class')}"
        return f"drawn with {spare} to spare", fewer if position > 1 else "another seed: it is drawn first"
    missed = counted(position - count, "place")
    return f"missed the draw by {missed}", f"a draw of {counted(position, 'class')} or more"


def _of_kin(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    kin = {v["wnid"] for v in via if v["relation"] == via[0]["relation"]}
    edges = counted(int(via[0]["value"]), "edge")
    others = f", and {counted(len(kin) - 1, 'other synset')} with it" if len(kin) > 1 else ""
    return (
        f"{edges} from {_synset_name(via[0], taxonomy)}",
        f"the rule without {_synset_name(via[0], taxonomy)}{others}",
    )


def _of_keywords(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    reached = len({v["wnid"] for v in via if v["relation"] == "keyword"})
    return (
        f"its keywords reach {counted(reached, 'synset')} of kin",
        "another name, or a narrower keyword rule",
    )


def _of_words(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    others = len({(v["other_source"], v["other_class"]) for v in via if v["relation"] == via[0]["relation"]})
    where = "its name" if via[0]["relation"] == "name" else "a definition"
    return f"{where} reaches {counted(others, 'class')}", "other words, or another mapping"


def _of_parts(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    edges = counted(int(via[0]["value"]), "edge")
    return f"a pointer to {_synset_name(via[0], taxonomy)}, {edges} up", "WordNet without that pointer"


def _of_list(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    return "named, so there is no margin", "its name off that list"


def _of_bound(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    value, bounds = float(via[-1]["value"]), _bounds(rule)
    if not bounds:
        return f"a score of {value:.4g}", "another bound"
    bound = min(bounds, key=lambda b: abs(b - value))
    side = "above" if value >= bound else "below"
    return f"{abs(value - bound):.4g} {side} the bound {bound:g}", f"a bound on the other side of {value:.4g}"


def _bounds(rule: Any) -> list[float]:
    if isinstance(rule, SimilarityBound):
        return [b for b in (rule.above, rule.below) if b is not None]
    if isinstance(rule, tuple):
        return [b for part in rule for b in _bounds(part)]
    return _bounds(rule.value) if isinstance(getattr(rule, "operator", None), str) else []


def _of_unrelated(via: list[TableRow], rule: ClassRule | None, taxonomy: Taxonomy) -> MarginAndChange:
    nearest = min((v for v in via if v["relation"] == "unrelated"), key=lambda v: v["value"])
    edges = counted(int(nearest["value"]), "edge")
    return (
        f"{edges} from {_synset_name(nearest, taxonomy)}, the nearest the rule names",
        "its synset, or one above, named",
    )


def _synset_name(via: TableRow, taxonomy: Taxonomy) -> str:
    return f"{taxonomy.lemmas(via['wnid'])[0].replace('_', ' ')} ({via['wnid']})"


MARGINS: dict[str, Callable[[list[TableRow], ClassRule | None, Taxonomy], MarginAndChange]] = {
    **dict.fromkeys((*KIN, "sibling"), _of_kin),
    "keyword": _of_keywords,
    "list": _of_list,
    **dict.fromkeys(("name", "gloss", "named-in-gloss"), _of_words),
    **dict.fromkeys(("part", "whole"), _of_parts),
    "threshold": _of_bound,
    "unrelated": _of_unrelated,
}
