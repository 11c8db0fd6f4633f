"""Names that `audit_classes` and `thresholds` take: published sets, their groups, datasets of users."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.raising import mentions
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.audit.class_list import load_class_list
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.studies.class_sets import class_set
from wordnet_splits.wordnet.taxonomy import Taxonomy


@pytest.mark.parametrize("name", ["tiered-imagenet", "imagenette", "imagenet-x"])
def test_a_set_of_the_field_is_a_list(name: str, wordnet: Taxonomy) -> None:
    known = class_set(name)
    assert sorted(load_class_list(name, wordnet).names) == sorted(one.class_id for one in known.classes)
    group = known.recipe.group[-1].name
    of_group = sorted(one.class_id for one in known.classes if one.group == group)
    assert sorted(load_class_list(f"{name}:{group}", wordnet).names) == of_group


def test_no_class_of_a_divided_imagenet_leaks() -> None:
    found = audit_classes("tiered-imagenet:test", "tiered-imagenet:train")
    assert (found.counts["classes"], found.known, found.counts["leaking"]) == (160, 351, 0)


def test_a_dataset_of_ones_own_is_a_list(
    own_datasets_forgotten: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    command = Command(capsys, monkeypatch, tmp_path)
    own.class_folders(tmp_path / "pics", ["zebra", "teapot"], {"": 2})
    own.catalog(tmp_path / "pics" / "mypics.tsv", ["zebra", "teapot"], {"all": 2})
    own.declare(tmp_path / "pics", "mypics", "folders")
    root = ("--root", f"mypics={tmp_path / 'pics'}")
    found = command("audit", "mypics", "--json", *root)
    assert found.code == 1
    assert [(one["id"], one["relation"]) for one in found.json["classes"] if one["relation"]] == [
        ("zebra", "equal"),
        ("teapot", "equal"),
    ]
    far = command("thresholds", "cifar10", "--against", "mypics", "--json", *root).json
    assert (far["known"], far["equal"]) == (2, 0)


def test_an_unknown_group_or_set_offers_what_is_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = Command(capsys, monkeypatch, tmp_path)
    assert mentions(command("audit", "imagenet-x:oood").error, "oood", "ood")
    assert mentions(command("audit", "teired-imagenet").error, "tiered-imagenet")
