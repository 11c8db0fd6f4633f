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

from wordnet_splits.lazy import names_of

if TYPE_CHECKING:
    from .checkpoints import load_checkpoint, read_metadata
    from .choices import list_networks
    from .data import TrainingData, load_arrays, load_training_data
    from .networks import build
    from .of_benchmark import train
    from .recipe import TrainingRecipe, load_recipe, recipe_names
    from .runs import Trained, choose_machine, plan_runs, train_runs
    from .trainer import Run

__all__ = [
    "Run",
    "Trained",
    "TrainingData",
    "TrainingRecipe",
    "build",
    "choose_machine",
    "list_networks",
    "load_arrays",
    "load_checkpoint",
    "load_recipe",
    "load_training_data",
    "plan_runs",
    "read_metadata",
    "recipe_names",
    "train",
    "train_runs",
]

__getattr__ = names_of(
    __name__,
    {
        "checkpoints": ("load_checkpoint", "read_metadata"),
        "choices": ("list_networks",),
        "data": ("TrainingData", "load_arrays", "load_training_data"),
        "networks": ("build",),
        "of_benchmark": ("train",),
        "recipe": ("TrainingRecipe", "load_recipe", "recipe_names"),
        "runs": ("Trained", "choose_machine", "plan_runs", "train_runs"),
        "trainer": ("Run",),
    },
)
