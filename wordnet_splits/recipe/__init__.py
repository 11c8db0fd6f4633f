"""A benchmark as declared in a TOML file."""

from __future__ import annotations

from wordnet_splits.recipe.loading import load_recipe, recipe_names
from wordnet_splits.recipe.recipe import Group, ImageRule, KnownLeak, Recipe

__all__ = ["Group", "ImageRule", "KnownLeak", "Recipe", "load_recipe", "recipe_names"]
