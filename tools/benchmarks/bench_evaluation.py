"""A whole evaluation of the detectors that need no further pass, against a bare pass over the images."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from pytorch_ood import detector as pytorch_ood
from pytorch_ood.metrics import OODMetrics
from threadpoolctl import threadpool_limits
from torch.utils.data import DataLoader, Dataset, Subset
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
FEW = ("msp", "mls", "entropy", "energy", "gen", "knn", "mahalanobis")
"""Detectors that are also measured in pytorch-ood's loop: a pass over the images for each."""
TRAIN, TEST, KNOWN = 3000, 3500, 1500
"""Images of the loop, as many as of the benchmark: training, test, and ID test images."""
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
            return _measure(data / "tiny-imagenet-200", Path(folder))
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


def _measure(root: Path, folder: Path) -> list[Row]:
    benchmark = _built(root, folder)
    manifest = load_manifest(benchmark)
    count = len(manifest.images())
    files = ImageFolder(str(root / "val"), transform=transforms.ToTensor())
    batches = DataLoader(Subset(files, range(count)), batch_size=BATCH)
    torch.manual_seed(0)
    network = resnet18(num_classes=CLASSES).eval()

    def whole(detectors: Sequence[str] = tuple(PEERS)) -> None:
        roots = {"tiny-imagenet": root}
        evaluate(network, benchmark, list(detectors), roots=roots, device="cpu", batch_size=BATCH)

    def bare() -> None:
        with torch.no_grad():
            torch.cat([network(images) for images, _ in batches])

    times = [(cpu_seconds(whole), cpu_seconds(bare)) for _ in range(ROUNDS)]
    ours, peer = (min(column) for column in zip(*times, strict=True))
    few = min(cpu_seconds(partial(whole, FEW)) for _ in range(ROUNDS))
    loop = cpu_seconds(partial(_loop, network, files))
    images = f"{count:,} JPEG files of 64 x 64, one thread"
    target = f">= {LEAST_RATIO:.2f} x"
    return [
        Row(
            f"whole evaluation, ResNet-18, {len(detectors)} detectors, {images}",
            f"{seconds:.1f} s of CPU",
            f"bare forward pass {peer:.1f} s",
            peer / seconds,
            target,
            peer / seconds >= LEAST_RATIO,
        )
        for detectors, seconds in ((PEERS, ours), (FEW, few))
    ] + [
        Row(
            f"whole evaluation, {len(FEW)} detectors; pytorch-ood passes the images for each",
            f"{few:.1f} s of CPU",
            f"pytorch-ood's loop {loop:.1f} s",
            loop / few,
            "-",
            True,
        )
    ]


def _loop(network: torch.nn.Module, files: ImageFolder) -> None:
    """Fit and score detectors as pytorch-ood's examples do: the images pass through the network for each."""
    encoder = torch.nn.Sequential(*list(network.children())[:-1], torch.nn.Flatten())
    on_logits = (pytorch_ood.MaxSoftmax, pytorch_ood.MaxLogit, pytorch_ood.Entropy)
    detectors = [kind(network) for kind in (*on_logits, pytorch_ood.EnergyBased, pytorch_ood.GEN)]
    detectors += [kind(encoder) for kind in (pytorch_ood.KNN, pytorch_ood.Mahalanobis)]
    train, test = (
        DataLoader(_Labelled(files, start, labels), batch_size=BATCH)
        for start, labels in (
            (0, [n % CLASSES for n in range(TRAIN)]),
            (TRAIN, [n % CLASSES if n < KNOWN else -1 for n in range(TEST)]),
        )
    )
    with torch.no_grad():
        for detector in detectors:
            if detector.requires_fit:
                detector.fit(train)
            metrics = OODMetrics()
            for images, labels in test:
                metrics.update(detector(images), labels)
            metrics.compute()


class _Labelled(Dataset[tuple[torch.Tensor, int]]):
    """Images of a folder from ``start`` on, with given labels."""

    def __init__(self, files: ImageFolder, start: int, labels: Sequence[int]) -> None:
        self.files, self.start, self.labels = files, start, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.files[self.start + index][0], self.labels[index]
