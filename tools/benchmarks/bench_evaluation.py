"""A whole evaluation of the detectors that need no further pass, against a bare pass over the images."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits
from torch.utils.data import DataLoader, Subset
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.models import resnet18

from loaders.harness import evaluate
from tools.benchmarks.bench_detectors import PEERS
from tools.benchmarks.rows import Row, cpu_seconds, real_data
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog

CLASSES, BATCH, ROUNDS = 100, 128, 2
LEAST_RATIO = 1 / 1.1
RECIPE = """
schema = 1
name = "tiny-files"
draw = "tiny-files"
[[group]]
name = "known"
role = "id"
source = "tiny-imagenet"
classes = {{ listed = {classes} }}
[group.images]
train = {{ from = "val", per_class = 30 }}
val = {{ from = "val", per_class = 5 }}
test = {{ from = "val", rest = true }}
[[group]]
name = "rest"
role = "near"
source = "tiny-imagenet"
classes = {{ rest = true }}
images = {{ test = {{ from = "val", per_class = 20 }} }}
"""


def run() -> list[Row]:
    """Measure reading, forward passes, fitting, scoring and metrics of all detectors together."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for each other on a busy machine take CPU time
    try:
        with real_data() as data, tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
            return [_measure(data / "tiny-imagenet-200", Path(folder))]
    finally:
        torch.set_num_threads(threads)


def _built(root: Path, folder: Path) -> Path:
    """Build a benchmark of the JPEG files of Tiny ImageNet's validation split."""
    recipe = folder / "tiny-files.toml"
    classes = [row.class_id for row in load_catalog("tiny-imagenet")][:CLASSES]
    recipe.write_text(RECIPE.format(classes=classes).replace("'", '"'), encoding="utf-8")
    built = build_benchmark(recipe, roots={"tiny-imagenet": root}, out=folder / "build", local=True).folder
    assert built is not None
    return built


def _measure(root: Path, folder: Path) -> Row:
    benchmark = _built(root, folder)
    manifest = load_manifest(benchmark)
    count = len(manifest.images())
    files = ImageFolder(str(root / "val"), transform=transforms.ToTensor())
    batches = DataLoader(Subset(files, range(count)), batch_size=BATCH)
    torch.manual_seed(0)
    network = resnet18(num_classes=CLASSES).eval()

    def whole() -> None:
        roots = {"tiny-imagenet": root}
        evaluate(network, benchmark, list(PEERS), roots=roots, device="cpu", batch_size=BATCH)

    def bare() -> None:
        with torch.no_grad():
            torch.cat([network(images) for images, _ in batches])

    times = [(cpu_seconds(whole), cpu_seconds(bare)) for _ in range(ROUNDS)]
    ours, peer = (min(column) for column in zip(*times, strict=True))
    return Row(
        f"whole evaluation, ResNet-18, {len(PEERS)} detectors, {count:,} JPEG files of 64 x 64, one thread",
        f"{ours:.1f} s of CPU",
        f"bare forward pass {peer:.1f} s",
        peer / ours,
        f">= {LEAST_RATIO:.2f} x",
        peer / ours >= LEAST_RATIO,
    )
