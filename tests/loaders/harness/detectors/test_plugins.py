"""Detectors and networks of users and of installed packages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders.harness import list_detectors, register
from loaders.harness.checkpoints import choices
from loaders.harness.checkpoints.networks import build_network
from loaders.harness.cli.main import app
from loaders.harness.detectors import get_detector, get_spec, registry
from wordnet_splits.base import user_code
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave both registries as they were."""
    registries: tuple[dict[str, Any], ...] = (registry.DETECTORS, choices.NETWORKS)
    before = [dict(table) for table in registries]
    yield
    for table, contents in zip(registries, before, strict=True):
        table.clear()
        table.update(contents)


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
    with pytest.raises(UnknownNameError, match="unknown detector 'half'"):
        get_spec("half")


@pytest.mark.parametrize("name", ["knn", "mcp"])
def test_a_built_in_detector_is_not_replaced(name: str) -> None:
    before = get_spec("knn")
    with pytest.raises(SplitsError, match=f"two detectors are called '{name}'"):
        register(name)(lambda data: data["logits"])
    define(1.0)
    with pytest.raises(SplitsError, match=f"two detectors are called '{name}'"):
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
from loaders.harness.checkpoints.choices import NetworkKind

def build(outputs, channels, size, width):
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * size[0] * size[1], width), nn.Linear(width, outputs))

flat = NetworkKind("two layers", 4, build, {"width": 5})
wrong = build
"""


def test_detectors_of_installed_packages_are_found_by_name(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "detector_plugin.py").write_text(DETECTOR)
    group = registry.PLUGINS.group
    points = [
        EntryPoint("of_package", "detector_plugin:of_package", group),
        EntryPoint("broken", "no_such_module:detector", group),
        EntryPoint("misnamed", "detector_plugin:of_package", group),
        EntryPoint("twice", "detector_plugin:of_package", group),
        EntryPoint("twice", "detector_plugin:other", group),
        EntryPoint("knn", "detector_plugin:of_package", group),
    ]
    monkeypatch.setattr(user_code, "entry_points", lambda group: points)
    with pytest.warns(UserWarning, match="the detector 'knn' of another package is ignored"):
        assert "of_package" in list_detectors()
    assert get_detector("of_package", scale=3).params == {"scale": 3.0}
    assert get_spec("knn").built_in
    assert app(["detectors", "*o*", "--json"], standalone_mode=False) == 0
    output = capsys.readouterr()
    names = [row["name"] for row in json.loads(output.out)["detectors"]]
    assert "of_package" in names
    assert "broken" not in names
    assert "left out: no_such_module:detector: the detector 'broken' cannot be loaded" in output.err
    for name, said in {
        "broken": "the detector 'broken' cannot be loaded: ModuleNotFoundError",
        "misnamed": "registers no detector of that name",
        "twice": "2 packages register the detector 'twice'",
    }.items():
        with pytest.raises(DataError, match=said):
            get_spec(name)


def test_networks_of_installed_packages_are_built_by_name(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "network_plugin.py").write_text(NETWORK)
    names = ("flat", "wrong")
    points = [EntryPoint(name, f"network_plugin:{name}", choices.PLUGINS.group) for name in names]
    monkeypatch.setattr(user_code, "entry_points", lambda group: points)
    assert set(names) <= set(choices.list_networks())
    assert build_network("flat", 3, size=(8, 8))[2].out_features == 3
    with pytest.raises(DataError, match="too small"):
        build_network("flat", 3, size=(2, 2))
    with pytest.raises(DataError, match="the network 'wrong' is not a NetworkKind"):
        build_network("wrong", 3)
    with pytest.raises(UnknownNameError, match="did you mean 'flat'"):
        build_network("flatt", 3)
