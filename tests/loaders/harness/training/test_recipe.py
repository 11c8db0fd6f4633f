from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import loaders
from loaders.harness.training import fitting
from loaders.harness.training.choices import NETWORKS
from loaders.harness.training.methods.classification import Softmax
from loaders.harness.training.methods.registry import get_method
from loaders.harness.training.recipe import Resizing, Run, load_recipe, recipe_names
from tests.raising import raises
from wordnet_splits.base.errors import DataError, RecipeError, SplitsError, UnknownNameError


@dataclass(frozen=True)
class Halved(Softmax):
    factor: float = 0.1 + 0.2  # more digits than %g writes


SMALL: dict[str, Any] = {"recipe": "digits-demo", "epochs": 1, "images": 60, "device": "cpu"}

RECIPE = """
schema = 1
name = "mine"
title = "mine"
network = "tiny-cnn"
method = { name = "softmax" }
epochs = 4
batch = 16
augment = "none"
schedule = { kind = "constant" }
select = "last"
optimizer.sgd = { rule = "sgd", lr = 0.1 }
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", recipe_names())
def test_shipped_recipes_are_valid_and_named_after_their_file(name: str) -> None:
    assert load_recipe(name).name == name


def test_kim_trains_as_the_paper_says() -> None:
    recipe = load_recipe("kim-cifar")
    assert (recipe.epochs, recipe.batch, recipe.augment, recipe.select) == (200, 128, "crop4-flip", "last")
    settings = {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}
    assert recipe.optimizer["sgd"].settings == settings
    assert getattr(recipe.schedule, "milestones", None) == (120, 160)
    for word in ("ResNet18", "Nesterov"):
        assert word in " ".join(recipe.differs)


def test_palechor_trains_as_the_paper_says() -> None:
    for name, method in (("softmax", "softmax"), ("bg", "background"), ("eos", "entropic-open-set")):
        recipe = load_recipe(f"openset-imagenet-{name}")
        assert (recipe.epochs, recipe.batch, recipe.select, recipe.seed) == (120, 64, "gamma", 42)
        assert (recipe.method.name, recipe.network, recipe.margin) == (method, "resnet50-openset", 16)
        assert recipe.optimizer["adam"].settings == {"lr": 1e-3}
        assert recipe.schedule.factor(119, 1, 120) == 1
        short = load_recipe(f"openset-imagenet-{name}/short")
        assert (short.resize, short.select) == (Resizing(short=64, side=64), "gamma")
        assert set(recipe.differs) < set(short.differs)


def test_kim_trains_on_imagenet_as_the_paper_says() -> None:
    settings = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}
    for name in ("", "-crl", "-edl", "-augmix", "-oe"):
        recipe = load_recipe(f"kim-imagenet{name}")
        assert (recipe.epochs, recipe.batch, recipe.augment) == (90, 256, "crop-resize-flip")
        assert (recipe.network, recipe.optimizer["sgd"].settings) == ("torchvision:resnet152", settings)
        assert getattr(recipe.schedule, "milestones", None) == (30, 60)
    energy = load_recipe("kim-imagenet-energy")
    assert energy.method.parameters == {"m_in": -15, "m_out": -7, "weight": 0.1}
    assert (energy.epochs, energy.negatives_per_known, energy.start) == (10, 2, "kim-imagenet")


def test_kim_trains_the_methods_of_table_6_as_the_network_of_the_table() -> None:
    base, keys = load_recipe("kim-cifar").as_dict(), ("network", "epochs", "batch", "schedule", "optimizer")
    for name in ("crl", "edl", "augmix", "oe"):
        recipe = load_recipe(f"kim-cifar-{name}").as_dict()
        assert {key: recipe[key] for key in keys} == {key: base[key] for key in keys}


def test_a_shorter_schedule_keeps_its_fractions_and_says_so() -> None:
    recipe = load_recipe("kim-cifar").with_epochs(25)
    assert getattr(recipe.schedule, "milestones", None) == (15, 20)
    note = "25 epochs in place of 200, the rate's steps at 15 and 20 in place of 120 and 160"
    assert recipe.differs == (*load_recipe("kim-cifar").differs, note)
    assert recipe.as_dict()["differs"] == list(recipe.differs)
    assert load_recipe("kim-cifar").with_epochs(200) == load_recipe("kim-cifar")


def test_fewer_images_are_said_and_models_of_all_images_keep_their_recipe() -> None:
    whole = load_recipe("kim-cifar")
    recipe = whole.with_images(5000)
    note = "5,000 of the ID train images, equally many of each class, by the benchmark's own draw"
    assert recipe.differs == (*whole.differs, note)
    assert recipe.as_dict()["images"] == 5000
    assert "images" not in whole.as_dict()  # what models of all images have in their model.json
    run = Run(recipe.with_epochs(8), "resnet20", "sgd", 3)
    assert run.name == "kim-cifar-resnet20-e8-n5000-s3"


def test_extends_replaces_keys_one_by_one(tmp_path: Path) -> None:
    path = written(tmp_path, 'extends = "kim-cifar"\nname = "mine"\nbatch = 64\n')
    mine, kim = load_recipe(path), load_recipe("kim-cifar")
    assert (mine.name, mine.batch) == ("mine", 64)
    assert mine.optimizer == kim.optimizer


def test_a_recipe_file_of_ones_own(tmp_path: Path) -> None:
    assert load_recipe(written(tmp_path, RECIPE)).epochs == 4


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("batch = 16", "bach = 16", ()),
        ("batch = 16", "batch = 16\nepoch = 3", ("epoch", "epochs")),
        ("tiny-cnn", "tiny-cn", ("tiny-cn", "tiny-cnn")),
        ('rule = "sgd"', 'rule = "sdg"', ("sdg", "sgd")),
        ('"constant"', '"steep"', "schedule"),
        ("epochs = 4", "epochs = 0", ()),
        ('select = "last"', 'select = "last"\npatience = 3', ()),
        ('augment = "none"', 'augment = "crop-flip"', ()),
        ("batch = 16", "batch = 16\nresize = { short = 32, side = 40 }", ()),
        ("schema = 1", "schema = 2", "schema"),
        ("schema = 1", "schema = = 1", ()),
    ],
)
def test_mistakes_are_named_with_the_file(tmp_path: Path, old: str, new: str, named: object) -> None:
    assert old in RECIPE
    with raises(RecipeError, where="mine.toml", naming=named) as error:
        load_recipe(written(tmp_path, RECIPE.replace(old, new)))
    assert "mine.toml" in str(error.value)


def test_unknown_recipes_and_files(tmp_path: Path) -> None:
    with raises(UnknownNameError, near="kim-cifar"):
        load_recipe("kim-cifr")
    with raises(RecipeError, where="none.toml"):
        load_recipe(str(tmp_path / "none.toml"))
    path = written(tmp_path, f'extends = "{tmp_path / "mine.toml"}"\nname = "mine"\n')
    with raises(RecipeError, where="mine.toml"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('"softmax"', '"softmx"', "training recipe mine"),
        (
            '"softmax"',
            '"energy", m_inn = 3',
            "training recipe mine: energy",
        ),
        ('"softmax"', '"energy", m_in = "x"', "training recipe mine: energy: m_in"),
    ],
)
def test_mistakes_in_the_method_are_named_with_the_recipe(
    tmp_path: Path, old: str, new: str, where: str
) -> None:
    with raises(SplitsError, where=where) as error:
        load_recipe(written(tmp_path, RECIPE.replace(old, new))).build_method()
    assert "training recipe mine" in str(error.value)


def test_recipes_extend_recipes_that_extend(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('extends = "kim-cifar-oe"\nname = "base"\nbatch = 8\n')
    path = written(tmp_path, f'extends = "{tmp_path / "base.toml"}"\nname = "mine"\nepochs = 3\n')
    recipe = load_recipe(path)
    assert (recipe.name, recipe.batch, recipe.epochs) == ("mine", 8, 3)
    assert recipe.method == load_recipe("kim-cifar-oe").method


def test_a_variant_has_the_method_of_its_recipe_and_the_rest_of_the_base() -> None:
    short, base = load_recipe("cider/short"), load_recipe("openood-short")
    assert (short.name, short.method) == ("cider-short", load_recipe("cider").method)
    assert (short.epochs, short.optimizer) == (base.epochs, base.optimizer)
    assert set(base.differs) < set(short.differs)


def test_a_named_network_is_trained_and_evaluated() -> None:
    network = loaders.train("tiny-cnn", "digits", method="cider", **SMALL)
    results = loaders.evaluate(network, "digits", "msp", groups=["uniform"])
    assert results.values("auroc", group="uniform")["value"].tolist()
    assert network.classes == tuple("012345") or len(network.classes) == 6


def test_a_module_is_copied_trained_from_its_weights_and_evaluated() -> None:
    names = set(NETWORKS)
    module = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    before = module[1].weight.detach().clone()
    network: Any = loaders.train(module, "digits", method="confbranch", **SMALL)
    assert torch.equal(module[1].weight, before)
    moved = (network.network[1].weight - before).norm() / before.norm()
    assert 0 < float(moved) < 0.5  # trained further, not anew
    results = loaders.evaluate(network, "digits", "output", groups=["uniform"])
    assert results.values("auroc", group="uniform")["value"].tolist()
    assert "Model Sequential: weights as given in Python" in str(results)
    assert repr(network).startswith("Sequential(")
    assert set(NETWORKS) == names


@pytest.mark.parametrize("text", ["softmax", "logitnorm[tau=0.125]", "confbranch", f"{__name__}:Halved"])
def test_a_method_is_an_instance_or_its_text(text: str) -> None:
    recipe, instance = load_recipe("digits-demo"), get_method(text)
    assert recipe.with_method(instance).build_method() == recipe.with_method(text).build_method()
    assert (recipe.with_method(instance) is recipe) == (text == "softmax")


def test_a_method_that_no_name_finds_is_refused() -> None:
    @dataclass(frozen=True)
    class Local(Halved):
        pass

    with raises(DataError, where="Local"):
        load_recipe("digits-demo").with_method(Local())


def test_progress_shows_the_recipe_and_the_costs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fitting, "MIN_ANNOUNCED_SECONDS", 0.0)
    for progress in (None, True):
        loaders.train("tiny-cnn", "digits", **{**SMALL, "epochs": 12}, progress=progress)
        lines = capsys.readouterr().err.splitlines()
        assert bool(lines) is bool(progress)
    assert lines[0].startswith("digits-demo: ")
    assert lines[-1] == "forward, backward: images per ID image; plain cross-entropy has 1 and 1"


def test_a_network_is_evaluated_in_the_geometry_that_it_was_trained_in(tmp_path: Path) -> None:
    text = RECIPE.replace('"none"', '"crop-flip"\nresize = { short = 12, side = 10 }\nseed = 5')
    network: Any = loaders.train("tiny-cnn", "digits", **{**SMALL, "recipe": written(tmp_path, text)})
    assert network.metadata["seed"] == 5
    assert network.metadata["network"]["size"] == [10, 10]
    results = loaders.evaluate(network, "digits", "msp", groups=["uniform"])
    assert "transform evaluation resize-12-crop-10, mean 0 0 0" in " ".join(str(results).split())


def test_refusals(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(192, 7))
    with raises(DataError, where="--network", naming=("2", "7", "6")):
        loaders.train(module, "digits", **SMALL)
    with raises(DataError, where="network", naming="nn.Module"):
        loaders.train(lambda: module, "digits", **SMALL)  # type: ignore[arg-type]
    for option in ("epochs", "images"):
        with raises(DataError, where="train", naming=option):
            loaders.train("tiny-cnn", "digits", **{**SMALL, option: 0})
    for several in ({"seeds": [0]}, {"sweep": {"tau": [1]}}, {"optimizers": ["adam", "sgd"]}):
        with raises(DataError, where=next(iter(several))):
            loaders.train("tiny-cnn", "digits", **{**SMALL, **several})
    with raises(DataError, where="out"):
        loaders.train(module, "digits", out=tmp_path, **SMALL)
    with raises(UnknownNameError, where="digits-demo-logitnrm", near="logitnorm"):
        loaders.train("tiny-cnn", "digits", method="logitnrm", **SMALL)


def test_names_tell_signs_and_fractions_apart() -> None:
    recipe = load_recipe("kim-cifar-energy")
    names = {
        recipe.with_method(f"energy[m_in={value}]").name for value in ("-23", "23", "2.3", ".23", "-.23")
    }
    assert len(names) == 5
