from __future__ import annotations

import tomllib
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from wordnet_splits.benchmark.rules import ClassRule, Operand, known_keys, lists_used, operands, rule_text
from wordnet_splits.benchmark.rules.context import KeywordOverlap, Measure
from wordnet_splits.benchmark.rules.operators.similarity import SimilarityBound
from wordnet_splits.benchmark.rules.syntax import FIELDS, Expression
from wordnet_splits.wordnet.similarity import pairs as similarity


def parse(text: str) -> ClassRule:
    return ClassRule.model_validate(tomllib.loads(f"classes = {text}")["classes"])


def refusal(text: str) -> tuple[tuple[Any, ...], str]:
    """Where the first problem is, and what it says."""
    with pytest.raises(ValidationError) as caught:
        parse(text)
    problem = caught.value.errors(include_url=False)[0]
    return problem["loc"], problem["msg"]


AS_DOCUMENTED = [
    '{ draw = 2, within = "superclass" }',
    '{ all = [{ listed = "source:tiny-imagenet" }, { not = { overlaps = "source:cifar100", senses = "any", '
    'relation = "self-or-below" } }] }',
    '{ not = { keyword_overlap = { with = "source:imagenet1k", nodes = "all", match = "token", '
    'qualifiers = "drop", compounds = "whole" } } }',
    '{ similarity = { to = "source:places365", measure = "mean", above = 0.6 } }',
    '{ slice = { of = ["n02087122"], half = "first" } }',
    '{ slice = { of = ["n02084071", "n01503061"], every = 6, at = [0, 2, 4] } }',
    '{ slice = { of = ["n02084071"], first = 8 } }',
    '{ siblings = { half = "first", odd = "alternate" } }',
    '{ held_out = { of = "source:cifar100", unit = "subtrees", classes = 20, largest = 5 } }',
    '{ all = [{ subtree = ["n02075296"] }, { below_one = ["n02075296", "n03183080"] }] }',
    '{ below_parent_of = "group:id", draw = 200 }',
    '{ shares_parent_with = ["0", "1"] }',
    '{ subtree = ["n02084071"] }',
    '{ listed = "list:tin597" }',
    "{ rest = true }",
]


@pytest.mark.parametrize("text", AS_DOCUMENTED)
def test_documented_forms_are_read_and_written_back(text: str) -> None:
    assert rule_text(parse(text)) == text


names = st.text("abcdefghij-0123456789", min_size=1, max_size=8)
operand_texts = st.one_of(
    st.builds("{}:{}".format, st.sampled_from(["group", "source", "list"]), names),
    st.lists(names, min_size=1, max_size=3, unique=True),
)
leaves = st.one_of(
    st.builds(
        lambda key, operand: {key: operand}, st.sampled_from(["listed", "subtree", "overlaps"]), operand_texts
    ),
    st.builds(
        lambda operand, bound: {"similarity": {"to": operand, "measure": "path", "above": bound}},
        operand_texts,
        st.floats(0, 1),
    ),
    st.just({"rest": True}),
)
rules = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(
            lambda key, parts: {key: parts},
            st.sampled_from(["all", "any"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=6,
)


@given(rules)
def test_what_is_written_reads_as_the_same_rule(table: dict[str, Any]) -> None:
    rule = ClassRule.model_validate(table)
    assert parse(rule_text(rule)) == rule


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ('{ subtre = ["n02084071"] }', ("subtre",)),
        ('{ all = [{ listed = "group:a" }, { lists = "group:a" }] }', ("all", 1, "lists")),
        (
            '{ not = { keyword_overlap = { with = "group:a", node = "all" } } }',
            ("not", "keyword_overlap", "node"),
        ),
        ('{ all = [{ listed = "group:a", draw = 2 }] }', ("all", 0, "draw")),  # a draw applies last, outside
        ('{ slice = { of = ["n02084071"], halves = "first" } }', ("slice", "halves")),
    ],
)
def test_a_wrong_key_is_refused_at_its_place(text: str, location: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        parse(text)
    extra = [p["loc"] for p in caught.value.errors() if p["type"] == "extra_forbidden"]
    assert extra == [location]


@pytest.mark.parametrize(
    ("text", "location", "message"),
    [
        ("{ }", (), "no operator; operators: "),
        ('{ within = "superclass", rest = true }', (), "within goes with draw"),
        ('{ subtree = ["n02084071"], rest = true }', (), "combine them with all"),
        ('{ listed = "group:a", senses = "any" }', (), "senses and relation go with overlaps"),
        ("{ all = [] }", (), "all must have at least one"),
        ('{ listed = "sorce:cifar100" }', ("listed",), "did you mean 'source:cifar100'?"),
        ('{ listed = "cifar100" }', ("listed",), "is not an operand"),
        ("{ listed = [] }", ("listed",), "non-empty array"),
        ('{ listed = ["a", "b", "a"] }', ("listed",), "'a' occurs twice"),
        ("{ listed = 3 }", ("listed",), "an operand is"),
        (
            '{ slice = { of = ["n02084071"], half = "first", every = 2, at = [0] } }',
            ("slice",),
            "give one of half, first",
        ),
        ('{ slice = { of = ["n02084071"], every = 2 } }', ("slice",), "give one of half, first"),
        ('{ slice = { of = ["n02084071"], every = 2, at = [2] } }', ("slice",), "at counts from 0 to 1"),
        (
            '{ similarity = { to = "group:a", measure = "wup" } }',
            ("similarity",),
            "exactly one of above, below",
        ),
        ('{ listed = "group:a", draw = 0 }', ("draw",), "greater than or equal to 1"),
        ("{ rest = false }", ("rest",), "the only value is `true`"),
    ],
)
def test_a_malformed_rule_says_what_is_wrong(text: str, location: tuple[Any, ...], message: str) -> None:
    where, what = refusal(text)
    assert where == location
    assert message in what


def test_measures_are_those_of_the_similarity_module() -> None:
    assert set(get_args(Measure)) == set(similarity.MEASURES)


def test_keys_are_listed_as_the_recipe_spells_them() -> None:
    assert known_keys(ClassRule)[-3:] == ("not", "draw", "within")
    assert "draw" not in known_keys(Expression)
    assert known_keys(KeywordOverlap) == ("with", "nodes", "match", "qualifiers", "compounds")
    assert "below" in known_keys(SimilarityBound)
    assert set(FIELDS) < set(known_keys(Expression))


def test_operands_are_found_at_any_depth() -> None:
    rule = parse(
        '{ any = [{ listed = "list:b" }, { not = { all = [{ keyword_overlap = { with = "list:a" } }, '
        '{ subtree = ["n02084071"] }, '
        '{ similarity = { to = "group:g", measure = "path", below = 1 } }] } }] }'
    )
    assert set(operands(rule)) == {
        Operand("list", "a"),
        Operand("list", "b"),
        Operand("group", "g"),
        Operand("ids", ids=("n02084071",)),
    }
    assert lists_used(rule) == ("a", "b")
    assert lists_used(parse("{ rest = true, draw = 3 }")) == ()
