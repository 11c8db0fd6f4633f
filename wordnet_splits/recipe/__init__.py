"""A benchmark as declared in a TOML file."""

from __future__ import annotations

from wordnet_splits.recipe.loading import class_set_names, declarations_of, load_recipe, recipe_names
from wordnet_splits.recipe.recipe import Group, ImageRule, KnownLeak, PublishedList, Recipe

__all__ = [
    "Group",
    "ImageRule",
    "KnownLeak",
    "PublishedList",
    "Recipe",
    "class_set_names",
    "declarations_of",
    "load_recipe",
    "recipe_names",
]
