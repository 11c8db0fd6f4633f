"""Recipes: declarations of benchmarks in TOML files."""

from __future__ import annotations

from wordnet_splits.benchmark.recipe.loading import FLAGSHIPS as FLAGSHIPS
from wordnet_splits.benchmark.recipe.loading import awaited_lists as awaited_lists
from wordnet_splits.benchmark.recipe.loading import buildable as buildable
from wordnet_splits.benchmark.recipe.loading import class_set_names as class_set_names
from wordnet_splits.benchmark.recipe.loading import declaration_in as declaration_in
from wordnet_splits.benchmark.recipe.loading import declared_by as declared_by
from wordnet_splits.benchmark.recipe.loading import is_shipped as is_shipped
from wordnet_splits.benchmark.recipe.loading import load_recipe as load_recipe
from wordnet_splits.benchmark.recipe.loading import recipe_names as recipe_names
from wordnet_splits.benchmark.recipe.schema import Recipe as Recipe
from wordnet_splits.benchmark.recipe.tables import Group as Group
from wordnet_splits.benchmark.recipe.tables import ImageRule as ImageRule
from wordnet_splits.benchmark.recipe.tables import KnownLeak as KnownLeak
from wordnet_splits.benchmark.recipe.tables import PublishedList as PublishedList
