"""A whole evaluation of the detectors that need no further pass, against a bare forward pass over images."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.models import resnet18

from loaders.harness import evaluate
from tools.benchmarks.bench_detectors import PEERS
from tools.benchmarks.rows import Row, compare, real_data

CLASSES, BATCH, ROUNDS = 100, 128, 3
SIZES = {"id/train": 2000, "id/val": 500, "id": 1000, "near": 1000, "far": 1000}
LEAST_RATIO = 1 / 1.1


class _Numbered(Dataset[Any]):
    """The images of a folder, labelled in turn: time does not depend on the labels."""

    def __init__(self, files: ImageFolder, rows: range) -> None:
        self.files, self.rows = files, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.files[self.rows[index]][0], index % CLASSES


def _sets(data: Path) -> dict[str, Any]:
    """Return ID images to fit and to score, and OOD images: JPEG files of Tiny ImageNet val."""
    files = ImageFolder(str(data / "tiny-imagenet-200" / "val"), transform=transforms.ToTensor())
    ends = accumulate(SIZES.values(), initial=0)
    rows = dict(zip(SIZES, (range(*pair) for pair in pairwise(ends)), strict=True))
    return {name: DataLoader(_Numbered(files, rows[name]), batch_size=BATCH) for name in SIZES}


def run() -> list[Row]:
    """Measure reading, forward passes, fitting, scoring and metrics of all detectors together."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with real_data() as data:
            return [_measure(_sets(data))]
    finally:
        torch.set_num_threads(threads)


def _measure(sets: Mapping[str, Any]) -> Row:
    torch.manual_seed(0)
    network = resnet18(num_classes=CLASSES).eval()
    count = sum(len(loader.dataset) for loader in sets.values())

    def bare() -> None:
        with torch.no_grad():
            for loader in sets.values():
                torch.cat([network(images) for images, _ in loader])

    def whole() -> None:
        evaluate(network, sets=sets, detectors=list(PEERS), classes=CLASSES, device="cpu", batch_size=BATCH)

    pair = compare(whole, bare, ROUNDS, max_seconds=120)
    return Row(
        f"whole evaluation, ResNet-18, {len(PEERS)} detectors, {count:,} JPEG files of 64 x 64, one thread",
        f"{pair.ours:.1f} s",
        f"bare forward pass {pair.peer:.1f} s",
        pair.ratio,
        f">= {LEAST_RATIO:.2f} x",
        pair.ratio >= LEAST_RATIO,
    )
