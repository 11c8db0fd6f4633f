"""From a recipe to a manifest."""

from __future__ import annotations

from wordnet_splits.build.run import Build, BuildOptions, build, build_recipe
from wordnet_splits.build.several import several

__all__ = ["Build", "BuildOptions", "build", "build_recipe", "several"]
