"""Detectors and networks of users and of installed packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders.harness import list_detectors, register
from loaders.harness.cli.main import app
from loaders.harness.detectors import get_detector, get_spec, registry
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError


@pytest.fixture(autouse=True)
def _restored(isolated: Callable[..., None]) -> None:
    """Leave both registries as they were."""
    from loaders.harness.training import choices

    isolated(registry.DETECTORS)
    isolated(choices.NETWORKS)


def define(factor: float, **options: Any) -> None:
    """Run the cell of a notebook that defines a detector."""

    @register("halved", needs=("logits",), **options)
    @dataclass(frozen=True)
    class Halved:
        scale: float = factor

        def score(self, state: Any, data: Any) -> Any:
            return self.scale * np.asarray(data["logits"]).max(axis=1)


def test_a_cell_that_runs_again_replaces_its_detector() -> None:
    define(0.5, aliases=("half",))
    with pytest.warns(UserWarning, match="the detector 'halved' replaces the earlier one") as caught:
        define(0.25)
    assert caught[0].filename == __file__
    assert get_detector("halved").params == {"scale": 0.25}
    with raises(UnknownNameError, naming="half"):
        get_spec("half")


@pytest.mark.parametrize("name", ["knn", "mcp"])
def test_a_built_in_detector_is_not_replaced(name: str) -> None:
    before = get_spec("knn")
    with pytest.raises(DataError):
        register(name)(lambda data: data["logits"])
    define(1.0)
    with pytest.raises(DataError):
        define(1.0, aliases=(name,))
    assert get_spec("knn") is before


DETECTOR = """
from loaders.harness import register

@register("of_package", needs=("logits",))
def of_package(data, *, scale=2.0):
    "Greatest logit."
    return data["logits"].max(axis=1)
"""
NETWORK = """
from torch import nn
from loaders.harness.training.choices import register_network

@register_network("flat", "two layers", smallest=4, width=5)
def build(outputs, channels, size, width):
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * size[0] * size[1], width), nn.Linear(width, outputs))
"""


def test_detectors_of_installed_packages_are_found_by_name(
    tmp_path: Path, monkeypatch: Any, capsys: Any, isolated: Any
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "detector_plugin.py").write_text(DETECTOR)
    points = [("of_package", "detector_plugin:of_package"), ("broken", "no_such_module:detector")]
    isolated(registry.DETECTORS, points)
    assert "of_package" in list_detectors()
    assert get_detector("of_package", scale=3).params == {"scale": 3.0}
    with pytest.warns(UserWarning, match="left out: no_such_module:detector"):
        assert app(["list", "detectors", "*o*", "--json"], standalone_mode=False) == 0
    names = {row["name"] for row in json.loads(capsys.readouterr().out)["detectors"]}
    assert "of_package" in names
    assert "broken" not in names
    with pytest.raises(DataError) as caught:
        get_spec("broken")
    assert caught.value.where == "no_such_module:detector"


def test_networks_of_installed_packages_are_built_by_name(
    tmp_path: Path, monkeypatch: Any, isolated: Any
) -> None:
    from loaders.harness.training import choices
    from loaders.harness.training.networks import build_network

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "network_plugin.py").write_text(NETWORK)
    isolated(choices.NETWORKS, [("flat", "network_plugin:build")])
    assert "flat" in choices.list_networks()
    assert build_network("flat", 3, size=(8, 8))[2].out_features == 3
    with pytest.raises(DataError):
        build_network("flat", 3, size=(2, 2))
    with pytest.raises(UnknownNameError) as caught:
        build_network("flatt", 3)
    assert "flat" in caught.value.near
