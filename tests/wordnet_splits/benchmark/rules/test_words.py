"""Rules as sentences."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from wordnet_splits.benchmark.recipe import load_recipe, recipe_names
from wordnet_splits.benchmark.rules import registry
from wordnet_splits.benchmark.rules.phrases import rule_words
from wordnet_splits.benchmark.rules.syntax import FIELDS, MEANINGS, ClassRule

NEAR = {"shares_parent_with": "group:known"}
EQUAL = {"overlaps": "source:cifar10", "relation": "equal"}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (NEAR, "that share a direct hypernym with a class of the set known"),
        ({"not": NEAR}, "that do not share a direct hypernym with a class of the set known"),
        ({"not": {"not": EQUAL}}, "that equal a class of cifar10"),
        (
            {"not": {"any": [EQUAL, {"rest": True}]}},
            "that do not equal a class of cifar10, and are in an earlier set",
        ),
        (
            {"all": [{"listed": ["a", "b"]}, {"any": [NEAR, {"not": {"listed": "list:l"}}]}]},
            "that are one of a, b, and (share a direct hypernym with a class of the set known, "
            "or are not in the list l)",
        ),
        (
            {"clear_of": {"with": ["a", "b"]}},
            "that are clear of each of a, b in keywords and synsets",
        ),
        ({"draw": 2, "within": "superclass"}, "2 classes of each superclass of x, drawn at random"),
        (
            {"rest": True, "draw": 1},
            "1 class, drawn at random from the classes of x that are in no earlier set",
        ),
        (
            {"similarity": {"to": "group:known", "measure": "mean", "below": 0.5}},
            "that have a similarity (mean) of less than 0.5 to the nearest class of the set known",
        ),
        (
            {"keyword_overlap": {"with": "source:cifar10", "match": "lemma"}},
            "that have a keyword in their name that reaches a class of cifar10 or its relatives "
            "(a keyword is a whole lemma)",
        ),
        (
            {"slice": {"of": ["dog"], "half": "first"}},
            "that are in the first half of the sorted classes below dog",
        ),
        (
            {"siblings": {"half": "first"}},
            "that are in the first half of the classes of the same parents "
            "(the middle class of an odd number is in the second half)",
        ),
    ],
)
def test_rules_are_read_as_sentences(rule: dict[str, Any], words: str) -> None:
    assert rule_words(ClassRule.model_validate(rule), "x").removeprefix("the classes of x ") == words


def test_rules_over_a_custom_hierarchy_are_worded_without_wordnet() -> None:
    rules: list[dict[str, Any]] = [
        {"shares_parent_with": ["synset-1"]},
        {"below_parent_of": "group:id"},
        {"overlaps": "group:id", "relation": "kin"},
        {"keyword_overlap": {"with": "group:id", "nodes": "subtree"}},
        {"not": {"all": [{"clear_of": {"with": "group:id"}}, {"shares_name_with": "group:id"}]}},
    ]
    words = [rule_words(ClassRule.model_validate(rule), "x", noun="node") for rule in rules]
    assert [re.findall(r"hypernym|synsets?(?!-1)|WordNet", text) for text in words] == [[]] * len(rules)
    assert "synset-1" in words[0]


def test_a_negation_of_a_compound_keeps_its_meaning() -> None:
    both = {"not": {"all": [NEAR, EQUAL]}}
    assert ", or do not equal" in rule_words(ClassRule.model_validate(both))


@pytest.mark.parametrize("operator", sorted({*FIELDS} - {"all", "any", "not", "rest", "slice", "siblings"}))
def test_every_operator_has_a_clause(operator: str) -> None:
    value: Any = "source:cifar10"
    if operator in ("keyword_overlap", "clear_of"):
        value = {"with": value}
    if operator == "held_out":
        value = {"of": value, "unit": "subtrees", "classes": 9}
    if operator == "similarity":
        value = {"to": value, "measure": "mean", "above": 0.5}
    assert "cifar10" in rule_words(ClassRule.model_validate({operator: value}))


def test_an_operator_without_a_clause_is_named_with_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = registry.OPERATORS
    mute = dataclasses.replace(operators["subtree"], clause="")
    monkeypatch.setitem(operators._entries, "subtree", mute)
    words = rule_words(ClassRule.model_validate({"not": {"subtree": ["n02084071"]}}))
    assert all(text in words for text in ("subtree", "n02084071", MEANINGS["subtree"]))


def test_no_shipped_rule_has_syntax_in_its_words() -> None:
    groups = [group for name in recipe_names() for group in load_recipe(name).group]
    assert not [group.name for group in groups if set("{}=") & set(rule_words(group.classes, group.source))]
