"""The verdict at the end of `new` and `benchmark`: its values recomputed plainly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from tests.wordnet_splits.own_tree import write_tree
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.studies.robust import robust_roles
from wordnet_splits.wordnet.taxonomy import Taxonomy

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten")

PICS = ["golden retriever", "teapot", "zebra", "acoustic guitar", "kangaroo", "wolf", "tiger", "chair"]
KNOWN = "cifar100:fox,camel,bottle,kangaroo,leopard,lion"
READINGS = ("sense", "hierarchy", "path", "wup", "mean")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def plain_roles(built: Path, recipe: Path) -> dict[str, dict[str, Any]]:
    """Count classes, images and agreeing readings of near and far, row by row."""
    manifest = load_manifest(built)
    images = [row for part in manifest.parts for row in manifest.images(*part).to_pylist()]
    rows = robust_roles(recipe, wordnets=[]).to_table().to_pylist()
    found = {}
    for role in ("near", "far"):
        classes = [row for row in rows if row["role"] == role]
        votes = {row["class_id"]: [row[r] == role for r in READINGS if row[r] is not None] for row in classes}
        votes = {class_id: agree for class_id, agree in votes.items() if agree}
        found[role] = {
            "classes": len(classes),
            "images": sum(row["role"] == role and row["split"] == "test" for row in images),
            "read": len(votes),
            "share": mean(map(mean, votes.values())) if votes else None,
            "changed": {class_id for class_id, agree in votes.items() if not all(agree)},
        }
    return found


def shown(roles: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    keys = ("classes", "images", "read", "share", "changed")
    return {r["role"]: {**{key: r[key] for key in keys}, "changed": set(r["changed"])} for r in roles}


def plain_siblings(built: Path, wordnet: Taxonomy) -> set[tuple[str, str]]:
    """Pair far classes with ID classes that have a parent at or above them."""
    rows = load_manifest(built).classes.to_pylist()
    of = {role: [row for row in rows if row["role"] == role] for role in ("id", "far")}

    def above(wnid: str) -> set[str]:
        return {wnid}.union(*map(above, wordnet.parents(wnid)))

    return {
        (far["class_id"], known["class_id"])
        for far in of["far"]
        for known in of["id"]
        if any(set(wordnet.parents(k)) & above(f) for k in known["wnids"] for f in far["wnids"])
    }


def test_the_verdict_of_a_folder_is_what_its_rows_say(command: Command, wordnet: Taxonomy) -> None:
    own.class_folders(Path("pics"), PICS, {"": 3})
    words = ("benchmark", "pics", "--known", KNOWN, "--out", "made", "--json")
    verdict = command(*words).json["verdict"]
    expected = plain_roles(Path("made/pics"), Path("made/pics.toml"))
    assert shown(verdict["roles"]) == {
        role: values | {"share": pytest.approx(values["share"])} for role, values in expected.items()
    }
    assert expected["near"]["changed"]  # wolf and tiger have other senses
    pairs = plain_siblings(Path("made/pics"), wordnet)
    siblings = {tuple(pair) for pair in verdict["siblings"]}
    assert siblings <= pairs
    assert verdict["sibling_count"] == len(siblings) == len({far for far, _ in pairs}) > 0
    assert len(verdict["lines"]) <= 8
    warned = [line["text"] for line in verdict["lines"] if line["warning"]]
    assert len(warned) == 3  # fewer than 10 near, fewer than 10 far, and the power
    assert verdict["power"] in warned
    done = command(*words[:-1]).out.splitlines()
    lines = verdict["lines"]
    assert [line.removeprefix("warning: ") for line in done[-len(lines) :]] == [r["text"] for r in lines]


@pytest.mark.parametrize("known", ["road", "cup"])
def test_a_share_below_one_half_is_a_warning(command: Command, known: str) -> None:
    groups = ("--id", f"cifar100:{known}", "--near", "caltech256", "--far", "digits", "--json")
    verdict = command("new", known, *groups).json["verdict"]
    assert command("build", f"{known}.toml").code == 0
    share = plain_roles(Path(f"build/{known}"), Path(f"{known}.toml"))["near"]["share"]
    assert verdict["roles"][0]["share"] == pytest.approx(share)
    (line,) = (line for line in verdict["lines"] if line["text"].startswith("near in other readings"))
    assert line["warning"] == (share < 0.5) == (known == "road")


def test_other_readings_are_those_of_the_own_hierarchy(command: Command) -> None:
    write_tree(Path())
    groups = ("--id", "digits:0,2,4", "--near", "digits:path=0.3", "--far", "digits:path=0.3")
    verdict = command("new", "signs", *groups, "--hierarchy", "tree.tsv", "--json").json["verdict"]
    assert command("build", "signs.toml").code == 0
    expected = plain_roles(Path("build/signs"), Path("signs.toml"))
    assert shown(verdict["roles"]) == expected
    assert verdict["roles"][0]["read"]


def test_sources_of_too_many_classes_are_not_read_in_other_ways(command: Command) -> None:
    groups = ("--id", "cifar100:mouse", "--near", "imagenet21k:n02342885", "--far", "svhn")
    near, far = command("new", "huge", *groups, "--json").json["verdict"]["roles"]
    assert (near["read"], near["share"], far["changed"]) == (None, None, [])
