"""Several models on photographs that are decoded once, or once for each; shares of an array job."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from PIL import Image
from torch import nn
from torchvision.models import mobilenet_v3_small

from loaders.harness.evaluation.model_evaluation import EvaluationOptions, extract_share
from loaders.harness.extraction.activations import extract, extract_together
from loaders.harness.extraction.array_jobs import merge_parts
from loaders.harness.extraction.outputs import Store
from loaders.harness.models.loading import Models, load_model
from loaders.harness.models.model import Model
from loaders.harness.models.transforms import evaluation_transform, to_uint8
from tools.benchmarks.bench_activations import small_resnet
from tools.benchmarks.rows import Row, cpu_seconds, real_data
from wordnet_splits.benchmark.manifest.tables import IMAGE_SCHEMA
from wordnet_splits.benchmark.resolve import load_manifest

MODELS, IMAGES, BATCH, ROUNDS = 4, 200, 50, 1
SHARES, SHARD_ROWS = 8, 128
TRANSFORM = evaluation_transform("resize-256-crop-224", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class Photographs:
    """JPEG files, read as a dataset's are."""

    transform = batch_transform = None

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        row = {"source": "photographs", "class_id": "all", "role": "far", "group": "photographs"}
        columns = {"split": "test", "label": -1, "view": "raw", "digest": None}
        rows = [{**row, **columns, "image_id": path.stem} for path in paths]
        self.table = pa.Table.from_pylist(rows, schema=IMAGE_SCHEMA)

    def __getitems__(self, rows: list[int]) -> list[tuple[Any, int]]:
        images: list[tuple[Any, int]] = []
        for row in rows:
            with Image.open(self.paths[row]) as image:
                transform: Any = self.transform
                images.append((to_uint8(transform(image.convert("RGB"))), -1))
        return images


def load_models(network: Callable[[], Any]) -> list[Model]:
    """Return networks of different weights."""
    models = []
    for seed in range(MODELS):
        torch.manual_seed(seed)
        models.append(load_model(network(), device="cpu", preprocess=TRANSFORM))
    return models


def linear() -> Any:
    """Return a classifier of negligible cost, as networks on a GPU take little time."""
    return nn.Sequential(nn.AvgPool2d(28), nn.Flatten(), nn.Linear(192, 40))


def run() -> list[Row]:
    """Measure extractions, reading and writing included, and an array job."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with real_data() as folder:
            data = Photographs(sorted((folder / "imagenet" / "train").glob("*/*.JPEG"))[:IMAGES])
            return [
                _together("MobileNets", load_models(lambda: mobilenet_v3_small(num_classes=40)), data, 1.2),
                _together("linear classifiers", load_models(linear), data, 2.5),
                _array_job(),
            ]
    finally:
        torch.set_num_threads(threads)


def _together(kind: str, models: Sequence[Model], data: Photographs, least: float) -> Row:
    """Compare CPU time: images are read on a thread of their own, which a second core may hide."""

    def together() -> None:
        with tempfile.TemporaryDirectory() as folder:
            extract_together([(model, ()) for model in models], data, Store(Path(folder)), batch_size=BATCH)

    def one_by_one() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for model in models:
                extract(model, data, Store(Path(folder)), batch_size=BATCH)

    together()  # warms up
    times = [(cpu_seconds(together), cpu_seconds(one_by_one)) for _ in range(ROUNDS)]
    ours, peer = (1000 * min(column) / len(data.paths) for column in zip(*times, strict=True))
    return Row(
        f"{len(models)} {kind} on {len(data.paths)} photographs, decoded once",
        f"{ours:.1f} ms of CPU an image",
        f"decoded for each {peer:.1f} ms",
        peer / ours,
        f">= {least:g} x",
        peer / ours >= least,
    )


def _array_job() -> Row:
    """All shares of an array job, one after the other, and their merge, against a single share."""
    models = Models({"linear": [load_model(small_resnet(6), device="cpu")]})
    manifest, options = load_manifest("digits"), EvaluationOptions(detectors="msp,knn[k=5]")

    def computed(shares: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder), SHARD_ROWS)

            def work() -> None:
                for index in range(1, shares + 1):
                    extract_share(models, manifest, options, store, index, shares)
                merge_parts(store)

            return cpu_seconds(work)

    computed(1)
    times = [(computed(SHARES), computed(1)) for _ in range(ROUNDS)]
    ours, peer = (min(column) for column in zip(*times, strict=True))
    return Row(
        f"{SHARES} shares of an array job and their merge, 2,677 digits",
        f"{ours:.1f} s of CPU",
        f"one share {peer:.1f} s",
        peer / ours,
        ">= 0.5 x",
        peer / ours >= 0.5,
    )
