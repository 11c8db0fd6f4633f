"""Robust roles: we start from the frozen ones, and readings are what NLTK says, class by class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.wordnet_splits.command import Command
from wordnet_splits.benchmark.recipe import Recipe, load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.studies import alternatives
from wordnet_splits.studies.robust import Robust, RobustClass, robust_roles
from wordnet_splits.wordnet.similarity import compare_synsets, similarity_matrix
from wordnet_splits.wordnet.taxonomy import Taxonomy

CLEAN = (
    "unknown-cifar-clean",
    "openood-cifar10-clean",
    "openood-imagenet200-clean",
    "unknown-imagenet-clean",
)


@pytest.fixture
def command(capsys: Any, monkeypatch: Any, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def of(found: Robust) -> dict[tuple[str, str], RobustClass]:
    return {(one.source, one.class_id): one for one in found.classes}


@pytest.mark.parametrize("name", [*CLEAN, "unknown-imagenet", "osc-p3", "places-typical-t1"])
def test_the_roles_read_are_those_frozen(name: str, wordnet: Taxonomy) -> None:
    recipe = load_recipe(name)
    base = alternatives.decide_in(recipe, alternatives.original(recipe, wordnet), wordnet)
    classes = load_manifest(name, check="classes").classes.to_pylist()
    frozen = {(row["source"], row["class_id"]): row["role"] for row in classes}
    differ = {key for key, role in frozen.items() if base.role(key) != role}
    if name.startswith("unknown-imagenet"):  # candidates that the draw passed over
        assert {base.role(key) for key in differ} == {"near"}
        assert {frozen[key] for key in differ} == {"excluded"}
    else:
        assert not differ
    assert base.offered_to.keys() == frozen.keys()


@pytest.mark.oracle
def test_other_senses_on_the_graph_are_nltks(nltk_wordnet: Any) -> None:
    found = robust_roles("osc-p2-dag", wordnets=[])
    roots = load_recipe("osc-p2-dag").group[-1].classes.value.ids
    checked = 0
    for one in found.classes:
        others = [s for s in nltk_wordnet.synsets(one.name.replace(" ", "_"), "n") if wnid(s) != one.class_id]
        if not others or one.candidate not in ("near", "excluded"):
            assert one.readings["sense"] is None or one.candidate in ("id", "external")
            continue
        roles = []
        for synset in others:
            above = {wnid(up) for up in closure(synset)} | {wnid(synset)}
            hound = "n02087122" in above - {wnid(synset)}
            roles.append("dog" if hound else "near" if above & set(roots) else "excluded")
        if "dog" in roles:
            continue  # known or negative by its place
        assert one.readings["sense"] == "/".join(dict.fromkeys(roles)), one
        checked += 1
    assert checked > 300


def closure(synset: Any) -> Any:
    return synset.closure(lambda s: s.hypernyms() + s.instance_hypernyms())


def wnid(synset: Any) -> str:
    return f"n{synset.offset():08d}"


def test_path_at_the_same_share_is_that_of_the_pairs() -> None:
    found = robust_roles("rungs-cifar100", wordnets=[])
    synsets = {c.class_id: c.wnids for c in load_catalog("cifar100")}
    known = [one.class_id for one in found.classes if one.candidate == "id"]
    others = [one for one in found.classes if one.candidate != "id"]
    value = {
        one.class_id: max(
            compare_synsets(a, b).path for a in synsets[one.class_id] for k in known for b in synsets[k]
        )
        for one in others
    }
    by_reading = {one.class_id for one in others if one.readings["path"] == "near"}
    least = min(value[class_id] for class_id in by_reading)
    assert by_reading == {class_id for class_id, v in value.items() if v >= least}
    near = sum(one.candidate == "near" for one in others)
    levels = sorted(set(value.values()), reverse=True)
    closest = min(abs(sum(v >= level for v in value.values()) - near) for level in levels)
    assert abs(len(by_reading) - near) <= closest + 2  # three bounds, one after the other


def test_leacock_chodorow_orders_pairs_as_path_does() -> None:
    """So it is no reading of its own."""
    wnids = [wnid for item in load_catalog("cifar100") for wnid in item.wnids]
    path, lch = (similarity_matrix(name, wnids).ravel() for name in ("path", "lch"))
    assert (np.unique(path, return_inverse=True)[1] == np.unique(lch, return_inverse=True)[1]).all()


def test_what_no_rule_on_wordnet_decides_is_null_with_a_reason() -> None:
    found = of(robust_roles("digits", wordnets=[]))
    assert (found["digits", "0"].robust, found["digits", "0"].why) == (
        None,
        "no rule on WordNet decides its role",
    )
    assert (found["gaussian", "all"].robust, found["gaussian", "all"].why) == (None, "it has no synset")
    six = found["digits", "6"]
    assert six.readings == {"sense": "excluded", "hierarchy": "near"} | dict.fromkeys(("path", "wup", "mean"))
    assert six.robust == 0.5  # its rule calls every class it judges near: no measure can differ at that share
    assert six.turning_sense is not None
    assert not any(one.robust for one in robust_roles("openood-cifar10", wordnets=[]).classes)


def recipe(**changes: Any) -> Recipe:
    known = {"name": "known", "role": "id", "source": "imagenet1k", "classes": {"subtree": ["dog.n.01"]}}
    far = {"name": "far", "role": "far", "source": "imagenet1k", "classes": {"rest": True}}
    images = {"images": {"test": {"from": "val", "all": True}}}
    groups = [known | images, far | images | changes]
    return Recipe.model_validate({"schema": 1, "name": "dogs", "draw": "dogs", "group": groups})


def test_another_wordnet_has_what_it_has_and_the_rest_is_counted(lexicon: str) -> None:
    """That lexicon has no class of ImageNet-1K, so the reading applies to none; it has a dog, no cat."""
    found = robust_roles(recipe(), wordnets=[lexicon])
    assert found.unmapped == {"oewn-2024": 1000}
    assert found.names[-1] == "oewn-2024"
    assert {one.readings["oewn-2024"] for one in found.classes} == {None}
    assert not found.notes
    lacking = robust_roles(recipe(classes={"subtree": ["cat.n.01"]}), wordnets=[lexicon])
    assert lacking.notes == (
        "dogs: oewn-2024 cannot be applied: cat.n.01 (n02121620), which the rule names, is missing",
    )


MEASURED = """schema = 1
name = "by-measure"
[[group]]
name = "known"
role = "id"
source = "cifar100"
classes = { listed = ["hamster", "mouse"] }
images = { test = { from = "test", all = true } }
[[group]]
name = "near"
role = "near"
source = "cifar100"
classes = { similarity = { to = "group:known", measure = "MEASURE", above = BOUND }, draw = 3 }
images = { test = { from = "test", all = true } }
[[group]]
name = "far"
role = "far"
source = "cifar100"
classes = { similarity = { to = "group:known", measure = "MEASURE", below = BOUND }, draw = 40 }
images = { test = { from = "test", all = true } }
"""


@pytest.mark.parametrize(("measure", "bound"), [("mean", "0.5"), ("path", "0.2"), ("wup_wn", "0.5")])
def test_a_recipe_by_a_measure_is_answered_for_with_its_draws(
    measure: str, bound: str, command: Any, tmp_path: Path
) -> None:
    """Its own measure is no reading of it, and says nothing about any class."""
    recipe, out = tmp_path / "mine.toml", tmp_path / "mine.parquet"
    recipe.write_text(MEASURED.replace("MEASURE", measure).replace("BOUND", bound), encoding="utf-8")
    done = command("audit", "robust", recipe, "--all", "--out", out)
    assert done.code == 0, done.err
    reading = measure.removesuffix("_wn")
    rows = pq.read_table(out).to_pylist()
    assert {row[reading] for row in rows} == {None}
    candidates = [row for row in rows if row["candidate"] == "far" and row["role"] == "excluded"]
    assert candidates  # the draw passed them over, and they are judged for what they were candidates of
    turned = [row for row in rows if row["robust"] not in (None, 1.0)]
    assert turned
    assert all(f"\n{row['name']} " in done.out for row in turned)


def test_every_class_has_every_reading(lexicon: str) -> None:
    found = robust_roles("digits", wordnets=[lexicon])
    assert all(list(one.readings) == list(found.names) for one in found.classes)


def test_the_command_says_the_same(command: Any, tmp_path: Path) -> None:
    out = tmp_path / "digits.parquet"
    done = command("audit", "robust", "digits", "--json", "--out", out)
    rows = done.json["classes"]
    assert done.json["readings"] == ["sense", "hierarchy", "path", "wup", "mean"]
    assert [row["robust"] for row in rows if row["name"] == "six"] == [0.5]
    assert pq.read_table(out).to_pylist() == rows
    shown = command("audit", "robust", "digits")
    assert shown.code == 0
    assert "not judged: 6 of 12 classes: no rule on WordNet decides its role" in shown.out
    assert command("audit", "robust", "digits", "--wordnet", "nowhere").error
    assert command("audit", "robust", "digitz").error
