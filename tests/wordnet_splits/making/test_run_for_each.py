"""Several benchmarks by several processes: the same files, in the same order."""

from __future__ import annotations

from pathlib import Path

from tests.fix_resize.sets import tree
from wordnet_splits.base.progress import Silent
from wordnet_splits.checks.verify import verify_benchmark
from wordnet_splits.making import build_benchmark
from wordnet_splits.making import run_for_each as several
from wordnet_splits.recipe import load_recipe


def test_workers_build_and_verify_whole_benchmarks_in_order(tmp_path: Path) -> None:
    recipes = [load_recipe(name) for name in ("rungs-cifar100", "digits", "osc-p2")]
    for workers in (1, 2):
        out = tmp_path / str(workers)
        built = several(
            build_benchmark, recipes, what="building", roots={}, workers=workers, progress=Silent(), out=out
        )
        assert [(b.manifest.name, b.folder) for b in built] == [(r.name, out / r.name) for r in recipes]
        folders = sorted(path for path in out.iterdir() if path.is_dir())
        found = several(
            verify_benchmark,
            folders,
            what="verifying",
            roots={},
            workers=workers,
            progress=Silent(),
            manifests=None,
        )
        assert [(v.name, v.ok) for v in found] == [(folder.name, True) for folder in folders]
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
