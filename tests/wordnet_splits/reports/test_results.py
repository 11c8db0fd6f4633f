"""What a command found, as a table: the same keys in every row, whatever was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from wordnet_splits.build import build
from wordnet_splits.manifest import load_manifest
from wordnet_splits.manifest.diff import diff_manifests
from wordnet_splits.reports.cite import cite
from wordnet_splits.reports.freeze import freeze


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("build")
    build("digits", out=out)
    return out


def test_two_draws_differ_in_rows_of_a_table(folder):
    same = diff_manifests(load_manifest(folder / "digits"), build("digits").manifest)
    assert same.same
    assert same.to_table().num_rows == 0
    other = diff_manifests(load_manifest(folder / "digits"), load_manifest("unknown-cifar-tinyval"))
    assert not other.same
    assert other.to_table().num_rows == other.classes.count + other.images.count > 0
    assert other.to_table().column_names == ["of", "change", "source", "class_id", "image_id"]
    assert other.as_dict()["images"]["only_a"] == other.images.only_a


def test_what_was_frozen_is_a_row(folder, tmp_path):
    (row,) = freeze("digits", built=folder, manifests=tmp_path).to_table().to_pylist()
    held = load_manifest(tmp_path / "digits")
    assert row == {
        "name": "digits",
        "version": held.version,
        "fingerprint": held.fingerprint,
        "folder": str(tmp_path / "digits"),
    }


def test_a_citation_is_a_table_of_its_entries():
    found = cite("digits")
    assert found.to_table()["key"].to_pylist() == [entry.key for entry in found.entries]
