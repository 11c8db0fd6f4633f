"""Relations of classes: the same answer in audit, thresholds, leaks, robust and the rule of a new recipe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.wordnet_splits.recipes import HEAD, group, write_recipe
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.audit.report import LEAKS
from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.authoring.drafting import DraftGroup, draft_recipe
from wordnet_splits.benchmark.construct.classes import class_leaks, decide_membership
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.rules import ClassRule, Context, decide
from wordnet_splits.benchmark.rules.relations import KnownClasses, are_same_class
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.studies import alternatives
from wordnet_splits.wordnet.taxonomy import load

IMAGES = '{ test = { from = "all", all = true } }'
SOUP, QUESADILLA = "n07583197", "chicken_quesadilla"
PAIRS = {
    (("food101", "ramen"), ("food101", "pho")): False,  # both filed under soup
    (("food101", "hot_and_sour_soup"), ("food101", "ramen")): False,
    (("food101", "ramen"), ("imagenet21k", SOUP)): True,
    (("imagenet21k", SOUP), ("food101", "ramen")): True,
    (("food101", QUESADILLA), ("ninco", QUESADILLA)): True,  # both filed under quesadilla, of one name
}
CHAIR, BARBER_CHAIR, SEAT = "n03001627", "n02791124", "n04161981"
MAPPED = {
    "chair": (CHAIR, "exact"),
    "barber chair": (BARBER_CHAIR, "exact"),
    "seat": (SEAT, "hand"),
    "office chair": (CHAIR, "head"),
    "camp chair": (CHAIR, "wider"),
}
RELATIONS = {
    ("chair", "barber chair"): "above",
    ("barber chair", "chair"): "below",
    ("seat", "barber chair"): "above",
    ("office chair", "barber chair"): None,
    ("barber chair", "office chair"): None,
    ("office chair", "seat"): "below",
    ("seat", "office chair"): "above",
    ("office chair", "chair"): "equal",
    ("chair", "office chair"): "equal",
    ("office chair", "camp chair"): None,
    ("camp chair", "camp chair"): "equal",
}
"""(class, known class) -> relation."""
MAPPED_SOURCES = [name for name in catalog_names() if any(item.wnids for item in load_catalog(name))]
WIDER = "food101"
"""A source of which nearly half the classes are filed under a wider synset."""


@pytest.mark.parametrize(("listed", "known"), RELATIONS)
def test_a_head_noun_or_a_wider_synset_is_not_what_a_class_is(listed: str, known: str) -> None:
    items = {
        name: replace(
            load_catalog("food101")["ramen"], class_id=name, name=name, wnids=(wnid,), mapped=mapped
        )
        for name, (wnid, mapped) in MAPPED.items()
    }
    expected = RELATIONS[listed, known]
    kin = KnownClasses({known: items[known]}, load()).kin(items[listed])
    assert [k.relation for k in kin] == [expected] * (expected is not None)

    rows = {"a": (items[listed],), "b": (items[known],)}
    catalogs = {name: replace(load_catalog("food101"), source=name, classes=rows[name]) for name in rows}
    context = Context(load(), catalog=catalogs.__getitem__, groups={"known": [("b", known)]})
    for relation, takes in (("kin", expected is not None), ("ancestry", True)):
        rule = ClassRule.model_validate({"overlaps": "group:known", "relation": relation})
        assert decide(rule, "a", [listed], context)[listed].accepted is takes, relation


def test_the_closest_of_several_relations_is_that_of_thresholds_audit_and_evidence() -> None:
    known = [BARBER_CHAIR, "n03405725"]  # one edge below chair; furniture, two above
    assert [row["relation"] for row in thresholds([CHAIR], known).rows()] == ["above"]
    assert [item.relation for item in audit_classes([CHAIR], known).classes] == ["above"]
    context = Context(load(), groups={"known": [("imagenet21k", wnid) for wnid in known]})
    for relation, first in (("kin", "descendant"), ("ancestry", "ancestor")):
        rule = ClassRule.model_validate({"overlaps": "group:known", "relation": relation})
        assert decide(rule, "imagenet21k", [CHAIR], context)[CHAIR].via[0].relation == first


@pytest.mark.parametrize(("known", "listed"), PAIRS)
def test_two_classes_filed_under_one_wider_synset_are_equal_only_by_name(
    tmp_path: Path, known: tuple[str, str], listed: tuple[str, str]
) -> None:
    expected = PAIRS[known, listed]
    a, b = (load_catalog(source)[class_id] for source, class_id in (known, listed))
    assert set(a.wnids) & set(b.wnids)
    assert are_same_class(a, b) is are_same_class(b, a) is expected

    groups = [
        group(name, role, item.source, f'{{ listed = ["{item.class_id}"] }}', IMAGES)
        for name, role, item in (("known", "id", a), ("unknown", "far", b))
    ]
    recipe = load_recipe(write_recipe(tmp_path, *groups, head=f"{HEAD}drop_leaks = true\n"))
    leaks = class_leaks(decide_membership(recipe, recipe.seed, load()), load())
    assert expected == any(
        leak.kind == "class" and {leak.a, leak.b} == {"known", "unknown"} for leak in leaks
    )
    decided = alternatives.decide_in(recipe, alternatives.original(recipe, load()), load())
    assert decided.dropped == ({listed} if expected else set())


@pytest.mark.parametrize(("listed", "known"), [("places365", "sun397"), ("sun397", "places365")])
def test_audit_and_thresholds_ask_the_same_of_whole_sources(listed: str, known: str) -> None:
    equal = {
        item.class_id
        for item in load_catalog(listed)
        if any(set(item.wnids) & set(k.wnids) and are_same_class(item, k) for k in load_catalog(known))
    }
    audited = audit_classes(listed, known)
    assert {one.id for one in audited.classes if one.relation == "equal"} == equal
    by_threshold = thresholds(listed, known)
    assert audited.counts["equal"] == by_threshold.equal == len(equal)
    kin = {one.id for one in audited.classes if one.relation in ("below", "above")}
    assert {row["class_id"] for row in by_threshold.rows() if row["relation"]} == kin
    sharing = {
        item.class_id
        for item in load_catalog(listed)
        if any(set(item.wnids) & set(k.wnids) for k in load_catalog(known))
    }
    assert sharing - equal  # else nothing is tried


def test_soups_filed_under_soup_are_no_ramen() -> None:
    soups = ["pho", "hot_and_sour_soup"]
    assert [one.relation for one in audit_classes(soups, ["ramen"], of="food101").classes] == [None, None]
    found = thresholds(soups, ["ramen"], of="food101")
    assert (found.equal, [row["relation"] for row in found.rows()]) == (0, [None, None])


@pytest.mark.sampled("fuzz", one_in=6)
@pytest.mark.parametrize(
    ("known", "listed"),
    [(WIDER, name) for name in MAPPED_SOURCES] + [(name, WIDER) for name in MAPPED_SOURCES if name != WIDER],
)
def test_thresholds_audit_leaks_and_the_build_of_a_new_recipe_agree(
    tmp_path: Path, known: str, listed: str
) -> None:
    ids = [item.class_id for item in load_catalog(known) if item.wnids][::2]
    found = thresholds(listed, ids, of=known)
    bound = found.balanced.threshold if found.balanced else 0.5
    announced = found.at(bound)
    relations = {row["class_id"]: row["relation"] for row in found.rows()}
    for item in audit_classes(listed, ids, of=known).classes:
        of_audit = item.relation if item.relation in LEAKS else None
        assert of_audit == relations.get(item.id, "equal"), item.id

    sides = {
        side: [DraftGroup(listed, bound=("mean", bound))] * bool(announced[side]) for side in ("near", "far")
    }
    text = draft_recipe("mine", DraftGroup(known, tuple(ids)), **sides)
    everything = group("all", "far", listed, f'{{ listed = "source:{listed}" }}', more="reuse = true")
    path = tmp_path / "mine.toml"
    path.write_text(f"{text}\n{everything}", encoding="utf-8")
    recipe = load_recipe(path)
    membership = decide_membership(recipe, recipe.seed, load())
    built = {g.role: membership.groups[g.name] for g in recipe.group if g.name not in ("known", "all")}
    assert built == {side: announced[side] for side in sides if announced[side]}

    pairs = {
        (leak.kind, leak.b): {class_id for _, class_id in leak.pairs}
        for leak in class_leaks(membership, load())
        if leak.a == "known" and leak.kind in ("class", "ancestry")
    }
    equal = {item.class_id for item in load_catalog(listed)} - relations.keys()
    related = {class_id for class_id, relation in relations.items() if relation}
    assert pairs.keys() <= {("class", "all"), ("ancestry", "all")}
    assert pairs.get(("class", "all"), set()) == equal
    assert pairs.get(("ancestry", "all"), set()) - equal == related
