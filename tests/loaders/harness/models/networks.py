"""Small networks that tests put through the harness."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

FEATURES, CLASSES = 32, 6


def small_network(classes: int = CLASSES, seed: int = 0) -> Any:
    """Return an untrained network for digits; equal seeds give equal weights."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(FEATURES, classes),
    )
    network[1].running_mean += 0.1
    network[1].bias.data += 0.3
    return network


class Wrapped(nn.Module):
    """A network behind something else: what happens before each forward pass."""

    def __init__(self, network: Any = None) -> None:
        super().__init__()
        self.network = network or small_network()
        self.seen = 0

    def forward(self, x: Any) -> Any:
        self.seen += len(x)
        return self.network(x)


class Greedy(Wrapped):
    """Runs out of memory above 16 images."""

    def forward(self, x: Any) -> Any:
        if len(x) > 16:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return super().forward(x)


class Scaled(Wrapped):
    """Computes what its weights do not say: logits or features times a number."""

    def __init__(self, logits: float = 1.0, features: float = 1.0) -> None:
        super().__init__()
        self.network[6].bias.data.zero_()
        self.by, self.inner = logits, features

    def forward(self, x: Any) -> Any:
        features = self.network[:5](x) * self.inner
        return self.network[5:](features * self.by)


class Poisoned(Wrapped):
    """Gives NaN for images whose pixels sum to one number."""

    def __init__(self, total: float) -> None:
        super().__init__()
        self.total = total

    def forward(self, x: Any) -> Any:
        bad = (x.double().sum((1, 2, 3)) - self.total).abs() < 1e-6
        return super().forward(torch.where(bad[:, None, None, None], torch.nan, x))
