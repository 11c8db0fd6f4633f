"""From a recipe to a manifest."""

from __future__ import annotations

from wordnet_splits.benchmark.construct.run import Build, build_benchmark, build_recipe, run_for_each

__all__ = ["Build", "build_benchmark", "build_recipe", "run_for_each"]
