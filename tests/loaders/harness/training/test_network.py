"""`loaders.train`: one network, ready for `evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import loaders
from loaders.harness.training import fitting
from loaders.harness.training.choices import NETWORKS
from tests.raising import raises
from wordnet_splits.base.errors import DataError, RecipeError, UnknownNameError

SMALL: dict[str, Any] = {"recipe": "digits-demo", "epochs": 1, "images": 60, "device": "cpu"}


def test_a_named_network_is_trained_and_evaluated() -> None:
    network = loaders.train("tiny-cnn", "digits", method="cider", **SMALL)
    results = loaders.evaluate(network, "digits", "msp", groups=["uniform"])
    assert results.values("auroc", group="uniform")
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
    assert results.values("auroc", group="uniform")
    assert "Model Sequential: weights as given in Python" in str(results)
    assert set(NETWORKS) == names


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


def test_refusals(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(192, 7))
    with raises(DataError, where="--network", naming=("2", "7", "6")):
        loaders.train(module, "digits", **SMALL)
    with raises(DataError, where="network", naming="nn.Module"):
        loaders.train(lambda: module, "digits", **SMALL)  # type: ignore[arg-type]
    for option in ("epochs", "images"):
        with raises(RecipeError, where="digits-demo", naming=option):
            loaders.train("tiny-cnn", "digits", **{**SMALL, option: 0})
    with raises(DataError, where="out"):
        loaders.train(module, "digits", out=tmp_path, **SMALL)
    with raises(UnknownNameError, where="digits-demo-logitnrm", near="logitnorm"):
        loaders.train("tiny-cnn", "digits", method="logitnrm", **SMALL)
