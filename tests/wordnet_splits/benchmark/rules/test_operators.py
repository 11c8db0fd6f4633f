from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.raising import mentions
from tests.wordnet_splits.benchmark.rules.toy import PETS, THING, catalog, context, judge, load, taken
from wordnet_splits.base.errors import SplitsError, TaxonomyError, UnknownNameError
from wordnet_splits.benchmark.rules import ClassRule, Context, Via, decide, registry
from wordnet_splits.benchmark.rules.engine import COMBINATIONS
from wordnet_splits.benchmark.rules.syntax import FIELDS
from wordnet_splits.datasets.catalog import Catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy

DOGS = {"pug", "chihuahua", "borzoi"}
GROUP = {"groups": {"id": [("pets", "pug"), ("pets", "cleaver")]}}


def via(rule: dict[str, Any], class_id: str, source: str = "pets", **known: Any) -> tuple[Via, ...]:
    return judge(rule, source, **known)[class_id].via


def test_listed_takes_the_classes_an_operand_names() -> None:
    assert taken({"listed": ["pug", "cloud"]}) == {"pug", "cloud"}
    assert taken({"listed": "source:pets"}) == set(PETS)
    assert taken({"listed": "list:toys"}) == {"pug", "tabby"}
    assert taken({"listed": "group:id"}, **GROUP) == {"pug", "cleaver"}
    assert via({"listed": "list:toys"}, "tabby") == (Via("list", None, "pets", "tabby"),)


def test_listed_compares_class_ids_across_sources() -> None:
    assert taken({"listed": "source:pets"}, "words") == {"pug", "cloud"}
    assert taken({"listed": "source:words"}) == {"pug", "cloud"}


def test_subtree_is_at_or_below() -> None:
    assert taken({"subtree": ["n00000010"]}) == DOGS
    assert taken({"subtree": ["n00000102", "n00000020"]}) == {"chihuahua", "tabby"}
    assert via({"subtree": ["n00000010"]}, "pug") == (
        Via("ancestor", "n00000010", "wordnet", "n00000010", 2.0),
    )
    assert via({"subtree": ["n00000101"]}, "pug") == (Via("equal", "n00000101", "wordnet", "n00000101", 0.0),)


def test_subtree_names_every_root_the_nearest_first_whatever_their_order() -> None:
    for roots in (["n00000001", "n00000010", "n00000011"], ["n00000011", "n00000001", "n00000010"]):
        assert via({"subtree": roots}, "pug") == tuple(
            Via("ancestor", wnid, "wordnet", wnid, edges)
            for wnid, edges in (("n00000011", 1.0), ("n00000010", 2.0), ("n00000001", 4.0))
        )


@pytest.mark.parametrize(
    "rule",
    [{"subtree": ["n00000020", "n00000030"]}, {"slice": {"of": ["n00000020", "n00000030"], "half": "first"}}],
)
def test_synsets_that_are_nothing_to_a_class_are_in_via_with_their_distance(rule: dict[str, Any]) -> None:
    # pug, toy dog, dog, animal, cat; one more to thing, tool and knife, with cat's one less
    assert via(rule, "pug") == (
        Via("unrelated", "n00000020", "wordnet", "n00000020", 4.0),
        Via("unrelated", "n00000030", "wordnet", "n00000030", 6.0),
    )


def test_subtree_of_classes_names_the_class() -> None:
    assert taken({"subtree": "source:drawer"}) == {"cleaver"}
    assert via({"subtree": "source:drawer"}, "cleaver") == (
        Via("ancestor", "n00000030", "drawer", "knife", 1.0),
    )
    assert taken({"subtree": ["knife"]}, "drawer") == {"knife"}


def test_shares_parent_with_another_class() -> None:
    assert taken({"shares_parent_with": ["pug"]}) == {"chihuahua"}  # pug shares its parent only with itself
    assert taken({"shares_parent_with": ["pug", "chihuahua"]}) == {"pug", "chihuahua"}
    assert via({"shares_parent_with": ["pug"]}, "chihuahua") == (
        Via("sibling", "n00000011", "pets", "pug", 1.0),
    )


def test_below_parent_of_reaches_nephews_and_the_parent_itself() -> None:
    assert taken({"below_parent_of": "source:drawer"}) == {"cleaver"}
    assert taken({"below_parent_of": "source:drawer"}, "drawer") == {"knife", "ladle"}
    assert taken({"below_parent_of": ["n00000011"]}) == DOGS
    assert via({"below_parent_of": ["n00000011"]}, "borzoi")[0].relation == "ancestor"
    assert via({"below_parent_of": ["n00000101"]}, "chihuahua") == (
        Via("sibling", "n00000011", "wordnet", "n00000101", 1.0),
    )
    assert via({"below_parent_of": ["pug"]}, "chihuahua") == (
        Via("sibling", "n00000011", "pets", "pug", 1.0),
    )
    assert via({"below_parent_of": "group:id"}, "knife", "drawer", **GROUP) == (
        Via("equal", "n00000030", "pets", "cleaver", 0.0),
    )


@pytest.mark.parametrize("relation", ["equal", "self-or-below", "self-or-above", "ancestry", "kin"])
def test_overlaps_with_itself_whatever_the_relation(relation: str) -> None:
    assert taken({"overlaps": ["n00000105"], "relation": relation}) == {"cleaver"}
    assert taken({"overlaps": ["n00000030"], "relation": relation}, "drawer") == {"knife"}


def test_overlaps_looks_up_or_down_as_told() -> None:
    assert taken({"overlaps": "source:drawer", "relation": "equal"}) == set()
    assert taken({"overlaps": "source:drawer"}) == {"cleaver"}
    assert taken({"overlaps": "source:pets"}, "drawer") == set()
    assert taken({"overlaps": "source:pets", "relation": "self-or-above"}, "drawer") == {"knife"}
    assert taken({"overlaps": "source:pets", "relation": "ancestry"}, "drawer") == {"knife"}
    assert via({"overlaps": "source:pets", "relation": "ancestry"}, "knife", "drawer") == (
        Via("descendant", "n00000105", "pets", "cleaver", 1.0),
    )


def test_overlaps_in_any_sense_takes_every_synset_of_the_name() -> None:
    # by its catalog tabby is the cat; by name it is the house-dog tool too
    named = {"overlaps": ["tabby"], "senses": "any", "relation": "self-or-above"}
    assert taken(named) == {"tabby"}
    tool = {"overlaps": "source:pets", "senses": "any", "relation": "equal"}
    housed = catalog_of_tool()
    assert taken(tool, "tools", ["tool"], catalog=housed) == {"tool"}
    assert taken({**tool, "senses": "catalog"}, "tools", ["tool"], catalog=housed) == set()


def catalog_of_tool() -> Callable[[str], Catalog]:
    tools = catalog("tools", [("tool", "n00000032", "")])
    return lambda source: tools if source == "tools" else load(source)


def test_a_name_without_senses_overlaps_nothing() -> None:
    assert taken({"overlaps": ["cloud"], "senses": "any"}) == set()


def test_slices_count_the_whole_sorted_catalog_strictly_below() -> None:
    # below animal, sorted: borzoi 0, chihuahua 1, pug 2, tabby 3
    assert taken({"slice": {"of": ["n00000002"], "half": "first"}}) == {"borzoi", "chihuahua"}
    assert taken({"slice": {"of": ["n00000002"], "half": "second"}}) == {"pug", "tabby"}
    assert taken({"slice": {"of": ["n00000002"], "every": 3, "at": [0, 2]}}) == {"borzoi", "pug", "tabby"}
    assert taken({"slice": {"of": ["n00000002"], "every": 3, "at": [1]}}, offered=["pug", "chihuahua"]) == {
        "chihuahua"
    }
    assert taken({"slice": {"of": ["n00000101"], "every": 1, "at": [0]}}) == set()  # strictly below
    assert via({"slice": {"of": ["n00000002"], "half": "second"}}, "tabby") == (
        Via("ancestor", "n00000002", "wordnet", "n00000002", 3.0),
    )


def test_the_first_half_of_an_odd_number_is_the_smaller() -> None:
    assert taken({"slice": {"of": ["n00000010"], "half": "first"}}) == {"borzoi"}
    assert taken({"slice": {"of": ["n00000010"], "half": "second"}}) == {"chihuahua", "pug"}


def test_each_root_is_sliced_apart() -> None:
    roots = ["n00000010", "n00000020", "n00000003"]
    assert taken({"slice": {"of": roots, "every": 3, "at": [0]}}) == {"borzoi", "tabby", "cleaver"}


@pytest.mark.parametrize(
    ("relation", "name", "hit"),
    [
        ("equal", "pug", ("n00000101", "n00000101")),
        ("descendant", "animal", ("n00000002", "n00000101")),
        ("sibling", "Chihuahua", ("n00000102", "n00000011")),
    ],
)
def test_a_keyword_overlaps_by_each_relation(relation: str, name: str, hit: tuple[str, str]) -> None:
    reached, wnid = hit
    assert _keyword_via(name, ["pug"]) == (
        Via("keyword", reached, "pets", "pug"),
        Via(relation, wnid, "pets", "pug", {"equal": 0.0, "descendant": 3.0, "sibling": 1.0}[relation]),
    )


def test_a_keyword_overlaps_below_a_class() -> None:
    assert _keyword_via("pug", ["n00000011"])[1] == Via("ancestor", "n00000011", "wordnet", "n00000011", 1.0)
    assert _keyword_via("spoon", ["pug"]) == ()


def _keyword_via(name: str, with_: list[str], **settings: str) -> tuple[Via, ...]:
    classes = [(c.class_id, " ".join(c.wnids), "") for c in load("pets") if c.class_id != name]
    world = catalog("pets", [(name, "n00000101" if name == "pug" else THING, ""), *classes])
    rule = {"keyword_overlap": {"with": with_, **settings}}
    return judge(rule, "pets", [name], catalog=lambda source: world)[name].via


def test_keyword_switches_change_what_is_reached() -> None:
    overlap: dict[str, Any] = {"with": "source:pets"}

    def kept(**settings: str) -> set[str]:
        return taken({"keyword_overlap": overlap | settings}, "words")

    reached = {"pug", "toys", "chihuahuas/indoor", "knife"}
    assert kept() == reached
    assert kept(match="lemma") == reached - {"toys"}  # toy is only part of toy dog
    assert kept(qualifiers="keep") == reached | {"cloud/pug"}
    # the toy classes span all of the world but spoon and house dog: the whole catalog stays reached
    assert kept(nodes="subtree") == reached


def test_the_subtree_is_the_classes_and_what_lies_above() -> None:
    # below toy dog and beside it there are synsets that only "all" reaches
    assert _keyword_via("pug", ["n00000011"], nodes="all") != ()
    assert _keyword_via("pug", ["n00000011"], nodes="subtree") == ()
    assert _keyword_via("wolfhound", ["n00000011"], nodes="all")[1].relation == "sibling"
    assert _keyword_via("wolfhound", ["n00000011"], nodes="subtree") == ()
    assert _keyword_via("dog", ["n00000011"], nodes="subtree") != ()


def test_similarity_above_and_below_part_the_classes_that_have_synsets() -> None:
    for bound in (0.2, 0.25, 0.3, 1 / 3, 0.5, 1.0):
        above = taken({"similarity": {"to": "source:drawer", "measure": "path", "above": bound}})
        below = taken({"similarity": {"to": "source:drawer", "measure": "path", "below": bound}})
        assert above | below == set(PETS) - {"cloud"}
        assert not above & below


def test_similarity_is_to_the_nearest_other_class() -> None:
    rule = {"similarity": {"to": "source:pets", "measure": "path", "above": 1 / 3}}
    assert taken(rule) == {"pug", "chihuahua"}  # each to the other over their parent: 1 / (2 + 1)
    assert via(rule, "pug") == (Via("threshold", "n00000102", "pets", "chihuahua", 1 / 3),)
    assert via(rule, "cloud") == ()


def test_distance_is_similar_when_it_is_small() -> None:
    rule = {"similarity": {"to": ["pug"], "measure": "distance", "below": 3}}
    assert taken(rule) == {"chihuahua"}
    assert via(rule, "borzoi") == (Via("threshold", "n00000101", "pets", "pug", 4.0),)


def test_rest_takes_all_that_is_offered() -> None:
    assert taken({"rest": True}, offered=["tabby", "cloud"]) == {"tabby", "cloud"}


def test_the_hierarchy_of_a_recipe_counts_for_parent_rules_only() -> None:
    two_parents = {
        "n00000002": ["n00000001"],
        "n00000003": ["n00000001"],
        "n00000101": ["n00000002", "n00000003"],
    }
    world = context(taxonomy=Taxonomy.from_edges(two_parents))
    world.catalog = lambda source: catalog(source, [("pug", "n00000101", "")])
    world.__dict__["graph"] = world.taxonomy.tree({"n00000101": "n00000003"})  # a toy has no recorded choices

    def accepted(rule: dict[str, Any]) -> bool:
        return decide(ClassRule.model_validate(rule), "pets", ["pug"], world)["pug"].accepted

    assert accepted({"subtree": ["n00000003"]})
    assert not accepted({"subtree": ["n00000002"]})
    assert accepted({"slice": {"of": ["n00000003"], "every": 1, "at": [0]}})
    assert not accepted({"slice": {"of": ["n00000002"], "every": 1, "at": [0]}})
    assert accepted({"overlaps": ["n00000002"]})


def test_the_imagenet_tree_is_the_shipped_one() -> None:
    dog, domestic_animal, canine = "n02084071", "n01317541", "n02083346"
    world = Context(Taxonomy.embedded(), hierarchy="imagenet-tree")
    assert world.graph.parents(dog) == (domestic_animal,)
    assert set(Context(Taxonomy.embedded()).graph.parents(dog)) == {domestic_animal, canine}


@pytest.mark.parametrize(
    ("rule", "error", "says"),
    [
        ({"listed": "group:idd"}, UnknownNameError, ("idd", "id")),
        ({"listed": "source:pet"}, UnknownNameError, ("pet", "pets")),
        ({"listed": "list:toy"}, UnknownNameError, ("toy", "toys")),
        ({"listed": ["pig"]}, UnknownNameError, ("pig", "pug")),
        ({"subtree": ["n99999999"]}, TaxonomyError, "n99999999"),
        (
            {"slice": {"of": ["n99999999"], "half": "first"}},
            TaxonomyError,
            "n99999999",
        ),
    ],
)
def test_an_operand_that_does_not_exist_is_named(
    rule: dict[str, Any], error: type[SplitsError], says: object
) -> None:
    with pytest.raises(error) as caught:
        judge(rule, **GROUP)
    assert mentions(str(caught.value), says)


def test_every_operator_of_the_syntax_has_a_meaning() -> None:
    assert set(registry.OPERATORS) | set(COMBINATIONS) == set(FIELDS)
