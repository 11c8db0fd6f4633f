"""Stored activations: no image goes through a network again, for a sweep or another benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from loaders.harness import evaluate
from loaders.harness.extraction.shards import ROWS
from wordnet_splits import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.table import CATALOGS

CANARY = (ROWS, 8, 2)
"""Images by which a store is checked for being this network's at each use of it, and those of its probes."""
KEY = ["source", "image_id", "view"]
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


def test_another_benchmark_reads_the_images_that_both_have(benchmark: Manifest, tmp_path: Path) -> None:
    def images(*manifests: Manifest) -> list[set[tuple[Any, ...]]]:
        return [
            {row for part in manifest.parts.values() for row in zip(*part().select(KEY).columns, strict=True)}
            for manifest in manifests
        ]

    network, digits = Counting(), load_manifest("digits")
    evaluate(network, benchmark, "energy,knn[k=5]", sweep=True, store=tmp_path)
    network.sizes.clear()
    found = evaluate(network, digits, "energy,knn[k=5]", store=tmp_path)
    forwarded = sum(size for size in network.sizes if size not in CANARY)
    known, wanted = images(benchmark, digits)
    assert forwarded == len(wanted - known) > 0
    due = evaluate(network, digits, "energy,knn[k=5]")
    for detector in ("energy", "knn[k=5]"):
        for group in ("digits-6-9", "gaussian", "uniform"):
            value, expected = (
                of.values("auroc", group=group, detector=detector)["value"].tolist() for of in (found, due)
            )
            assert value == pytest.approx(expected, abs=1e-4)
