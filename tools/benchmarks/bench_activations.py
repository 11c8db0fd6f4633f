"""Extraction of activations against the bare forward loop on tensors in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import torch
from torch import nn
from torchvision.models import resnet18

from loaders.harness.extraction.activations import extract
from loaders.harness.extraction.outputs import Store
from loaders.harness.models.loading import load_model
from loaders.harness.models.transforms import evaluation_transform
from tools.benchmarks.rows import Row, compare
from wordnet_splits.benchmark.manifest.tables import IMAGE_SCHEMA

ROUNDS = 3
LEAST_RATIO = 0.93
BATCH = 128
NORMALISED = evaluation_transform("none", (0.507, 0.487, 0.441), (0.267, 0.256, 0.276))


class _Block(nn.Module):
    """Two 3 x 3 convolutions with a shortcut."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width_in, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        same = stride == 1 and width_in == width
        self.shortcut = nn.Identity() if same else nn.Conv2d(width_in, width, 1, stride, bias=False)

    def forward(self, x: Any) -> Any:
        return (self.body(x) + self.shortcut(x)).relu()


def small_resnet(classes: int = 40) -> Any:
    """A ResNet-20 of 3 stages, for images of 32 x 32."""
    torch.manual_seed(0)
    blocks = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    width_in = 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for number in range(3):
            blocks.append(_Block(width_in, width, stride if number == 0 else 1))
            width_in = width
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)).eval()


class _Images:
    """Random uint8 images in memory, read as a dataset's are."""

    transform = batch_transform = None

    def __init__(self, n: int, side: int) -> None:
        self.pixels = torch.randint(0, 256, (n, 3, side, side), dtype=torch.uint8)
        row = {"source": "random", "class_id": "all", "role": "far", "group": "random", "split": "test"}
        rows = [{**row, "image_id": str(i), "label": -1, "view": "raw", "digest": None} for i in range(n)]
        self.table = pa.Table.from_pylist(rows, schema=IMAGE_SCHEMA)

    def __getitems__(self, rows: list[int]) -> Any:
        return SimpleNamespace(images=self.pixels[rows])


def run() -> list[Row]:
    """Measure the whole of an extraction: reading, normalising, forward, checks, writing, reopening."""
    threads = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # on a busy machine, threads of a product wait for each other and distort the time
    try:
        torch.manual_seed(0)
        return [
            _measure("ResNet-20", small_resnet(), images=2048, side=32),
            _measure("ResNet-18", resnet18(num_classes=40).eval(), images=1024, side=64),
        ]
    finally:
        torch.set_num_threads(threads)


def _measure(name: str, network: Any, *, images: int, side: int) -> Row:
    data = _Images(images, side)
    model = load_model(network)
    assert NORMALISED.batch is not None
    ready = [NORMALISED.batch(x).to(model.device) for x in data.pixels.split(BATCH)]

    def bare() -> None:
        with torch.no_grad():
            outputs = [network(x) for x in ready]
        torch.cat(outputs).cpu()

    def extract_all() -> None:
        with tempfile.TemporaryDirectory() as folder:
            extract(model, data, Store(Path(folder)), batch_size=BATCH, transform=NORMALISED)

    bare()
    pair = compare(extract_all, bare, ROUNDS)
    bare_time, extract_time, ratio = pair.peer, pair.ours, pair.ratio
    return Row(
        f"extraction, {name}, {images:,} images of {side} x {side}, {model.device.type}, one thread",
        f"{images / extract_time:,.0f} images/s",
        f"bare forward {images / bare_time:,.0f} images/s",
        ratio,
        f">= {LEAST_RATIO} x",
        ratio >= LEAST_RATIO,
    )
