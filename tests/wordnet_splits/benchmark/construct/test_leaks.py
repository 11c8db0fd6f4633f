"""What leaks between the sets of a benchmark: found, named by the recipe, told of the classes."""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.construct import leak_kinds as leaks
from wordnet_splits.benchmark.construct.classes import class_leaks, decide_membership
from wordnet_splits.benchmark.construct.leak_kinds import _unnamed_error
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.manifest.tables import image_table
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import load

from ... import own_pictures as own
from ...command import Command
from ...recipes import HEAD, group, write_recipe


@cache
def frozen_rules(name: str) -> Manifest:
    """Build a shipped recipe once for all tests."""
    return build_benchmark(name).manifest


@cache
def near_of(domain: str) -> tuple[set[str], set[str]]:
    """Return the synsets above those of a source's classes, and these synsets with their parents."""
    taxonomy = load()
    others = {wnid for item in load_catalog(domain) for wnid in item.wnids}
    above = {up for wnid in others for up in taxonomy.ancestors(wnid)}
    return above, others | {parent for wnid in others for parent in taxonomy.parents(wnid)}


def contradicted(source: str, domain: str, classes: list[str]) -> set[str]:
    """The classes whose synset touches one of ``domain``'s: by sets of ancestors, as a reviewer would."""
    taxonomy = load()
    above_others, others_and_parents = near_of(domain)

    def touches(wnid: str) -> bool:
        return wnid in above_others or bool(taxonomy.ancestors(wnid).keys() & others_and_parents)

    return {c for c in classes if any(map(touches, load_catalog(source)[c].wnids))}


@pytest.fixture(scope="module")
def imagenet():
    return frozen_rules("unknown-imagenet")


@pytest.mark.parametrize(
    ("name", "domain"), [("unknown-imagenet", "imagenet1k"), ("unknown-cifar", "cifar100")]
)
def test_every_far_class_that_the_catalog_contradicts_is_a_named_leak(name, domain):
    recipe, manifest = load_recipe(name), frozen_rules(name)
    rows = {(r["group"], r["class_id"]): r for r in manifest.classes.to_pylist()}
    membership = decide_membership(recipe, recipe.seed, load())
    for far in recipe.groups_with_role("far"):
        bad = contradicted(far.source, domain, membership.groups[far.name])
        told = {c for (g, c), row in rows.items() if g == far.name and "known leak: " in row["evidence"]}
        assert bad <= told
    assert all(leak.reason for leak in manifest.data.leaks if leak.severity != "recorded")


def test_the_synsets_that_are_both_far_and_excluded_are_named_but_for_classes_filed_under_them(imagenet):
    far, excluded = (
        [
            (load_catalog(row["source"])[row["class_id"]], row["evidence"])
            for row in imagenet.classes.to_pylist()
            if row["role"] == role
        ]
        for role in ("far", "excluded")
    )
    leaks: dict[str, bool] = {}
    for item, evidence in far:
        for other, _ in excluded:
            for wnid in set(item.wnids) & set(other.wnids):
                leaks[wnid] = {item.mapped, other.mapped} != {"wider"}
                assert leaks[wnid] == ("known leak: same synset as" in evidence)
    assert len(leaks) == 11
    assert {load().name(wnid) for wnid, named in leaks.items() if not named} == {
        "soup.n.01",
        "sandwich.n.01",
        "fritter.n.01",
    }


@pytest.mark.parametrize(
    ("class_id", "clause"),
    [
        ("001.ak47", "same synset as the near class assault rifle (ak47 is no noun"),
        ("ramen", "below a parent of the ID class meat loaf and the near class consomme"),
        ("croque_madame", "below a parent of the ID class meat loaf and the near class hotdog"),
        ("poutine", "below a parent of the ID class mashed potato"),
        ("jacuzzi/indoor", "below the ID class bathtub"),
        ("bedchamber", "same synset as the excluded class bedroom"),
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
    manifest = frozen_rules(name)
    rows = manifest.classes.to_pylist()
    for far in recipe.groups_with_role("far"):
        classes = [r["class_id"] for r in rows if r["group"] == far.name]
        assert contradicted(far.source, domain, classes) == set()
    between = [x for x in manifest.data.leaks if not x.b.startswith("source:") and x.a != x.b]
    assert [x for x in between if {"id", "near", "external"} & roles(recipe, x)] == []


def roles(recipe, leak):
    return {g.role for g in recipe.group if f"group:{g.name}" in (leak.a, leak.b)}


def test_clean_cifar_drops_near_classes_above_an_id_class_but_no_outlier_on_their_account():
    rows = frozen_rules("unknown-cifar-clean").classes.to_pylist()
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
    rows = {
        r["class_id"]: r for r in build_benchmark(path).manifest.classes.to_pylist() if r["source"] == "lsun"
    }
    assert [c for c, r in rows.items() if r["role"] == "excluded"] == ["bridge"]
    shipped = frozen_rules("unknown-cifar").classes.to_pylist()
    (bridge,) = [r for r in shipped if (r["group"], r["class_id"]) == ("lsun", "bridge")]
    assert "; lsun: bridge is named in the rule;" in bridge["evidence"]
    assert "; known leak: same synset as the near class bridge" in bridge["evidence"]


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
    with raises(RecipeError, where="unknown-imagenet", naming=("18", "sibling", "food")):
        build_benchmark(recipe.model_copy(update={"known_leak": (*others, less)}))


EVERY_IMAGE = '{ test = { from = "all", all = true } }'
CLEAN_200 = "openood-imagenet200-clean"
KILLER_WHALE, DOLPHIN, CONSOMME = "n02071294", "n02068974", "n07584110"


@pytest.mark.parametrize(
    ("known", "unknown", "leaks"),
    [
        (("imagenet1k", KILLER_WHALE), ("ninco", "pseudorca_crassidens"), ["sibling"]),  # under dolphin
        (("ninco", "pseudorca_crassidens"), ("imagenet1k", KILLER_WHALE), ["sibling"]),
        (("imagenet1k", KILLER_WHALE), ("imagenet21k", DOLPHIN), ["ancestry"]),
        (("imagenet21k", DOLPHIN), ("imagenet1k", KILLER_WHALE), ["ancestry"]),
        (("imagenet21k", DOLPHIN), ("ninco", "pseudorca_crassidens"), ["class"]),  # of one synset
        (("imagenet1k", CONSOMME), ("food101", "pho"), ["sibling"]),  # filed under soup, the parent
        (("imagenet1k", CONSOMME), ("imagenet21k", "n07583197"), ["ancestry"]),  # soup itself
    ],
)
def test_nothing_lies_below_a_class_that_is_mapped_to_something_wider(tmp_path, known, unknown, leaks):
    path = write_recipe(
        tmp_path,
        group("known", "id", known[0], f'{{ listed = ["{known[1]}"] }}', EVERY_IMAGE),
        group("unknown", "far", unknown[0], f'{{ listed = ["{unknown[1]}"] }}', EVERY_IMAGE),
    )
    recipe = load_recipe(path)
    found = class_leaks(decide_membership(recipe, recipe.seed, load()), load())
    assert [k.kind for k in found if {k.a, k.b} == {"known", "unknown"}] == leaks


def test_clean_variants_keep_what_a_wider_synset_alone_lies_above():
    rows = {(r["source"], r["class_id"]): r["role"] for r in frozen_rules(CLEAN_200).classes.to_pylist()}
    assert rows["ninco", "pseudorca_crassidens"] == rows["ninco", "triturus_marmoratus"] == "near"
    assert (
        rows["imagenet1k", "n11939491"] == "external"
    )  # daisy, below flower, of which one toadflax is a kind
    assert (load_recipe(CLEAN_200).version, load_recipe("openood-imagenet200").version) == (2, 1)


def test_a_variant_that_drops_leaks_may_keep_known_leaks_that_match_nothing(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "unknown-cifar"\nname = "mine"\ndrop_leaks = true\n', encoding="utf-8")
    left = {(k.kind, k.a, k.b) for k in build_benchmark(path).manifest.data.leaks if k.a != k.b}
    assert ("class", "group:cifar-60", "group:lsun") in left  # between two OOD sets, so it stays
    assert {kind for kind, *_ in left - {("class", "group:cifar-60", "group:lsun")}} == {"sibling"}


def test_a_resample_that_makes_a_leak_says_so(tmp_path, capsys, monkeypatch):
    command = Command(capsys, monkeypatch, tmp_path)
    done = command("build", "unknown-cifar", "--seed", "2", "--out", str(tmp_path))
    assert "unknown-cifar@seed=2: class leak between cifar-40 and lsun: bridge" in done.err
    recorded = json.loads((tmp_path / "unknown-cifar@seed=2" / "manifest.json").read_text())["leaks"]
    assert [k["kind"] for k in recorded if k["severity"] == "unnamed"] == ["class"]
    assert all(k.severity != "unnamed" for k in frozen_rules("unknown-cifar").data.leaks)


HALVES = '{ train = { from = "train", all = true }, test = { from = "test", all = true } }'
"""Of a dataset of pictures named ``mypics``, whose near classes are tested only."""


@pytest.fixture
def pics(tmp_path, monkeypatch, own_datasets_forgotten):
    """Three classes, of which every picture is another: ``copy`` makes one that of another place."""
    monkeypatch.chdir(tmp_path)
    classes = ["teapot", "zebra", "acoustic guitar"]
    own.class_folders(Path("pics"), classes, {"train": 3, "test": 2})
    own.catalog(Path("pics/mypics.tsv"), classes, {"train": 3, "test": 2})
    own.declare(Path("pics"), "mypics", "folders")
    return Path("pics")


def copy(pics, taken, place):
    (pics / f"{place}.png").write_bytes((pics / f"{taken}.png").read_bytes())


def built(head="", *more):
    path = write_recipe(
        Path(),
        group("known", "id", "mypics", '{ listed = ["teapot", "zebra"] }', HALVES),
        group("others", "near", "mypics", "{ rest = true }", '{ test = { from = "test", all = true } }'),
        *more,
        head=HEAD + head,
    )
    return build_benchmark(path, roots={"mypics": Path("pics")}).manifest


def known(count):
    return (
        '[[known_leak]]\nkind = "digest"\na = "group:known"\nb = "group:known"\n'
        f'count = {count}\nreason = "The photographer had one kettle."\n'
    )


ACROSS_SPLITS = ("train/teapot/picture 0", "test/teapot/picture 1")
ACROSS_CLASSES = ("train/teapot/picture 0", "train/zebra/picture 2")


@pytest.mark.parametrize("images", [ACROSS_SPLITS, ACROSS_CLASSES])
def test_a_picture_in_two_splits_or_classes_of_id_is_an_error_unless_it_is_named(pics, images):
    copy(pics, *images)
    with pytest.raises(RecipeError) as caught:
        built()
    first, second = sorted(images)
    assert mentions(str(caught.value), first, second, "known")
    assert 'kind = "digest", a = "group:known", b = "group:known", count = 1' in caught.value.hint
    with raises(RecipeError, where="mine", naming="2"):
        built("", known(2))
    (leak,) = built("", known(1)).data.leaks
    assert (leak.a, leak.b, leak.count, leak.severity) == ("group:known", "group:known", 1, "known")
    assert leak.reason == "The photographer had one kettle."
    (leak,) = built("reproduces = true\n").data.leaks
    assert (leak.severity, leak.reason) == ("known", "as in the benchmark reproduced")


def test_copies_in_one_split_of_one_class_are_no_leak_and_ood_ones_are_recorded(pics):
    copy(pics, "train/teapot/picture 0", "train/teapot/picture 1")
    copy(pics, "test/acoustic guitar/picture 0", "test/acoustic guitar/picture 1")
    assert built().data.leaks == []
    assert built("drop_leaks = true\n").data.leaks == []


def test_drop_leaks_takes_out_what_id_holds_in_two_splits_or_classes(pics):
    copy(pics, *ACROSS_SPLITS)
    copy(pics, "train/zebra/picture 1", "test/teapot/picture 0")
    copy(pics, "test/zebra/picture 0", "test/acoustic guitar/picture 0")
    manifest = built("drop_leaks = true\n")
    held = {part: set(read().column("image_id").to_pylist()) for part, read in manifest.parts.items()}
    everything = {f.relative_to(pics).with_suffix("").as_posix() for f in pics.rglob("*.png")}
    gone = {
        "train/teapot/picture 0",  # the test image stays
        *("train/zebra/picture 1", "test/teapot/picture 0"),  # which label is right nobody knows
        "test/acoustic guitar/picture 0",
    }
    trained_guitars = {f"train/acoustic guitar/picture {n}" for n in range(3)}
    assert set().union(*held.values()) == everything - gone - trained_guitars
    assert manifest.data.leaks == []
    rows = {(row.split, row.group): row for row in manifest.groups}
    assert (rows["train", "known"].expected, rows["train", "known"].actual) == (4, 4)
    said = "left out, as another set, split or class holds the same picture: 2 images"
    assert rows["train", "known"].reason == said
    assert manifest.complete


def test_drop_leaks_takes_out_of_external_what_id_holds(pics):
    copy(pics, "train/teapot/picture 0", "train/acoustic guitar/picture 0")

    def with_external(head):
        listed, images = '{ listed = ["teapot", "zebra"] }', '{ train = { from = "train", all = true } }'
        inside = group("known", "id", "mypics", listed, HALVES)
        path = write_recipe(
            Path(),
            inside,
            group("outliers", "external", "mypics", "{ rest = true }", images),
            head=HEAD + head,
        )
        return build_benchmark(path, roots={"mypics": Path("pics")}).manifest

    with raises(RecipeError, where="mine", naming=("known", "outliers")):
        with_external("")
    manifest = with_external("drop_leaks = true\n")
    held = {part: set(read().column("image_id").to_pylist()) for part, read in manifest.parts.items()}
    assert held["train", "outliers"] == {f"train/acoustic guitar/picture {n}" for n in (1, 2)}
    assert "train/teapot/picture 0" in held["train", "known"]
    assert manifest.data.leaks == []


def test_no_refusal_advises_what_the_recipe_says_already():
    leak = leaks.Leak("digest", "known", "outliers", [("a", "b")])
    recipe = load_recipe("digits")
    assert "drop_leaks" in str(_unnamed_error(recipe, leak).hint)
    assert "drop_leaks" not in str(_unnamed_error(recipe.model_copy(update={"drop_leaks": True}), leak).hint)


def test_copies_of_one_placeholder_take_one_pair_for_each_two_groups_that_hold_it(pics, monkeypatch):
    """Scraped datasets hold one picture thousands of times: every two copies were compared."""
    recipe = load_recipe("digits")
    names = [g.name for g in recipe.group]

    def few(items, number):
        items = list(items)
        assert len(items) <= len(names)
        return combinations(items, number)

    monkeypatch.setattr(leaks, "combinations", few)
    tables = [
        image_table(
            source="digits",
            role="far",
            group=name,
            split="test",
            view="raw",
            labels={"0": -1},
            images={"0": [f"{name}/{n:05d}" for n in range(2000)]},
            digests={f"{name}/{n:05d}": b"0" * 32 for n in range(2000)},
        )
        for name in reversed(names)
    ]
    found = leaks.digest_leaks(recipe, tables)
    assert [(leak.a, leak.b, leak.pairs) for leak in found] == [
        (a, b, [(f"{a}/00000", f"{b}/00000")]) for a, b in combinations(names, 2)
    ]


@pytest.mark.oracle
def test_what_the_frozen_benchmarks_hold_twice_in_id_is_named():
    seen = []
    for name in manifest_names():
        manifest = load_manifest(name)
        known_sets = {f"group:{row.group}" for row in manifest.groups if row.role == "id"}
        assert all(leak.severity != "unnamed" for leak in manifest.data.leaks)
        seen += [
            (name, leak.count, leak.severity)
            for leak in manifest.data.leaks
            if leak.kind == "digest" and leak.a == leak.b and leak.a in known_sets
        ]
    assert sorted(seen) == [
        ("openood-cifar100-drawn", 21, "known"),
        ("rungs-cifar100", 7, "known"),
        ("unknown-cifar", 1, "known"),
        ("unknown-cifar-near4000", 1, "known"),
        ("unknown-cifar-tinyval", 1, "known"),
    ]
