"""A sweep over stored activations: no image of the benchmark goes through the network again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from loaders.harness import evaluate
from wordnet_splits import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.catalog.table import CATALOGS

CANARY = (8, 2)
"""Images by which a store is checked for being this network's at each use of it, and those of its probes."""
SWEPT = "energy,gen,knn,nnguide,react,vim,nci,klm,odin"


class Counting(nn.Module):
    """A network that keeps the size of every batch."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(192, 24), nn.ReLU())
        self.head = nn.Linear(24, 6)
        self.sizes: list[int] = []

    def forward(self, x: Any) -> Any:
        self.sizes.append(len(x))
        return self.head(self.features(x))


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """Digits of which one kind of noise is external, with validation images to choose values on."""
    folder = tmp_path_factory.mktemp("recipe")
    text = (CATALOGS.parent / "recipes" / "digits.toml").read_text(encoding="utf-8")
    head, mark, uniform = text.partition('name = "uniform"')
    uniform = uniform.replace('"far"', '"external"').replace(
        "test = { generate = 500 }", "val = { generate = 90 }"
    )
    text = head + mark + uniform
    (folder / "swept.toml").write_text(text.replace('name = "digits"', 'name = "swept"', 1), encoding="utf-8")
    return build_benchmark(folder / "swept.toml", out=folder / "built").manifest


def test_a_sweep_over_what_is_stored_costs_no_forward_pass(benchmark: Manifest, tmp_path: Path) -> None:
    network = Counting()

    def run(detectors: str, sweep: bool) -> tuple[int, Any]:
        network.sizes.clear()
        found = evaluate(network, benchmark, detectors, sweep=sweep, store=tmp_path)
        return sum(size for size in network.sizes if size not in CANARY), found

    images = sum(part().num_rows for part in benchmark.parts.values())
    first, _ = run("energy,knn[k=5]", sweep=True)
    assert first == images  # train, validation and test, each once
    again, found = run(SWEPT.replace(",odin", ""), sweep=True)
    assert again == 0
    assert network.sizes  # counted as ever: the canary
    tried = found.sweeps["detector"].to_pylist()
    assert set(tried) == {"energy", "gen", "knn", "nnguide", "react", "vim", "nci"}
    assert len(tried) > 40
    stepped, _ = run("odin", sweep=True)
    assert stepped > 0  # a probe that is not stored costs its passes, once
    assert run(SWEPT, sweep=True)[0] == 0


def test_a_plain_run_after_a_sweep_costs_none_either(benchmark: Manifest, tmp_path: Path) -> None:
    network = Counting()
    evaluate(network, benchmark, "energy,knn", sweep=True, store=tmp_path)
    network.sizes.clear()
    evaluate(network, benchmark, "preset:simple", store=tmp_path)
    assert set(network.sizes) <= set(CANARY)
