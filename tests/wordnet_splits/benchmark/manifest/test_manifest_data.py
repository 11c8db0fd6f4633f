"""A ``manifest.json`` that another wrote: every shape but ours is one clear error, and no path leaves."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.benchmark.manifest.metadata import check_data
from wordnet_splits.benchmark.resolve import load_manifest

from ...recipes import KNOWN, write_recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("build")
    built = build_benchmark(write_recipe(base, KNOWN), out=base).folder
    assert built is not None
    return built


@pytest.fixture
def data(folder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return copy.deepcopy(found)


def at(data: Any, path: str) -> tuple[Any, Any]:
    *way, last = (int(p) if p.isdigit() else p for p in path.split("."))
    for part in way:
        data = data[part]
    return data, last


WRONG: list[tuple[str, object]] = [
    ("schema", 2),
    ("name", "../../mine"),
    ("name", "Mine"),
    ("version", "1"),
    ("groups", {}),
    ("groups.0.actual", "178"),
    ("complete", None),
    ("fingerprint", "abc"),
    ("fingerprints", []),
    ("fingerprints.classes", None),
    ("fingerprints.images.0.split", "../test"),
    ("fingerprints.images.0.group", "../../../etc/known"),
    ("fingerprints.images.0.group", "/etc/known"),
    ("leaks", [{"kind": "class"}]),
    ("missing", 3),
    ("provenance", None),
]


def test_what_build_writes_is_accepted(data):
    assert check_data(data, "here").as_dict() == data


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_a_wrong_value_is_named_by_its_key(data, path, value):
    holder, last = at(data, path)
    holder[last] = value
    with raises(ManifestError, where="here") as caught:
        check_data(data, "here")
    assert path.split(".")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", sorted({p for p, _ in WRONG}))
def test_a_key_that_is_missing(data, path):
    holder, last = at(data, path)
    del holder[last]
    with pytest.raises(ManifestError):
        check_data(data, "here")


@pytest.mark.parametrize("text", ["", "[]", "null", '{"schema": 1}', '{"schema": 1', "\x00"])
def test_a_file_that_is_no_manifest(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with raises(ManifestError, where="manifest.json"):
        load_manifest(tmp_path)


def test_a_manifest_with_another_recipe_in_it(folder, data, tmp_path):
    data["recipe"]["group"][0]["role"] = "friend"
    freeze(read_manifest(folder.parent / "mine"), manifests=tmp_path)
    (tmp_path / "mine" / "manifest.json").write_text(json.dumps(data))
    with raises(ManifestError, where="manifest.json", naming=("recipe", "group.0.role")):
        verify_benchmark(read_manifest(tmp_path / "mine"))
