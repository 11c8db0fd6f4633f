"""MC-dropout that replays what comes before the first draw gives what passes computed in full give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

from loaders.harness.extraction.forward import image_generator
from loaders.harness.models.loading import load_model
from loaders.harness.probes import Dropout, dropout
from loaders.harness.probes.dropout import Replay
from loaders.harness.training.networks import build_network
from tests.imported import Imported

models_vgg = Imported("torchvision.models.vgg")

PASSES, OUTPUTS, SIZE = 5, 4, 32


class Counted(nn.Conv2d):
    """A convolution that counts how often it ran."""

    runs = 0

    def forward(self, x: Any) -> Any:
        self.runs += 1
        return super().forward(x)


class Shared(nn.Module):
    """One in-place ReLU for all, a block that alters its input, results changed in place, a view of one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = Counted(3, 6, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.block = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(6, 6, 1))
        self.flatten, self.pool = nn.Flatten(2), nn.AdaptiveAvgPool2d(2)
        self.dropout = nn.Dropout(0.4)
        self.head = nn.Linear(24, OUTPUTS)

    def forward(self, x: Any) -> Any:
        x = self.conv(x)
        x = self.block(x) + x  # the second x is what the block has made of it
        y = self.conv(self.relu(x)[:, :3])
        y += x
        self.flatten(y).mul_(0.5)
        x = self.pool(self.relu(y - 0.1)).flatten(1)
        return self.head(self.relu(self.dropout(self.relu(x))))


def vgg() -> nn.Module:
    """torchvision's layers of VGG, few and narrow, and a classifier as its own."""
    features = models_vgg.make_layers([8, "M", 16, 16, "M"], batch_norm=True)
    features[0] = Counted(3, 8, 3, padding=1)
    classifier = [nn.Linear(64, 32), nn.ReLU(True), nn.Dropout(0.5)]
    classifier += [nn.Linear(32, 32), nn.ReLU(True), nn.Dropout(0.5), nn.Linear(32, OUTPUTS)]
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Sequential(*classifier))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "vgg": vgg,
    "shared": Shared,
    **{
        name: lambda name=name: build_network(name, OUTPUTS, size=(SIZE, SIZE))
        for name in ("resnet20-dropout", "small-cnn")
    },
}


@contextmanager
def in_full(module: nn.Module, drawing: Sequence[nn.Module]) -> Iterator[Replay]:
    yield Replay()


@pytest.mark.parametrize("name", NETWORKS)
def test_replayed_passes_give_what_full_ones_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    network = NETWORKS[name]().eval()
    model = load_model(network, device="cpu")
    x = torch.randn(3, 3, SIZE, SIZE)
    model.prepare(x)

    def found() -> Any:
        return Dropout(PASSES)(model, x, [image_generator("test", str(i)) for i in range(len(x))])

    replayed = found()
    assert not any("forward" in part.__dict__ for part in network.modules())
    monkeypatch.setattr(dropout, "replayed", in_full)
    for key, full in found().items():
        assert torch.equal(replayed[key], full), key
    assert float(full.std()) > 0


def test_what_comes_before_the_first_draw_runs_twice_for_any_number_of_passes() -> None:
    network = vgg().eval()
    model = load_model(network, device="cpu")
    x = torch.randn(2, 3, SIZE, SIZE)
    model.prepare(x)
    first = next(part for part in network.modules() if isinstance(part, Counted))
    before = first.runs
    Dropout(50)(model, x, [image_generator("test", str(i)) for i in range(2)])
    assert first.runs == before + 2
