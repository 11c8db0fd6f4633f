"""Frozen manifests: what is never frozen, what completes one, and what `verify` finds in one."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image

from tests.fix_resize.sets import tree
from tests.raising import raises
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.progress import Silent
from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark, run_for_each
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest

from ...recipes import FAR, KNOWN, group
from .conftest import rows


def test_freeze_then_verify(frozen):
    assert verify_benchmark(read_manifest(frozen)).problems == []


def test_what_is_never_frozen(tmp_path, recipe, textures):
    build_benchmark("digits", seed=3, out=tmp_path)
    with raises(ManifestError, where="digits@seed=3"):
        freeze(read_manifest(tmp_path / "digits@seed=3"), manifests=tmp_path / "manifests")
    next((textures / "images" / "banded").iterdir()).unlink()
    path = recipe(KNOWN, group("far", "far", "dtd", '{ listed = ["banded"] }'))
    build_benchmark(path, roots={"dtd": textures}, allow_missing=True, out=tmp_path)
    with raises(ManifestError, where="mine"):
        freeze(read_manifest(tmp_path / "mine"), manifests=tmp_path / "manifests")


def test_completing_fills_nulls_and_nothing_else(tmp_path, recipe, textures):
    path, out, frozen = recipe(KNOWN, FAR), tmp_path / "build", tmp_path / "manifests"
    build_benchmark(path, out=out)
    freeze(read_manifest(out / "mine"), manifests=frozen)
    build_benchmark(path, roots={"dtd": textures}, out=out)
    freeze(read_manifest(out / "mine"), manifests=frozen)
    assert load_manifest(frozen / "mine").data.fingerprints.pixels_in_all is not None
    build_benchmark(path, out=out)
    with raises(ManifestError, where="mine", naming="test/far"):
        freeze(read_manifest(out / "mine"), manifests=frozen)
    build_benchmark(
        recipe(KNOWN, FAR.replace("per_class = 30", "per_class = 31")), roots={"dtd": textures}, out=out
    )
    with raises(ManifestError, where="mine"):
        freeze(read_manifest(out / "mine"), manifests=frozen)


def test_provenance_stays_where_no_fingerprint_changes(folder, frozen):
    data = json.loads((frozen / "manifest.json").read_text())
    data["provenance"] = {"pyarrow": "1.0"}
    (frozen / "manifest.json").write_text(json.dumps(data))
    freeze(read_manifest(folder), manifests=frozen.parent)
    assert load_manifest(frozen).data.provenance == {"pyarrow": "1.0"}


def test_verify_finds_what_was_changed(frozen):
    path = frozen / "images" / "val" / "digits-0-5.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    found = verify_benchmark(read_manifest(frozen))
    assert {p.kind for p in found.problems} >= {"fingerprint", "image-not-frozen"}
    named = [p.image_id for p in found.problems if p.kind == "image-not-frozen"]
    assert named == [table.column("image_id")[0].as_py()]


def test_verify_with_a_root_finds_altered_pixels(tmp_path, recipe, textures):
    path = recipe(KNOWN, FAR)
    build_benchmark(path, roots={"dtd": textures}, out=tmp_path)
    victim = rows(load_manifest(tmp_path / "mine"), "test", "far")[0]
    Image.new("RGB", (16, 16), (250, 1, 2)).save(textures / "images" / f"{victim}.jpg")
    found = verify_benchmark(read_manifest(tmp_path / "mine"), roots={"dtd": textures})
    assert [(p.kind, p.image_id) for p in found.problems] == [("altered", victim)]


def test_workers_build_and_verify_whole_benchmarks_in_order(tmp_path: Path) -> None:
    digits = load_recipe("digits")
    recipes = [digits.model_copy(update={"name": name}) for name in ("third", "first", "second")]
    for workers in (1, 2):
        out = tmp_path / str(workers)
        run = partial(run_for_each, roots={}, workers=workers, progress=Silent())
        builds = run(build_benchmark, recipes, task="building", out=out)
        assert [(b.manifest.name, b.folder) for b in builds] == [(r.name, out / r.name) for r in recipes]
        manifests = [read_manifest(out / recipe.name) for recipe in recipes]
        verifications = run(verify_benchmark, manifests, task="verifying")
        assert [(v.name, v.ok) for v in verifications] == [(recipe.name, True) for recipe in recipes]
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
