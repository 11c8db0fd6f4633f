"""The proposed batch size: a function of network, inputs and device, which stored shards keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from loaders import UnknownDetectionSet
from loaders.harness.extraction import batch_size
from loaders.harness.extraction.activations import extract, extract_together
from loaders.harness.extraction.batch_size import largest_batch, largest_output, propose_batch_size
from loaders.harness.extraction.outputs import Store
from loaders.harness.models.loading import load_model

from ..models.networks import CLASSES, small_network
from .stored import SHARD, contents, folder_of

MiB = 1 << 20


def wide_network() -> Any:
    """A network whose convolution gives 64 x 8 x 8 floats (16 KiB) for an image of digits."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.Flatten(), nn.Linear(4096, CLASSES)).eval()


def sizes(store: Path) -> list[int]:
    records = sorted(store.rglob("forward/*.json"))
    return [json.loads(path.read_text())["settings"]["batch_size"] for path in records]


@pytest.mark.parametrize(
    ("image_bytes", "limit", "threads", "expected"),
    [
        (64 * 112 * 112 * 4, 25 * MiB, 1, 8),  # ResNet's first convolution, 224 pixels: 3.06 MiB
        (96 * 112 * 112 * 4, 25 * MiB, 1, 4),  # MobileNetV2
        (96 * 112 * 112 * 4, 25 * MiB, 24, 16),  # every thread has an image
        (64 * 32 * 32 * 4, 25 * MiB, 1, 64),  # ResNet's for CIFAR
        (64, 25 * MiB, 1, 128),
        (0, 25 * MiB, 1, 128),
        (100 * MiB, 25 * MiB, 1, 1),
        (3 * MiB, 1 << 33, 1, 128),
    ],
)
def test_the_largest_power_of_two_within_the_limit(
    image_bytes: int, limit: int, threads: int, expected: int
) -> None:
    assert largest_batch(image_bytes, limit, threads) == expected


def test_the_largest_layer_output_is_found_or_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(16, 3, 64, 64)
    seen = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = load_model(nn.Sequential(seen, nn.Linear(64, 3)).eval(), device="cpu")
    assert largest_output(model, x) == 64 * 64 * 64 * 4
    assert not any(part._forward_hooks for part in model.require_module().modules())
    function = load_model(lambda images: images.mean((2, 3)), device="cpu")
    assert largest_output(function, x) == 64 * 32 * 32 * 4
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert [propose_batch_size(of, x) for of in (model, function)] == [16, 64]


def test_stored_shards_keep_their_batch_size_and_an_explicit_one_wins(
    near: UnknownDetectionSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    model, store = load_model(wide_network(), device="cpu"), Store(tmp_path / "a", SHARD)
    monkeypatch.setattr(batch_size, "LARGEST_TENSOR", 32 * 16 * 1024)
    extract(model, near, store)
    whole = contents(store.root)
    assert sizes(store.root) == [32] * 6
    record = folder_of(store.root) / "forward" / "00003.json"
    record.unlink()  # as if it had been interrupted, and another machine goes on
    monkeypatch.setattr(batch_size, "LARGEST_TENSOR", 8 * 16 * 1024)
    assert extract(model, near, store).notes == ()
    assert contents(store.root) == whole
    extract(model, UnknownDetectionSet("digits", role="id"), store)
    assert set(sizes(store.root)) == {32}
    elsewhere = Store(tmp_path / "b", SHARD)
    extract(model, near, elsewhere)
    assert set(sizes(elsewhere.root)) == {8}
    record.unlink()
    noted = extract(model, near, store, batch_size=64).notes
    assert len(noted) == 1
    assert "batch_size: 32, 64" in noted[0]


def test_models_of_different_sizes_give_the_bytes_of_each_alone(
    near: UnknownDetectionSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(batch_size, "LARGEST_TENSOR", 16 * 16 * 1024)
    together, apart = Store(tmp_path / "together", SHARD), Store(tmp_path / "apart", SHARD)
    models = [load_model(network, device="cpu") for network in (wide_network(), small_network())]
    extract_together([(model, ()) for model in models], near, together)
    for model in models:
        extract(model, near, apart)
    assert contents(together.root) == contents(apart.root)
    assert set(sizes(together.root)) == {16, 128}
