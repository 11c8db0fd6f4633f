"""Stand-ins: a network of given features and logits, small training data, a recipe of few steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from loaders.harness.models.transforms import Normalise
from loaders.harness.training.data import Images, TrainingData
from loaders.harness.training.methods import Batch, Method, State
from loaders.harness.training.recipe import load_recipe
from loaders.harness.training.steps import mean_terms, sum_terms


class FixedOutputs:
    """A network that returns given features (n, D) and logits (n, K), and has the heads of a method."""

    def __init__(self, method: Method, logits: Tensor, features: Tensor | None = None) -> None:
        self.features = torch.zeros(len(logits), 1) if features is None else features
        self.values, self.facts, self.width = logits, {}, self.features.shape[1]
        self.heads = dict(method.heads(self, logits.shape[1]))  # type: ignore[arg-type]
        self.head = self.heads.get("head", nn.Identity())

    def logits(self, images: Tensor) -> Tensor:
        return self.values

    def __call__(self, images: Tensor) -> tuple[Tensor, Tensor]:
        return self.features, self.values


def new_state(**values: Any) -> State:
    """A state in its first epoch, with some values in it."""
    state = State(values)
    state.generator = torch.Generator().manual_seed(0)
    return state


def loss_of(
    method: Method, logits: Tensor, labels: Tensor, features: Tensor | None = None, **state: Any
) -> Tensor:
    """The loss of a method's step on given outputs of a network; further arguments are its state."""
    network: Any = FixedOutputs(method, logits, features)
    batch = Batch((torch.zeros(len(labels), 3, 1, 1),), labels, torch.arange(len(labels)))
    return sum_terms(mean_terms(method, method.step(network, batch, new_state(**state))))


def spec_of(name: str, folder: Path) -> str:
    """The name of a registered method, with the arguments that it cannot be trained without."""
    if name != "augmented-copies":
        return name
    for number, label in enumerate(("a", "b", "c", "zero", "one", "two", "three", "four", "five")):
        below = folder / "copies" / label
        below.mkdir(parents=True)
        for copy in range(2):
            pixels = np.random.default_rng((number, copy)).integers(0, 256, (8, 8, 3), np.uint8)
            Image.fromarray(pixels).save(below / f"{copy}.png")
    return f"{name}[folder={folder / 'copies'}]"


def small_data(size: int = 8) -> TrainingData:
    """42 images of noise in three classes, and 18 outliers."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (60, 3, size, size), generator=generator, dtype=torch.uint8)
    labels = torch.arange(42) % 3
    return TrainingData(
        benchmark={"name": "noise", "version": 1, "fingerprint": "f" * 64, "parts": []},
        classes=("a", "b", "c"),
        normalise=Normalise((0.5,) * 3, (0.25,) * 3),
        train=Images(pixels[:42], labels),
        negatives=Images(pixels[42:], torch.full((18,), -1)),
    )


def recipe_of(method: str, **changes: Any) -> Any:
    """The recipe of the digits with another method, 3 epochs and batches of 16."""
    recipe = load_recipe("digits-demo")
    choice = recipe.method.model_copy(update={"name": method})
    return recipe.model_copy(update={"name": "toy", "method": choice, "epochs": 3, "batch": 16, **changes})
