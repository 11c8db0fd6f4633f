"""Tables of pairs that a recipe names go with its manifest: verified, published, exported, rebuilt."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.benchmark.construct.test_clear_of_pictures import RECIPE, row
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.image_pairs import read_pairs, write_pairs

NAMED = """[[known_leak]]
kind = "near-duplicate"
a = "group:digits-0-5"
b = "group:digits-6-9"
count = 1
reason = "a 1 may look like a 7"
"""
CLEARED = "near duplicates/é.tsv"


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder ``build`` with a benchmark of two tables, which nobody has beside it; not to be changed."""
    folder = tmp_path_factory.mktemp("tables")
    parts = build_benchmark("digits").manifest.parts
    known, near = (parts["test", name]()["image_id"].to_pylist() for name in ("digits-0-5", "digits-6-9"))
    (folder / "near duplicates").mkdir()
    write_pairs(folder / "pairs.tsv", [{**row(known[0], near[0]), "distance": "3"}])
    write_pairs(folder / CLEARED, [row(near[1], near[2], "same")])
    text = RECIPE.replace("TABLE", CLEARED).replace("[[group]]", 'near_duplicates = "pairs.tsv"\n[[group]]')
    recipe = folder / "apart.toml"
    recipe.write_text(text + NAMED)
    own.attribute(recipe)
    build_benchmark(recipe, out=folder / "build")
    return folder / "build"


@pytest.fixture
def built(built_once: Path, tmp_path: Path, splits: Command) -> Path:
    return Path(shutil.copytree(built_once, tmp_path / "build")) / "digits-apart"


def carried(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "pairs").iterdir()}


def test_a_manifest_carries_the_tables_and_one_without_any_says_nothing_of_them(built: Path) -> None:
    tables = load_manifest(built).data.fingerprints.pair_tables
    assert [table.name for table in tables] == ["pairs.tsv", CLEARED]
    assert sorted(carried(built)) == ["1.tsv", "2.tsv"]
    digits = build_benchmark("digits", out=built.parent).folder
    assert digits is not None
    assert "pair_tables" not in json.loads((digits / "manifest.json").read_text())["fingerprints"]
    assert not (digits / "pairs").exists()


def test_it_is_published_pulled_verified_and_rebuilt(built: Path, splits: Command) -> None:
    assert splits("hub", "publish", "build/digits-apart", "--out", "published").code == 0
    described = json.loads(Path("published/digits-apart/croissant.json").read_text())["distribution"]
    assert {"pairs/1.tsv", "pairs/2.tsv"} <= {file["contentUrl"] for file in described}
    built.rename("elsewhere")
    assert splits("hub", "pull", "./published", "--out", "pulled").code == 0
    assert carried(Path("pulled/digits-apart")) == carried(Path("elsewhere"))
    assert splits("verify", "pulled/digits-apart").code == 0
    assert splits("audit", "leaks", "pulled/digits-apart").code == 0
    assert splits("build", "pulled/digits-apart", "--out", "again").code == 0
    assert splits("diff", "pulled/digits-apart", "again/digits-apart").code == 0
    assert carried(Path("again/digits-apart")) == carried(Path("elsewhere"))


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize("change", [_append, Path.unlink])
def test_an_altered_table_is_neither_loaded_nor_published(
    built: Path, splits: Command, change: Callable[[Path], None]
) -> None:
    splits("hub", "publish", "build/digits-apart", "--out", "published")
    for folder in (built, Path("published/digits-apart")):
        change(folder / "pairs/2.tsv")
    verified = splits("verify", "build/digits-apart")
    assert (verified.code, "fingerprint: pairs/2.tsv: " in verified.err) == (1, True)
    assert "pairs/2.tsv" in splits("hub", "publish", "build/digits-apart", "--out", "other").error
    assert "pairs/2.tsv" in splits("hub", "pull", "./published", "--out", "pulled").error
    assert not Path("pulled/digits-apart").exists()


def test_an_older_manifest_without_the_tables_is_to_be_built_again(built: Path, splits: Command) -> None:
    older = json.loads((built / "manifest.json").read_text())
    del older["fingerprints"]["pair_tables"]
    (built / "manifest.json").write_text(json.dumps(older))
    shutil.rmtree(built / "pairs")
    for words in (["verify", "build/digits-apart"], ["hub", "publish", "build/digits-apart", "--out", "out"]):
        error = splits(*words).error
        assert mentions(error, CLEARED, "pairs", "pairs.tsv")
        assert error.endswith("(build it again)")


def test_under_one_version_a_frozen_table_stays_as_it_is(built: Path) -> None:
    freeze(load_manifest(built), manifests=Path("frozen"))
    recipe = load_recipe(load_manifest(built))
    table = built / "pairs/2.tsv"
    write_pairs(table, [{**pair, "note": "scanned twice"} for pair in read_pairs(table)])
    build_benchmark(recipe, out=Path("changed"))
    with raises(ManifestError, where="digits-apart", naming=CLEARED):
        freeze(load_manifest("./changed/digits-apart"), manifests=Path("frozen"))
