"""When two classes of one synset are one class: the same answer in leaks, audit, thresholds and robust."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wordnet_splits.recipes import HEAD, group, write_recipe
from wordnet_splits.audit.audit import audit_classes
from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.catalog import load_catalog
from wordnet_splits.making.leaks import class_leaks
from wordnet_splits.making.membership import decide_membership
from wordnet_splits.recipe import load_recipe
from wordnet_splits.robust import alternatives
from wordnet_splits.rules.keywords import are_same_class
from wordnet_splits.taxonomy import load

IMAGES = '{ test = { from = "all", all = true } }'
SOUP, QUESADILLA = "n07583197", "chicken_quesadilla"
PAIRS = {
    (("food101", "ramen"), ("food101", "pho")): False,  # both filed under soup
    (("food101", "hot_and_sour_soup"), ("food101", "ramen")): False,
    (("food101", "ramen"), ("imagenet21k", SOUP)): True,
    (("imagenet21k", SOUP), ("food101", "ramen")): True,
    (("food101", QUESADILLA), ("ninco", QUESADILLA)): True,  # both filed under quesadilla, of one name
}


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
