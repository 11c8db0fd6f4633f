"""What leaks between the sets of a benchmark: found, named by the recipe, told of the classes."""

from __future__ import annotations

import json

import pytest

from wordnet_splits.build import build
from wordnet_splits.build.leaks import class_leaks
from wordnet_splits.build.membership import decide_membership
from wordnet_splits.catalog import load_catalog
from wordnet_splits.errors import RecipeError
from wordnet_splits.recipe import load_recipe
from wordnet_splits.taxonomy import load

from ..command import Command
from ..recipes import group, write_recipe


def contradicted(source: str, domain: str, classes: list[str]) -> set[str]:
    """The classes whose synset touches one of ``domain``'s: by sets of ancestors, as a reviewer would."""
    taxonomy = load()
    others = {wnid for item in load_catalog(domain) for wnid in item.wnids}
    above_others = {up for wnid in others for up in taxonomy.ancestors(wnid)}
    parents = {parent for wnid in others for parent in taxonomy.parents(wnid)}

    def touches(wnid: str) -> bool:
        return wnid in above_others or bool(taxonomy.ancestors(wnid).keys() & (others | parents))

    return {c for c in classes if any(map(touches, load_catalog(source)[c].wnids))}


@pytest.fixture(scope="module")
def imagenet():
    return build("unknown-imagenet").manifest


@pytest.mark.parametrize(
    ("name", "domain"), [("unknown-imagenet", "imagenet1k"), ("unknown-cifar", "cifar100")]
)
def test_every_far_class_that_the_catalog_contradicts_is_a_named_leak(name, domain):
    recipe, manifest = load_recipe(name), build(name).manifest
    rows = {(r["group"], r["class_id"]): r for r in manifest.classes.to_pylist()}
    membership = decide_membership(recipe, recipe.seed, load())
    for far in recipe.groups_with_role("far"):
        bad = contradicted(far.source, domain, membership.groups[far.name])
        told = {c for (g, c), row in rows.items() if g == far.name and "known leak: it" in row["evidence"]}
        assert bad <= told
    assert all(leak.reason for leak in manifest.data.leaks if leak.severity != "recorded")


def test_the_eleven_synsets_that_are_both_far_and_excluded_are_named(imagenet):
    rows = imagenet.classes.to_pylist()
    far = {w: r for r in rows if r["role"] == "far" for w in r["wnids"]}
    excluded = {w for r in rows if r["role"] == "excluded" for w in r["wnids"]}
    both = far.keys() & excluded
    assert len(both) == 11
    assert all("known leak: it has the synset of" in far[w]["evidence"] for w in both)


@pytest.mark.parametrize(
    ("class_id", "clause"),
    [
        ("001.ak47", "it has the synset of the near class assault rifle (ak47 is no noun"),
        ("ramen", "it lies above the near class consomme"),
        ("croque_madame", "it lies above the near class hotdog and the excluded class cheeseburger"),
        ("poutine", "it lies below a parent of the ID class mashed potato"),
        ("jacuzzi/indoor", "it lies below the ID class bathtub"),
        ("bedchamber", "it has the synset of the excluded class bedroom"),
    ],
)
def test_the_evidence_names_the_leak_and_its_reason(imagenet, class_id, clause):
    (row,) = [r for r in imagenet.classes.to_pylist() if r["class_id"] == class_id]
    assert f"; known leak: {clause}" in row["evidence"]


@pytest.mark.parametrize(
    ("name", "domain"), [("unknown-imagenet-clean", "imagenet1k"), ("unknown-cifar-clean", "cifar100")]
)
def test_the_clean_variants_hold_no_class_that_leaks(name, domain):
    recipe = load_recipe(name)
    manifest = build(recipe).manifest
    rows = manifest.classes.to_pylist()
    for far in recipe.groups_with_role("far"):
        classes = [r["class_id"] for r in rows if r["group"] == far.name]
        assert contradicted(far.source, domain, classes) == set()
    between = [x for x in manifest.data.leaks if not x.b.startswith("source:") and x.a != x.b]
    assert [x for x in between if {"id", "near", "external"} & roles(recipe, x)] == []


def roles(recipe, leak):
    return {g.role for g in recipe.group if f"group:{g.name}" in (leak.a, leak.b)}


def test_clean_cifar_drops_near_classes_above_an_id_class_but_no_outlier_on_their_account():
    rows = build("unknown-cifar-clean").manifest.classes.to_pylist()
    at = {(r["source"], r["class_id"]): r for r in rows}
    assert at["cifar100", "aquarium_fish"]["role"] == at["cifar100", "castle"]["role"] == "excluded"
    assert at["imagenet1k", "n01443537"]["group"] == "tin158"  # the goldfish leaked into aquarium_fish only


def test_kims_far_rule_drops_bridge_where_the_recipe_does_not_name_it(tmp_path):
    rule = '{ not = { keyword_overlap = { with = "source:cifar100", nodes = "subtree", match = "lemma" } } }'
    images = '{ test = { from = "test", all = true } }'
    path = write_recipe(
        tmp_path,
        group("known", "id", "cifar100", '{ listed = ["apple"] }', images),
        group("scenes", "far", "lsun", rule, '{ test = { from = "train", per_class = 4 } }'),
    )
    rows = {r["class_id"]: r for r in build(path).manifest.classes.to_pylist() if r["source"] == "lsun"}
    assert [c for c, r in rows.items() if r["role"] == "excluded"] == ["bridge"]
    shipped = build("unknown-cifar").manifest.classes.to_pylist()
    (bridge,) = [r for r in shipped if (r["group"], r["class_id"]) == ("lsun", "bridge")]
    assert bridge["evidence"].startswith("lsun: bridge is named in the rule;")
    assert "; known leak: it has the synset of the near class bridge" in bridge["evidence"]


def test_a_known_leak_between_a_group_and_a_source_counts_all_its_groups(tmp_path):
    recipe = load_recipe("unknown-imagenet")
    (entry,) = [k for k in recipe.known_leak if (k.kind, k.a) == ("sibling", "group:food")]
    found = class_leaks(decide_membership(recipe, recipe.seed, load()), load())
    siblings = [k for k in found if k.kind == "sibling" and "food" in (k.a, k.b)]
    assert {k.a if k.b == "food" else k.b for k in siblings} == {
        "imagenet-200",
        "near-200",
        "source:imagenet1k",
    }
    assert sum(len(k.pairs) for k in siblings) == entry.count
    less = entry.model_copy(update={"count": entry.count - 1})
    others = [k for k in recipe.known_leak if k is not entry]
    with pytest.raises(RecipeError, match=r"15 sibling leaks between group:food and source:imagenet1k"):
        build(recipe.model_copy(update={"known_leak": (*others, less)}))


def test_a_variant_that_drops_leaks_may_keep_known_leaks_that_match_nothing(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "unknown-cifar"\nname = "mine"\ndrop_leaks = true\n', encoding="utf-8")
    left = {(k.kind, k.a, k.b) for k in build(path).manifest.data.leaks if k.a != k.b}
    assert ("class", "group:cifar-60", "group:lsun") in left  # between two OOD sets, so it stays
    assert {kind for kind, *_ in left - {("class", "group:cifar-60", "group:lsun")}} == {"sibling"}


def test_a_resample_that_makes_a_leak_says_so(tmp_path, capsys, monkeypatch):
    command = Command(capsys, monkeypatch, tmp_path)
    done = command("build", "unknown-cifar", "--seed", "2", "--out", str(tmp_path))
    assert "unknown-cifar@seed=2: class leak between cifar-40 and lsun: bridge" in done.err
    recorded = json.loads((tmp_path / "unknown-cifar@seed=2" / "manifest.json").read_text())["leaks"]
    assert [k["kind"] for k in recorded if k["severity"] == "unnamed"] == ["class"]
    quiet = command("build", "unknown-cifar", "--out", str(tmp_path))
    assert "leak between" not in quiet.err
