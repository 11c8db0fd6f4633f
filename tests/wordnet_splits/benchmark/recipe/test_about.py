"""``[about]`` of a recipe: read, refused with file and line, and carried by the manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from wordnet_splits.base.errors import ManifestError, RecipeError
from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import write_manifest
from wordnet_splits.benchmark.recipe import is_shipped, load_recipe
from wordnet_splits.benchmark.resolve import load_manifest

ABOUT = """
[about]
licence = "CC-BY-4.0"
date = 2026-11-23
authors = [{ name = "Ada Lovelace", orcid = "0000-0002-1825-0097" }]
version_notes = { 1 = "The first." }
"""
CARRIED = {
    "authors": [{"name": "Ada Lovelace", "orcid": "0000-0002-1825-0097"}],
    "licence": "CC-BY-4.0",
    "date": "2026-11-23",
    "version_notes": {"1": "The first."},
}


def recipe_file(folder: Path, about: str = ABOUT, name: str = "mine", base: str = "digits") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(f'extends = "{base}"\nname = "{name}"\n{about}', encoding="utf-8")
    return path


def test_a_manifest_carries_it_beside_the_recipe(tmp_path: Path) -> None:
    manifest = build_benchmark(recipe_file(tmp_path)).manifest
    folder = write_manifest(manifest, tmp_path)
    stored = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert stored["about"] == CARRIED
    assert "about" not in stored["recipe"]
    loaded = load_manifest(folder)
    assert load_recipe(loaded).about.as_dict() == CARRIED
    assert build_benchmark(load_recipe(loaded)).manifest.data.about == loaded.data.about


def test_it_is_part_of_no_fingerprint_and_may_change_under_a_version(tmp_path: Path) -> None:
    with_about = build_benchmark(recipe_file(tmp_path)).manifest
    without = build_benchmark(recipe_file(tmp_path, "")).manifest
    assert with_about.data.fingerprints == without.data.fingerprints
    assert "about" not in without.data.as_dict()
    frozen = freeze(without, manifests=tmp_path / "frozen")
    assert frozen.absent[:3] == ["authors", "description", "licence"]
    again = freeze(with_about, manifests=tmp_path / "frozen")
    assert again.absent[:6] == ["description", "paper", "doi", "url", "contact", "limitations"]
    assert load_manifest(tmp_path / "frozen" / "mine").data.about.as_dict() == CARRIED


def test_a_shipped_benchmark_has_none_and_lacks_none(tmp_path: Path) -> None:
    manifest = build_benchmark("digits").manifest
    assert "about" not in manifest.data.as_dict()
    assert freeze(manifest, manifests=tmp_path).absent == ()
    assert is_shipped(load_recipe(manifest))
    assert not is_shipped(load_recipe(recipe_file(tmp_path)))


def test_a_variant_does_not_inherit_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = tmp_path / "base.toml"
    group = '[[group]]\nname = "a"\nrole = "id"\nsource = "digits"\nclasses = { listed = ["0"] }\n'
    base.write_text(f'schema = 1\nname = "base"\n{ABOUT}{group}', encoding="utf-8")
    assert load_recipe(base).about.licence == "CC-BY-4.0"
    assert load_recipe(recipe_file(tmp_path, "", base="base.toml")).about.absent


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('licence = "CC BY"', ("mine.toml", "6", "about.licence")),
        ('doi = "x"', ("x", "mine.toml", "6", "about.doi")),
        ('authors = ["Ada"]', ("mine.toml", "6", "about.authors")),
        ('authors = [{ name = "A", orcid = "0" }]', ("0", "6", "about.authors.0.orcid")),
        ('license = "MIT"', ("license", "licence", "6")),
        ('version_notes = { 2 = "x" }', ("about.version_notes", "2")),
    ],
)
def test_a_wrong_key_is_one_error_with_file_and_line(tmp_path: Path, line: str, message: object) -> None:
    path = recipe_file(tmp_path, f'\n[about]\ndescription = "Cups."\n{line}\n')
    with pytest.raises(RecipeError) as error:
        load_recipe(path)
    assert mentions(str(error.value), message)


def test_a_wrong_value_in_a_manifest_is_refused(tmp_path: Path) -> None:
    folder = write_manifest(build_benchmark(recipe_file(tmp_path)).manifest, tmp_path)
    path = folder / "manifest.json"
    path.write_text(path.read_text("utf-8").replace("0000-0002-1825-0097", "0000-0002-1825-0099"), "utf-8")
    with raises(ManifestError, where="manifest.json", naming="about.authors.0.orcid"):
        load_manifest(folder)
