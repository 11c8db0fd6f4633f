"""Images a second of `UnknownDetectionSet` against torchvision's datasets, on real data, in one process.

torch computes on one thread on both sides, and CPU time is measured: other work on the machine counts less.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import DataLoader, Subset
from torchvision import transforms
from torchvision.datasets import CIFAR100, ImageFolder

from fix_resize.decode import decode_bytes
from fix_resize.resize import COMPILED_FROM
from loaders import UnknownDetectionSet
from loaders.harness.models.transforms import evaluation_transform
from tools.benchmarks.rows import Row, cpu_seconds, real_data
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest

BATCH = 128
ROUNDS = 6
TINY = 2000  # images per pass: short passes are less disturbed on a busy machine
PHOTOGRAPHS = """
schema = 1
name = "photographs"
draw = "photographs"
[[group]]
name = "photographs"
role = "id"
source = "imagenet1k"
classes = { listed = "source:tiny-imagenet" }
images = { test = { from = "train", all = true } }
"""


class _Cifar100(CIFAR100):
    """torchvision's dataset without the checksum: this copy has another order within each class."""

    def _check_integrity(self) -> bool:
        return True

    def _load_meta(self) -> None:
        self.classes: list[str] = []


def _floats(images: torch.Tensor) -> torch.Tensor:
    """Convert a batch as ToTensor converts an image."""
    return images.to(torch.float32).div_(255)


def _consume(batches: Iterable[object]) -> None:
    for _ in batches:
        pass


def _rates(count: int, dataset: Iterable[object], peer: Iterable[object]) -> tuple[float, float]:
    """Return images per second of CPU of both, the fastest of alternating passes."""
    passes = [[cpu_seconds(lambda s=side: _consume(s)) for side in (dataset, peer)] for _ in range(ROUNDS)]
    ours, others = (min(column) for column in zip(*passes, strict=True))
    return count / ours, count / others


def _row(name: str, rate: float, peer_rate: float, peer: str, target: float | None) -> Row:
    ratio = rate / peer_rate
    target_text = "" if target is None else f">= {target:g} x"
    texts = f"{rate:,.0f} images/s", f"{peer} {peer_rate:,.0f} images/s"
    return Row(name, *texts, ratio, target_text, target is None or ratio >= target)


def _cifar(data: Path, folder: Path) -> Iterator[Row]:
    pack(
        load_manifest("unknown-cifar"),
        folder,
        roots={"cifar100": data},
        groups=["cifar-40"],
        splits=["train"],
    )

    def opened(**transform: Any) -> UnknownDetectionSet:
        return UnknownDetectionSet("unknown-cifar", role="id", split="train", packed=folder, **transform)

    dataset = opened(batch_transform=_floats)
    count = len(dataset)
    cifar: Subset[Any] = Subset(_Cifar100(data, transform=transforms.ToTensor()), range(count))
    peer = DataLoader(cifar, batch_size=BATCH)
    first_rate = count / cpu_seconds(lambda: _consume(dataset.batches(BATCH)))
    rate, peer_rate = _rates(count, _Batches(dataset), peer)
    loader_rate, _ = _rates(count, DataLoader(dataset, batch_size=BATCH), _Batches(dataset))
    per_image = DataLoader(opened(transform=transforms.ToTensor()), batch_size=BATCH)
    image_rate, image_peer_rate = _rates(count, per_image, peer)
    name = "packed CIFAR-100"
    yield _row(f"{name}, batch_transform", rate, peer_rate, "torchvision", 20)
    title = f"{name}, batch_transform, first pass with checksums"
    yield _row(title, first_rate, peer_rate, "torchvision", None)
    yield _row(f"{name}, batch_transform, in a DataLoader", loader_rate, peer_rate, "torchvision", None)
    yield _row(f"{name}, a transform of each image", image_rate, image_peer_rate, "torchvision", 1)


class _Batches:
    """The batches of a dataset, as an iterable that can be iterated repeatedly."""

    def __init__(self, data: UnknownDetectionSet) -> None:
        self._data = data

    def __iter__(self) -> Iterator[object]:
        return self._data.batches(BATCH)


def _tiny(data: Path) -> Iterator[Row]:
    root = data / "tiny-imagenet-200"
    peer = ImageFolder(str(root / "val"), transform=transforms.ToTensor())
    for name, transform in (
        ("a transform of each image", {"transform": transforms.ToTensor()}),
        ("batch_transform", {"batch_transform": _floats}),
    ):
        dataset = UnknownDetectionSet(
            "unknown-cifar-tinyval", group="tin158", split="val", roots={"tiny-imagenet": root}, **transform
        )
        loaders = (DataLoader(Subset(side, range(TINY)), batch_size=BATCH) for side in (dataset, peer))
        yield _row(f"Tiny ImageNet val, JPEG files, {name}", *_rates(TINY, *loaders), "ImageFolder", 1.5)


def _photographs(data: Path, folder: Path) -> Iterator[Row]:
    root = folder / "imagenet"
    for file in sorted((data / "imagenet" / "train").glob("*/*.JPEG")):
        wnid = file.parent.name
        (root / "train" / wnid).mkdir(parents=True)
        shutil.copyfile(file, root / "train" / wnid / f"{wnid}_5000.JPEG")  # not named as in ILSVRC
    recipe = folder / "photographs.toml"
    recipe.write_text(PHOTOGRAPHS, encoding="utf-8")
    built = build_benchmark(recipe, roots={"imagenet1k": root}, out=folder / "build", local=True).folder
    assert built is not None
    transform = transforms.Compose(
        [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
    )
    peer = DataLoader(ImageFolder(str(root / "train"), transform=transform), batch_size=BATCH)
    pack(load_manifest(built), folder / "packed", roots={"imagenet1k": root})
    storages: dict[str, dict[str, Any]] = {
        "files": {"roots": {"imagenet1k": root}},
        "packed files": {"packed": folder / "packed"},
    }
    for kind, storage in storages.items():
        dataset = UnknownDetectionSet(built, transform=transform, **storage)
        rates = _rates(len(dataset), DataLoader(dataset, batch_size=BATCH), peer)
        yield _row(f"{len(dataset)} photographs, {kind}, torchvision's resize", *rates, "ImageFolder", 1)
    named = evaluation_transform("resize-256-crop-224")
    assert named.image is not None
    for _ in range(COMPILED_FROM):  # as after so many images
        named.image(Image.new("RGB", (2, 2)))
    dataset = UnknownDetectionSet(
        built, transform=named.image, batch_transform=named.batch, **storages["files"]
    )
    rates = _rates(len(dataset), DataLoader(dataset, batch_size=BATCH), peer)
    title = f"{len(dataset)} photographs, files"
    yield _row(f"{title}, resize-256-crop-224", *rates, "ImageFolder", 1.15)
    files = [file.read_bytes() for file in sorted(root.rglob("*.JPEG"))]
    image = named.image
    alone = min(cpu_seconds(lambda: [image(decode_bytes(f, where="")) for f in files]) for _ in range(ROUNDS))
    title = f"{title}, decoding and resize-256-crop-224 alone"
    yield _row(title, len(files) / alone, rates[1], "ImageFolder", None)


def run() -> list[Row]:
    """Measure on CIFAR-100, the Tiny ImageNet validation images and the photographs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with real_data() as data, tempfile.TemporaryDirectory() as folder:
            return [
                *_cifar(data, Path(folder) / "cifar"),
                *_tiny(data),
                *_photographs(data, Path(folder)),
            ]
    finally:
        torch.set_num_threads(threads)
