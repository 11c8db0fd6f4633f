"""Trials: every recipe takes three steps of four made images of its size, and its model says so."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from loaders.harness import train_recipe
from loaders.harness.models.transforms import Normalise
from loaders.harness.training.checkpoint import load_checkpoint, load_state
from loaders.harness.training.data import TrainingData
from loaders.harness.training.fitting import TrainedRun
from loaders.harness.training.recipe import TrainingRecipe, load_recipe, recipe_names
from loaders.harness.training.runs import plan_runs, train_runs
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.progress import Silent

from .conftest import blobs
from .methods.stand_ins import spec_of
from .toy import CPU, Interrupting, weights

SIZES = {"digits-demo": 8, "abdelzad": 28}


def made_data(recipe: TrainingRecipe) -> TrainingData:
    """Images of three classes, and outliers, of the size that a recipe is for."""
    large = recipe.network.startswith(("torchvision:", "resnet50-", "resnet152-"))
    side = recipe.resize.side if recipe.resize else SIZES.get(recipe.name, 224 if large else 32)
    return TrainingData(
        benchmark={"name": "blobs", "version": 1, "fingerprint": "f" * 64, "parts": []},
        classes=("a", "b", "c"),
        normalise=Normalise(),
        train=blobs(18, seed=1, size=side + 2 * recipe.margin),
        val=blobs(18, seed=2, size=side),
        negatives=blobs(30, seed=3, level=215, size=side + 2 * recipe.margin),
        val_negatives=blobs(18, seed=4, level=215, size=side),
        margin=recipe.margin,
    )


def trained(recipe: TrainingRecipe, out: Path, series: str | None = None) -> TrainedRun:
    """Train with the first optimizer of a recipe."""
    runs = plan_runs(recipe, optimizers=[next(iter(recipe.optimizer))])
    (run,) = train_runs(runs, made_data(recipe), out, CPU, start=series)
    return run


def check_trial(name: str, folder: Path, epochs: int) -> None:
    """Try a recipe, from a network of its start if it has one, without which it is refused."""
    recipe = load_recipe(name)
    if recipe.method.name == "augmented-copies":
        recipe = recipe.with_method(spec_of(recipe.method.name, folder))
    recipe, series = recipe.with_epochs(epochs).as_trial(3, 4), None
    if recipe.start is not None:
        published = ":" in recipe.start
        if published:  # its network is large
            recipe = recipe.model_copy(update={"network": "torchvision:resnet18"})
        else:
            with raises(DataError, where="blobs", naming=recipe.start):
                trained(recipe, folder)
        base = load_recipe("openood-imagenet" if published else recipe.start)
        start = base.with_epochs(1).as_trial(1, 4)
        start = start.model_copy(update={"network": recipe.network})
        series = trained(start, folder).metadata["series"]
    metadata = load_checkpoint(trained(recipe, folder, series).folder).metadata
    assert metadata["recipe"]["trial"] == {"steps": 3, "batch": 4}
    assert metadata["series"].endswith(f"-e{epochs}-trial-3x4")
    assert metadata["epochs_trained"] == epochs
    assert (metadata["start"] is None) is (recipe.start is None)


LARGE = [name for name in recipe_names() if "imagenet" in name]
SHORT = [f"{name}/short" for name in LARGE if name.startswith("openset-")]


@pytest.mark.parametrize("name", [*sorted(set(recipe_names()) - set(LARGE)), *SHORT])
def test_every_recipe_takes_its_steps_and_says_that_it_is_a_trial(name: str, tmp_path: Path) -> None:
    check_trial(name, tmp_path, epochs=2)


@pytest.mark.sampled("oracle", one_in=10)
@pytest.mark.parametrize("name", LARGE)
def test_recipes_of_images_of_224_pixels_take_their_steps(name: str, tmp_path: Path) -> None:
    check_trial(name, tmp_path, epochs=1)


def test_a_trial_that_is_cut_off_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    recipe = load_recipe("kim-cifar-oe").with_epochs(3).as_trial(3, 4)
    whole, (run,) = trained(recipe, tmp_path / "whole"), plan_runs(recipe)
    interrupting = Interrupting()
    interrupting.left = 36 * 2 + 20  # ID images and outliers of two epochs, and some of the third
    with pytest.raises(KeyboardInterrupt):
        train_runs([run], made_data(recipe), tmp_path, CPU, progress=interrupting)
    state = load_state(tmp_path / "blobs" / run.name)
    assert state is not None
    assert len(state["history"]) == 2
    assert weights(trained(recipe, tmp_path)) == weights(whole)


def test_a_trial_is_validated_on_as_many_batches_and_is_no_whole_run(tmp_path: Path) -> None:
    whole = load_recipe("digits-demo").with_epochs(1)
    recipe, data = whole.as_trial(2, 4), made_data(whole)
    assert data.val is not None
    first = dataclasses.replace(data.val, pixels=data.val.pixels[:8], labels=data.val.labels[:8])
    rows = [
        train_runs(plan_runs(recipe), part, tmp_path / str(number), CPU)[0].metadata["selected"]
        for number, part in enumerate((data, dataclasses.replace(data, val=first)))
    ]
    assert rows[0] == rows[1]
    names = {plan_runs(r)[0].name for r in (whole, recipe, whole.as_trial(2, None), whole.as_trial(None, 4))}
    assert names == {
        f"digits-demo-tiny-cnn-e1{t}-s0" for t in ("", "-trial-2x4", "-trial-2x32", "-trial-allx4")
    }
    assert "trial" not in whole.as_dict()
    total = Totals()
    train_runs(plan_runs(recipe), data, tmp_path / "shown", CPU, progress=total)
    assert total.images == 8


@pytest.mark.parametrize("given", [{"steps": 0}, {"batch": "4"}, {"epochs": 1.5}, {"images": True}])
def test_other_numbers_than_whole_ones_from_1_are_refused(given: dict[str, Any], tmp_path: Path) -> None:
    with raises(DataError, where="train", naming=next(iter(given))):
        train_recipe("digits-demo", "digits", tmp_path, **given)


class Totals(Silent):
    """Keeps the number of images that a training announces."""

    images = 0

    def task(self, what: str, total: int):  # type: ignore[no-untyped-def]
        self.images = total
        return super().task(what, total)
