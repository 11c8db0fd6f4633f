"""Croissant metadata of every benchmark, by the library that NeurIPS' track checks it with."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.imported import Imported
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hub.croissant import croissant_of

from .conftest import DIGITS

mlc = Imported("mlcroissant")
DEVELOPERS = "The wordnet-splits developers"
EVERY = manifest_names() if "EVERY_BENCHMARK" in os.environ else ()
TOLD = {"license": "cc-by-4.0", "date_published": "2026-11-21"}


# one of each family: a benchmark takes seconds; `make croissant` looks at all
@pytest.mark.parametrize("name", ["digits", "osc-p2", "places-typical-t1", "unknown-imagenet", *EVERY])
def test_it_is_valid(name: str) -> None:
    manifest = load_manifest(name, check="classes")
    text = croissant_of(manifest)
    found = mlc.Dataset(json.loads(text)).metadata
    assert (list(found.issues.errors), list(found.issues.warnings)) == ([], [])
    assert [record.id for record in found.record_sets] == [
        "classes",
        *(f"{s}-{g}" for s, g in manifest.parts),
    ]
    said = json.loads(text)
    for field in ("rai:dataBiases", "rai:dataLimitations", "rai:dataUseCases", "rai:dataCollection"):
        assert said[field], field
    assert said["conformsTo"][0] == "http://mlcommons.org/croissant/1.1"
    assert said["publisher"] == said["creator"] == {"@type": "sc:Organization", "name": DEVELOPERS}
    assert said["license"] == "https://spdx.org/licenses/Apache-2.0.html"
    assert said["rai:dataReleaseMaintenancePlan"].endswith("every change has a changelog line.")
    for group in {row.group for row in manifest.groups}:
        assert any(line.startswith(f"{group}: ") for line in said["rai:dataAnnotationProtocol"]), group


def test_sources_recipe_and_program_are_its_provenance() -> None:
    digits = json.loads(croissant_of(load_manifest("digits"), metadata=TOLD))
    assert digits["license"] == "https://spdx.org/licenses/CC-BY-4.0.html"
    assert digits["datePublished"].startswith("2026-11-21")
    assert digits["rai:hasSyntheticData"] is True  # the groups gaussian and uniform
    assert [source["@id"] for source in digits["prov:wasDerivedFrom"]] == ["urn:dataset:digits"]
    made, *generated = digits["prov:wasGeneratedBy"]
    assert made["prov:used"]["prov:label"].startswith("recipe of digits, version 1, seed 0, fingerprint 5e82")
    assert [activity["prov:label"].partition(" seed ")[2] for activity in generated] == ["0", "0"]
    assert made["prov:wasAssociatedWith"]["prov:label"].startswith("wordnet-splits ")
    assert digits["@context"]["prov"] == "http://www.w3.org/ns/prov#"
    osc = json.loads(croissant_of(load_manifest("osc-p2")))
    assert osc["rai:hasSyntheticData"] is False


def test_its_records_are_the_tables(tmp_path: Path) -> None:
    shutil.copytree(DIGITS, tmp_path / "digits")
    manifest = load_manifest(tmp_path / "digits")
    (tmp_path / "digits" / "croissant.json").write_text(croissant_of(manifest, metadata=TOLD), "utf-8")
    found = mlc.Dataset(tmp_path / "digits" / "croissant.json")
    for (split, group), read in manifest.parts.items():
        name, table = f"{split}-{group}", read().to_pylist()
        rows = [
            {key.partition("/")[2]: v.decode() if isinstance(v, bytes) else v for key, v in row.items()}
            for row in found.records(name)
        ]
        assert rows == [{key: value for key, value in row.items() if key != "digest"} for row in table]
    assert len(list(found.records("classes"))) == len(manifest.classes)


def test_every_file_has_its_digest() -> None:
    for entry in json.loads(croissant_of(load_manifest("digits")))["distribution"]:
        assert entry["sha256"] == hashlib.sha256((DIGITS / entry["contentUrl"]).read_bytes()).hexdigest()


def test_a_wrong_date_is_one_line(tmp_path: Path) -> None:
    with raises(DataError, where="README.md", naming=("soon", "date_published")):
        croissant_of(load_manifest("digits"), metadata={"date_published": "soon"})
