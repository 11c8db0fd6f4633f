from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import mentions, raises
from tests.wordnet_splits.benchmark.rules.toy import PETS, context, judge, load, taken
from wordnet_splits.base import digests
from wordnet_splits.base.errors import RecipeError, UnknownNameError
from wordnet_splits.benchmark.rules import ClassRule, Via, decide, sentence
from wordnet_splits.benchmark.rules.phrases import explain_refusals
from wordnet_splits.benchmark.rules.syntax import FIELDS

Table = dict[str, Any]

some_pets = st.lists(st.sampled_from(PETS), min_size=1, unique=True)
leaves = st.one_of(
    some_pets.map(lambda ids: {"listed": ids}),
    st.sampled_from(["n00000002", "n00000010", "n00000011", "n00000003"]).map(lambda w: {"subtree": [w]}),
    st.just({"rest": True}),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=8,
)
draws = st.integers(min_value=1, max_value=3)


def possible(table: Table) -> tuple[set[str], set[str]]:
    """The same algebra on sets: the classes that a rule is sure to take, and those that it might.

    About cloud, which has no synset, WordNet might say anything.
    """
    ((key, value),) = table.items()
    if key in ("all", "any"):
        combine = set.intersection if key == "all" else set.union
        sure, maybe = zip(*map(possible, value), strict=True)
        return combine(*sure), combine(*maybe)
    if key == "not":
        sure_of_it, maybe_it = possible(value)
        return set(PETS) - maybe_it, set(PETS) - sure_of_it
    found = taken(table)
    return found, found | ({"cloud"} if key == "subtree" else set())


@given(expressions)
def test_all_any_and_not_are_set_algebra(table: Table) -> None:
    verdicts = judge(table)
    sure, maybe = possible(table)
    assert {c for c, verdict in verdicts.items() if verdict.accepted} == sure
    assert {c for c, verdict in verdicts.items() if verdict.undecided} == maybe - sure


READING_WORDNET: list[Table] = [
    {"subtree": ["n00000003"]},
    {"below_one": ["n00000003"]},
    {"shares_parent_with": ["pug"]},
    {"below_parent_of": ["pug"]},
    {"overlaps": ["pug"]},
    {"overlaps": "source:drawer", "senses": "any"},
    {"keyword_overlap": {"with": ["pug"]}},
    {"clear_of": {"with": ["pug"]}},
    {"shares_name_with": "source:drawer"},
    {"part_whole_with": ["pug"]},
    {"gloss_mentions": "source:drawer"},
    {"similarity": {"to": ["pug"], "measure": "path", "above": 0.1}},
    {"similarity": {"to": ["pug"], "measure": "path", "below": 0.9}},
    {"slice": {"of": ["n00000001"], "half": "first"}},
    {"siblings": {"half": "first"}},
    {"held_out": {"of": "source:pets", "unit": "leaves", "classes": 1}},
]


@pytest.mark.parametrize("rule", READING_WORDNET, ids=lambda rule: next(iter(rule)))
def test_a_class_without_a_synset_is_taken_neither_by_a_rule_on_wordnet_nor_by_its_opposite(
    rule: Table,
) -> None:
    for table in (rule, {"not": rule}):
        verdict = judge(table)["cloud"]
        assert (verdict.accepted, verdict.undecided) == (False, True)
        said = sentence(verdict, source="pets", class_id="cloud", group="far", context=context())
        assert said.startswith("not far: cloud has no synset, ")
        by_name = judge({"any": [table, {"listed": ["cloud"]}]})["cloud"]
        assert by_name.accepted


def test_every_operator_that_reads_wordnet_is_tried_above() -> None:
    tried = {operator for rule in READING_WORDNET for operator in rule} - {"senses"}
    assert tried == {*FIELDS} - {"listed", "rest", "all", "any", "not"}


def test_a_rule_that_finds_no_class_with_a_synset_says_so() -> None:
    verdicts = judge({"not": {"subtree": ["n00000002"]}}, offered=["pug", "cloud"])
    assert explain_refusals("pets", verdicts, context()) == (
        "`subtree` rejected 1 of 2 candidates; 1 of 2 candidates have no synset, and the rule reads WordNet"
    )


@given(expressions, expressions)
def test_de_morgan(a: Table, b: Table) -> None:
    assert taken({"not": {"all": [a, b]}}) == taken({"any": [{"not": a}, {"not": b}]})
    assert taken({"not": {"any": [a, b]}}) == taken({"all": [{"not": a}, {"not": b}]})


@given(expressions)
def test_every_class_gets_a_verdict_with_findings(table: Table) -> None:
    verdicts = judge(table)
    assert list(verdicts) == list(PETS)
    assert all(verdict.findings for verdict in verdicts.values())


@given(expressions, st.permutations(PETS), draws)
def test_neither_rule_nor_draw_depends_on_the_order_of_offers(table: Table, order: list[str], n: int) -> None:
    rule = {**table, "draw": min(n, len(taken(table)) or 1)}
    if taken(table):
        assert taken(rule, offered=order) == taken(rule)
        assert taken(rule) <= taken(table)
        assert len(taken(rule)) == rule["draw"]


@given(st.sets(st.sampled_from(PETS), min_size=2), draws)
def test_a_larger_draw_keeps_the_smaller_one(offered: set[str], n: int) -> None:
    n = min(n, len(offered) - 1)
    fewer = taken({"rest": True, "draw": n}, offered=sorted(offered))
    more = taken({"rest": True, "draw": n + 1}, offered=sorted(offered))
    assert fewer < more


@given(st.sets(st.sampled_from(PETS), min_size=2))
def test_a_draw_is_the_classes_of_smallest_key(offered: set[str]) -> None:
    first = min(offered, key=lambda c: (digests.sampling_key("toy", 0, "pets", c), c))
    assert taken({"rest": True, "draw": 1}, offered=sorted(offered)) == {first}


def test_a_draw_within_a_column_is_made_in_each_of_its_values() -> None:
    superclass = {c.class_id: c.superclass for c in load("pets")}
    drawn = taken({"draw": 2, "within": "superclass"})
    assert sorted(superclass[c] for c in drawn) == ["dogs", "dogs", "others", "others"]
    drawn = taken({"not": {"listed": ["cloud"]}, "draw": 1, "within": "superclass"})
    assert sorted(superclass[c] for c in drawn) == ["dogs", "others"]
    assert "cloud" not in drawn


def test_another_seed_or_name_is_another_draw() -> None:
    draws = {
        frozenset(taken({"rest": True, "draw": 3}, draw=name, seed=seed))
        for name in "abc"
        for seed in range(4)
    }
    assert len(draws) > 5


def test_the_draw_leaves_its_place_as_evidence() -> None:
    verdicts = judge({"subtree": ["n00000010"], "draw": 2})
    places = {c: v.via[-1] for c, v in verdicts.items() if v.via and v.via[-1].relation == "draw"}
    assert sorted(via.value or 0 for via in places.values()) == [1.0, 2.0, 3.0]
    assert {c for c, via in places.items() if (via.value or 0) <= 2} == taken(
        {"subtree": ["n00000010"], "draw": 2}
    )
    refused = verdicts["tabby"].via  # no candidate, so refused by the rule and not by the draw
    assert [via.relation for via in refused] == ["unrelated"]


def test_all_tells_the_first_refusal_and_any_all_of_them() -> None:
    parts = [{"subtree": ["n00000002"]}, {"listed": ["pug"]}, {"listed": ["borzoi"]}]
    assert [f.expression.operator for f in judge({"all": parts})["cleaver"].findings] == ["subtree"]
    assert [f.expression.operator for f in judge({"all": parts})["tabby"].findings] == ["listed"]
    assert [f.expression.operator for f in judge({"any": parts[1:]})["tabby"].findings] == [
        "listed",
        "listed",
    ]
    assert len(judge({"any": parts})["pug"].findings) == 1
    assert judge({"not": {"listed": ["pug"]}})["pug"].via == (Via("list", None, "pets", "pug"),)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"subtree": ["n00000010"], "draw": 4}, ("pets", "4", "3")),
        (
            {"draw": 4, "within": "superclass"},
            ("pets", "dogs", "superclass", "4"),
        ),
        ({"draw": 1, "within": "count_group"}, ("count_group", "pug")),
    ],
)
def test_a_draw_of_more_than_there_is_is_refused(rule: Table, says: object) -> None:
    with pytest.raises(RecipeError) as caught:
        judge(rule)
    assert mentions(str(caught.value), says)


def test_a_column_that_does_not_exist_is_named() -> None:
    with raises(UnknownNameError, where="'pets'", naming="superklass", near="superclass"):
        judge({"draw": 1, "within": "superklass"})


def test_a_candidate_of_another_source_is_refused() -> None:
    with raises(UnknownNameError, where="'pets'", naming="spoon"):
        decide(ClassRule.model_validate({"rest": True}), "pets", ["spoon"], context())


def test_slices_do_not_move_when_groups_take_classes() -> None:
    rule = {"slice": {"of": ["n00000002"], "every": 2, "at": [1]}}  # chihuahua, tabby
    assert taken(rule, offered=["pug", "tabby", "cleaver"]) == {"tabby"}
    assert taken(rule) & {"pug", "tabby", "cleaver"} == {"tabby"}
