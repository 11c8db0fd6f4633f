"""Several benchmarks by several processes: the same files, in the same order."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.fix_resize.sets import tree
from wordnet_splits.base.progress import Silent
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark, run_for_each
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.benchmark.recipe import load_recipe


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
