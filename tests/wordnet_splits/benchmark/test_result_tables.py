"""What a command found, as a table: the same keys in every row, whatever was found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.checks.verify import diff_manifests
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest
from wordnet_splits.hub.attribution import cite_benchmark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("build")
    build_benchmark("digits", out=out)
    return out


def test_two_draws_differ_in_rows_of_a_table(folder):
    same = diff_manifests(load_manifest(folder / "digits"), build_benchmark("digits").manifest)
    assert same.same
    assert same.to_table().num_rows == 0
    other = diff_manifests(load_manifest(folder / "digits"), load_manifest("unknown-cifar-tinyval"))
    assert not other.same
    assert other.to_table().num_rows == other.classes.count + other.images.count > 0
    assert other.to_table().column_names == ["of", "change", "source", "class_id", "image_id"]
    assert other.as_dict()["images"]["only_a"] == other.images.only_a


def test_what_was_frozen_is_a_row(folder, tmp_path):
    (row,) = freeze(read_manifest(folder / "digits"), manifests=tmp_path).to_table().to_pylist()
    frozen = load_manifest(tmp_path / "digits")
    assert row == {
        "name": "digits",
        "version": frozen.version,
        "fingerprint": frozen.fingerprint,
        "folder": str(tmp_path / "digits"),
        "absent": [],
        "unchanged": False,
    }


def without_evaluation(folder: Path) -> Path:
    """Copy ``digits`` as it was frozen before its evaluation had a fingerprint."""
    copied = Path(shutil.copytree(find_manifest("digits"), folder / "digits"))
    data = json.loads((copied / "manifest.json").read_text("utf-8"))
    del data["fingerprints"]["evaluation"]
    (copied / "manifest.json").write_text(json.dumps(data), "utf-8")
    return copied


def test_a_manifest_without_the_fingerprint_of_evaluation_is_refused(folder, tmp_path, capsys, monkeypatch):
    old = without_evaluation(tmp_path / "frozen")
    with raises(ManifestError, where="manifest.json", naming="fingerprints.evaluation"):
        load_manifest(old)
    assert Command(capsys, monkeypatch, tmp_path)("diff", str(old), str(folder / "digits")).code == 2


def test_a_citation_is_a_table_of_its_entries():
    found = cite_benchmark("digits")
    assert found.to_table()["key"].to_pylist() == [entry.key for entry in found.entries]
