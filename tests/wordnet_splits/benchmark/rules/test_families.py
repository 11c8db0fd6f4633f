"""siblings, below_one and the first n of a slice, against what a few lines of dicts say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wordnet_splits.benchmark.rules.toy import catalog, context, taken
from wordnet_splits.benchmark.rules import ClassRule, Verdict, decide, sentence
from wordnet_splits.datasets.catalog import Catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy

Parents = dict[str, list[str]]
HALVES = ("first", "second")


def wnid(number: int) -> str:
    return f"n{number:08d}"


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Parents, list[str]]:
    """Up to 24 synsets, each below one or two earlier ones, and classes in an order of their own."""
    size = draw(st.integers(3, 24))
    parents = {
        wnid(n): sorted({wnid(p) for p in draw(st.lists(st.integers(1, n - 1), min_size=1, max_size=2))})
        for n in range(2, size + 1)
    }
    every = [wnid(n) for n in range(1, size + 1)]
    classes = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    return parents, classes


def judged(rule: dict[str, Any], parents: Parents, classes: list[str]) -> dict[str, Verdict]:
    own = catalog("own", [(c, c, "") for c in classes])
    return decide(ClassRule.model_validate(rule), "own", classes, world(parents, own))


def world(parents: Parents, own: Catalog) -> Any:
    return context(taxonomy=Taxonomy.from_edges(parents), catalog=lambda _: own)


def accepted(verdicts: dict[str, Verdict]) -> list[str]:
    return [c for c, verdict in verdicts.items() if verdict.accepted]


def above(parents: Parents, start: str) -> set[str]:
    found, todo = set(), [start]
    while todo:
        found.add(node := todo.pop())
        todo += parents.get(node, [])
    return found


@pytest.mark.parametrize("odd", ["first", "second", "alternate"])
@given(worlds())
def test_halves_part_every_family(odd: str, made: tuple[Parents, list[str]]) -> None:
    parents, classes = made
    first, second = (
        accepted(judged({"siblings": {"half": half, "odd": odd}}, parents, classes)) for half in HALVES
    )
    assert sorted(first + second) == sorted(c for c in classes if c in parents)
    families: dict[tuple[str, ...], list[str]] = {}
    for c in classes:
        if c in parents:
            families.setdefault(tuple(parents[c]), []).append(c)
    turn = 0
    for members in families.values():
        size = len(members) // 2
        if len(members) % 2:
            size += odd == "first" or (odd == "alternate" and turn % 2 == 0)
            turn += 1
        assert [c for c in members if c in first] == members[:size]
        assert [c for c in members if c in second] == members[size:]
    if odd == "alternate":
        assert len(first) - len(second) == turn % 2


@given(worlds(), st.data())
def test_halves_do_not_depend_on_what_is_still_on_offer(
    made: tuple[Parents, list[str]], data: st.DataObject
) -> None:
    parents, classes = made
    offered = data.draw(st.lists(st.sampled_from(classes), unique=True))
    rule = ClassRule.model_validate({"siblings": {"half": "first", "odd": "alternate"}})
    own = catalog("own", [(c, c, "") for c in classes])
    whole = decide(rule, "own", classes, world(parents, own))
    part = decide(rule, "own", offered, world(parents, own))
    assert accepted(part) == [c for c in offered if whole[c].accepted]


@given(worlds(), st.data())
def test_below_one_counts_the_synsets_above(made: tuple[Parents, list[str]], data: st.DataObject) -> None:
    parents, classes = made
    every = sorted({*parents, wnid(1)})
    roots = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    verdicts = judged({"below_one": roots}, parents, classes)
    for c, verdict in verdicts.items():
        over = above(parents, c) & set(roots)
        assert verdict.accepted == (len(over) == 1)
        if over:
            assert {via.wnid for via in verdict.via} == over


@given(worlds(), st.integers(1, 5))
def test_the_first_n_of_a_slice(made: tuple[Parents, list[str]], n: int) -> None:
    parents, classes = made
    below = [c for c in sorted(classes) if c in parents]
    found = accepted(judged({"slice": {"of": [wnid(1)], "first": n}}, parents, classes))
    assert sorted(found) == below[:n]


def test_the_toy_families() -> None:
    alternate = {"siblings": {"half": "first", "odd": "alternate"}}
    # pug and chihuahua are siblings; borzoi, tabby and cleaver are alone; cloud has no synset
    assert taken(alternate) == {"pug", "borzoi", "cleaver"}
    assert taken({"siblings": {"half": "second"}}) == {"chihuahua", "borzoi", "tabby", "cleaver"}
    assert taken({"below_one": ["n00000010", "n00000011", "n00000020"]}) == {"borzoi", "tabby"}
    assert taken({"slice": {"of": ["n00000010", "n00000020"], "first": 1}}) == {"borzoi", "tabby"}


@pytest.mark.parametrize(
    ("rule", "class_id", "says"),
    [
        (
            {"siblings": {"half": "first"}},
            "pug",
            "near: pug has position 0 (from 0) of 2 classes with the parent toy dog (n00000011), "
            "in the first half",
        ),
        (
            {"siblings": {"half": "first"}},
            "cloud",
            "not near: cloud has no synset, and the rule reads WordNet",
        ),
        (
            {"below_one": ["n00000010", "n00000011"]},
            "pug",
            "not near: pug is below several of the synsets: toy dog (n00000011) and dog (n00000010)",
        ),
        (
            {"below_one": ["n00000010", "n00000011"]},
            "borzoi",
            "near: borzoi is below dog (n00000010) and no other of the synsets",
        ),
        (
            {"below_one": ["n00000020"]},
            "pug",
            "not near: pug is not at or below cat (n00000020)",
        ),
        (
            {"slice": {"of": ["n00000010"], "first": 2}},
            "pug",
            "not near: pug has position 2 (from 0) of the 3 classes below dog (n00000010), "
            "not in the first 2",
        ),
    ],
)
def test_sentences(rule: dict[str, Any], class_id: str, says: str) -> None:
    from tests.wordnet_splits.benchmark.rules.toy import load

    here = context()
    verdicts = decide(ClassRule.model_validate(rule), "pets", [c.class_id for c in load("pets")], here)
    assert sentence(verdicts[class_id], source="pets", class_id=class_id, group="near", context=here) == says


def test_a_family_of_several_parents_is_of_just_those() -> None:
    parents = {
        wnid(n): p for n, p in ((2, [wnid(1)]), (3, [wnid(1)]), (4, [wnid(2), wnid(3)]), (5, [wnid(2)]))
    }
    verdicts = judged({"siblings": {"half": "second"}}, parents, [wnid(4), wnid(5)])
    assert Counter(len(v.via) for v in verdicts.values()) == {1: 1, 2: 1}
    assert all(v.accepted for v in verdicts.values())
