"""Trained networks: training recipe, architecture, and the folder of weights and metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .choices import list_networks
    from .files import load_checkpoint
    from .recipe import load_recipe, recipe_names

__all__ = ["list_networks", "load_checkpoint", "load_recipe", "recipe_names"]

__getattr__ = names_of(
    __name__,
    {
        "choices": ("list_networks",),
        "files": ("load_checkpoint",),
        "recipe": ("load_recipe", "recipe_names"),
    },
)
