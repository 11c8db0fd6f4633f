"""The reference trainer: recipes as data, losses and optimizers of the papers, runs that resume.

From Python::

    roots = {"cifar100": "data/cifar-100-python"}
    train("unknown-cifar-tinyval", "kim-cifar", "models", epochs=20, seeds=range(5), roots=roots)
    module = load_checkpoint("models/unknown-cifar-tinyval/kim-cifar-resnet20-e20-s0")

Names are imported when first used, so that a command that only shows itself does not load torch.
On the command line: ``unknown-eval train`` and ``unknown-eval recipes``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .checkpoints import load_checkpoint
    from .choices import list_networks
    from .recipe import load_recipe, recipe_names
    from .runs import train

__all__ = ["list_networks", "load_checkpoint", "load_recipe", "recipe_names", "train"]

__getattr__ = names_of(
    __name__,
    {
        "checkpoints": ("load_checkpoint",),
        "choices": ("list_networks",),
        "recipe": ("load_recipe", "recipe_names"),
        "runs": ("train",),
    },
)
