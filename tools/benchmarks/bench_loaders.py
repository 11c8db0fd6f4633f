"""Images a second of `UnknownDetectionSet` against torchvision's datasets, on real data, in one process.

torch computes on one thread on both sides: on a busy machine two of them wait for each other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Subset
from torchvision import transforms
from torchvision.datasets import CIFAR100, ImageFolder

from loaders import UnknownDetectionSet
from wordnet_splits.making import build
from wordnet_splits.packed.pack import pack

from .rows import Row, fastest

BATCH = 128
REPEATS = 6
TINY = 2000  # images of a pass: short passes find a quiet moment on a busy machine
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
    """torchvision's, which refuses this copy: its order within a class is not the publisher's."""

    def _check_integrity(self) -> bool:
        return True

    def _load_meta(self) -> None:
        self.classes = []


def _floats(images: torch.Tensor) -> torch.Tensor:
    """What ToTensor does, for a batch."""
    return images.to(torch.float32).div_(255)


def _consume(batches: Iterable[object]) -> None:
    for _ in batches:
        pass


def _rates(count: int, ours: Iterable[object], peer: Iterable[object]) -> tuple[float, float]:
    """Return images a second of both, the fastest of passes that alternate."""
    times: list[tuple[float, float]] = []
    for _ in range(REPEATS):
        times.append((fastest(lambda: _consume(ours), 1), fastest(lambda: _consume(peer), 1)))
    return count / min(t for t, _ in times), count / min(t for _, t in times)


def _row(name: str, ours: float, peer: float, peer_name: str, target: float | None) -> Row:
    ratio = ours / peer
    said = "" if target is None else f">= {target:g} x"
    left, right = f"{ours:,.0f} images/s", f"{peer_name} {peer:,.0f} images/s"
    return Row(name, left, right, ratio, said, target is None or ratio >= target)


def _cifar(data: Path, folder: Path) -> Iterator[Row]:
    pack("unknown-cifar", folder, roots={"cifar100": data}, groups=["cifar-40"], splits=["train"])

    def opened(**transform: object) -> UnknownDetectionSet:
        return UnknownDetectionSet("unknown-cifar", role="id", split="train", packed=folder, **transform)

    ours = opened(batch_transform=_floats)
    peer = DataLoader(
        Subset(_Cifar100(data, transform=transforms.ToTensor()), range(len(ours))), batch_size=BATCH
    )
    first = len(ours) / fastest(lambda: _consume(ours.batches(BATCH)), 1)
    warm, theirs = _rates(len(ours), _Again(ours), peer)
    loader, _ = _rates(len(ours), DataLoader(ours, batch_size=BATCH), [])
    each, again = _rates(
        len(ours), DataLoader(opened(transform=transforms.ToTensor()), batch_size=BATCH), peer
    )
    what, name = "packed CIFAR-100", "torchvision"
    yield _row(f"{what}, batch_transform", warm, theirs, name, 20)
    yield _row(f"{what}, batch_transform, first pass with checksums", first, theirs, name, None)
    yield _row(f"{what}, batch_transform, in a DataLoader", loader, theirs, name, None)
    yield _row(f"{what}, a transform of each image", each, again, name, 1)


class _Again:
    """`batches`, begun anew by every loop."""

    def __init__(self, data: UnknownDetectionSet) -> None:
        self._data = data

    def __iter__(self) -> Iterator[object]:
        return self._data.batches(BATCH)


def _tiny(data: Path) -> Row:
    transform = transforms.ToTensor()
    root = data / "tiny-imagenet-200"
    ours = UnknownDetectionSet(
        "unknown-cifar-tinyval",
        group="tin158",
        split="val",
        roots={"tiny-imagenet": root},
        transform=transform,
    )
    peer = ImageFolder(str(root / "val"), transform=transform)
    loaders = (DataLoader(Subset(side, range(TINY)), batch_size=BATCH) for side in (ours, peer))
    return _row("Tiny ImageNet val, JPEG files", *_rates(TINY, *loaders), "ImageFolder", 1)


def _photographs(data: Path, folder: Path) -> Iterator[Row]:
    root = folder / "imagenet"
    for file in sorted((data / "imagenet" / "train").glob("*/*.JPEG")):
        wnid = file.parent.name
        (root / "train" / wnid).mkdir(parents=True)
        shutil.copyfile(file, root / "train" / wnid / f"{wnid}_5000.JPEG")  # not named as in ILSVRC
    recipe = folder / "photographs.toml"
    recipe.write_text(PHOTOGRAPHS, encoding="utf-8")
    built = build(recipe, roots={"imagenet1k": root}, out=folder / "build", local=True).folder
    assert built is not None
    transform = transforms.Compose(
        [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
    )
    peer = DataLoader(ImageFolder(str(root / "train"), transform=transform), batch_size=BATCH)
    pack(built, folder / "packed", roots={"imagenet1k": root})
    for what, place in (
        ("files", {"roots": {"imagenet1k": root}}),
        ("packed files", {"packed": folder / "packed"}),
    ):
        ours = DataLoader(UnknownDetectionSet(built, transform=transform, **place), batch_size=BATCH)
        count = len(ours.dataset)
        yield _row(f"{count} photographs, {what}", *_rates(count, ours, peer), "ImageFolder", 1)


@contextmanager
def _real_data() -> Iterator[Path]:
    """Yield the folder of real datasets: given, or unpacked for the occasion."""
    if given := os.environ.get("WORDNET_SPLITS_TEST_DATA"):
        yield Path(given)
        return
    shared = Path(os.environ.get("WORDNET_SPLITS_SHARED", Path(__file__).parents[3] / "shared"))
    unpack = shared / "data" / "unpack"
    if not unpack.is_file():
        raise ImportError(f"real datasets are not at {unpack.parent} (set WORDNET_SPLITS_TEST_DATA)")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(unpack), folder], check=True, stdout=subprocess.DEVNULL)
        yield Path(folder)


def run() -> list[Row]:
    """Measure on CIFAR-100, the Tiny ImageNet validation images and the photographs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _real_data() as data, tempfile.TemporaryDirectory() as folder:
            return [
                *_cifar(data, Path(folder) / "cifar"),
                _tiny(data),
                *_photographs(data, Path(folder)),
            ]
    finally:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    for row in run():
        print(*row, sep=" | ")
