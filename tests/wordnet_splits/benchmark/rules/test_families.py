"""siblings, below_one, held_out and the first n of a slice, compared with a few lines of dicts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wordnet_splits.benchmark.rules.toy import catalog, context, taken
from wordnet_splits.benchmark.construct.classes import decide_membership
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.rules import ClassRule, Verdict, decide
from wordnet_splits.datasets.catalog import Catalog, load_catalog
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


def test_a_family_of_several_parents_is_of_just_those() -> None:
    parents = {
        wnid(n): p for n, p in ((2, [wnid(1)]), (3, [wnid(1)]), (4, [wnid(2), wnid(3)]), (5, [wnid(2)]))
    }
    verdicts = judged({"siblings": {"half": "second"}}, parents, [wnid(4), wnid(5)])
    assert Counter(len(v.via) for v in verdicts.values()) == {1: 1, 2: 1}
    assert all(v.accepted for v in verdicts.values())


def holding_out(unit: str, classes: int, **options: int) -> dict[str, Any]:
    return {"held_out": {"of": "source:own", "unit": unit, "classes": classes, **options}}


def families(parents: Parents, classes: list[str], held: set[str]) -> list[set[str]]:
    """Return, for each class held out, the smallest set of classes below a node with one that stays."""
    below = [{c for c in classes if node in above(parents, c)} for node in {*parents, *classes, "n00000001"}]
    return [min((s for s in below if c in s and s - held), key=len, default=set()) for c in sorted(held)]


@pytest.mark.parametrize("unit", ["leaves", "subtrees"])
@given(worlds(), st.integers(1, 9))
def test_every_class_held_out_has_a_relative_that_stays(
    unit: str, drawn: tuple[Parents, list[str]], most: int
) -> None:
    parents, classes = drawn
    held = set(accepted(judged(holding_out(unit, most), parents, classes)))
    assert len(held) <= most
    assert all(families(parents, classes, held))
    assert held == set(
        accepted(judged(holding_out(unit, most), parents, classes[::-1]))
    )  # whatever the order


@given(worlds(), st.integers(2, 9))
def test_subtrees_are_held_out_whole(drawn: tuple[Parents, list[str]], most: int) -> None:
    parents, classes = drawn
    verdicts = judged(holding_out("subtrees", most, largest=4), parents, classes)
    for name in accepted(verdicts):
        node = verdicts[name].via[0].wnid
        together = [c for c in classes if node in above(parents, c)]
        assert 2 <= len(together) <= 4
        assert all(verdicts[c].accepted for c in together)


def test_on_the_toy_dogs() -> None:
    # below toy_dog are pug and chihuahua, below dog also borzoi: of each family one stays
    held = taken({"held_out": {"of": "source:pets", "unit": "subtrees", "classes": 2}})
    assert held == {"pug", "chihuahua"}
    leaves = taken({"held_out": {"of": "source:pets", "unit": "leaves", "classes": 9}})
    assert len(leaves & {"pug", "chihuahua"}) == 1
    assert 0 < len(leaves) < 5


def test_the_evidence_names_the_node_and_what_stays() -> None:
    parents = {wnid(n): [wnid(parent)] for n, parent in ((2, 1), (3, 2), (4, 2), (5, 1))}
    classes = ["n00000003", "n00000004", "n00000005"]
    verdicts = judged(holding_out("subtrees", 5), parents, classes)
    assert accepted(verdicts) == ["n00000003", "n00000004"]
    assert [via.wnid for via in verdicts["n00000003"].via] == ["n00000002"]


RECIPE = """
schema = 1
name = "held"
version = 1
draw = "held"
seed = 0
transforms = { cifar100 = "none" }
[[group]]
name = "out"
role = "near"
source = "cifar100"
classes = { held_out = { of = "source:cifar100", unit = "UNIT", classes = 20, largest = 5 } }
images = { test = { from = "test", all = true } }
[[group]]
name = "in"
role = "id"
source = "cifar100"
classes = { rest = true }
images = { test = { from = "test", all = true } }
"""


@pytest.mark.parametrize("unit", ["leaves", "subtrees"])
def test_the_truth_of_a_class_held_out_is_a_node_that_is_no_class(unit: str, tmp_path: Path) -> None:
    (tmp_path / "held.toml").write_text(RECIPE.replace("UNIT", unit))
    groups = decide_membership(load_recipe(tmp_path / "held.toml"), 0, Taxonomy.embedded()).groups
    assert len(groups["in"]) == 100 - len(groups["out"])
    assert 16 <= len(groups["out"]) <= 20
    catalog = load_catalog("cifar100")
    hierarchy = pytest.importorskip("wordnet_splits.hierarchy").ClassHierarchy.of(
        [catalog[c].wnids for c in groups["in"]]
    )
    truths = [hierarchy.truth(catalog[c].wnids) for c in groups["out"]]
    assert hierarchy.root not in truths
    assert hierarchy.inner[truths].all()
