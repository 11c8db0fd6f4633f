"""``eval.yaml``: the Hugging Face Hub's description of a dataset repository with leaderboards."""

from __future__ import annotations

from typing import Final

from wordnet_splits.base.lazy import need
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.hub.entries import HUB_ROLES, hub_task
from wordnet_splits.hub.release import Release

EVAL: Final = "eval.yaml"


def eval_yaml(release: Release, name: str) -> str:
    """Return the text of ``eval.yaml``: a task (a leaderboard) for near and for far of each benchmark.

    Parameters
    ----------
    name : of the repository.
    """
    yaml = need("yaml", "hub", where=EVAL)
    titles = [load_recipe(manifest).title or manifest.name for manifest in release.benchmarks]
    tasks = [
        {"id": hub_task(manifest.name, role), "config": manifest.name, "split": "test"}
        for manifest in release.benchmarks
        for role in HUB_ROLES
        if any(row.role == role and row.split == "test" for row in manifest.groups)
    ]
    benchmark = {
        "name": name,
        "description": "AUROC of detecting unknown classes, the mean over the near or the far sets. "
        + "; ".join(titles),
        **({} if release.framework is None else {"evaluation_framework": release.framework}),
        "tasks": tasks,
    }
    return str(yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True, width=1000))
