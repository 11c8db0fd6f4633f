from __future__ import annotations

import pytest
import torch

from loaders.harness.models.transforms import Normalise
from loaders.harness.training.data import Images, TrainingData


def blobs(n: int, seed: int, level: int | None = None, size: int = 8) -> Images:
    """Noisy squares whose brightness is their class (0, 1, 2), or all of one brightness with label -1."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3 if level is None else torch.full((n,), -1)
    base = (30 + 60 * labels if level is None else torch.full((n,), level)).view(n, 1, 1, 1)
    noise = torch.randint(0, 40, (n, 3, size, size), generator=generator)
    return Images((base + noise).to(torch.uint8), labels)


@pytest.fixture
def data() -> TrainingData:
    """Three classes of 24 colour images of 8 x 8, and 40 outliers."""
    return TrainingData(
        benchmark={"name": "blobs", "version": 1, "fingerprint": "f" * 64, "parts": []},
        classes=("dark", "middle", "light"),
        normalise=Normalise((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
        train=blobs(72, seed=1),
        val=blobs(30, seed=2),
        negatives=blobs(40, seed=3, level=215),
        val_negatives=blobs(20, seed=4, level=215),
    )
