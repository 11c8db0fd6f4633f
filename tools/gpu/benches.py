"""The third step: resizing, training, extraction; detectors on stored arrays against a ResNet-50's pass."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import torchvision

from loaders.harness.data.arrays import Array, Arrays, Head
from loaders.harness.detectors import get_detector, list_detectors
from loaders.harness.evaluation.scoring import confidence, fit
from loaders.harness.extraction.activations import extract
from loaders.harness.extraction.outputs import Store
from loaders.harness.models.loading import load_model
from loaders.harness.models.reproducibility import deterministic_kernels
from loaders.harness.models.transforms import evaluation_transform
from tools.benchmarks import bench_activations, bench_resize
from tools.benchmarks.rows import fastest
from wordnet_splits.base.errors import SplitsError

from .figures import Figures, step_arguments
from .training_rates import training

CACHED = {"features", "logits", "labels", "head"}
TRAINED = {"opengan"}
BATCH, SIDE = 128, 224
IMAGES, LEARN, WIDTH, CLASSES = 20_000, 20_000, 2048, 1000
NORMALISED = evaluation_transform("none", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def stored_arrays(n: int, width: int, classes: int, head: Head, centres: Array, seed: int) -> Arrays:
    """Return features about the centre of each class, their logits and labels, as a network would give."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    noise = rng.standard_normal((n, width), dtype=np.float32)
    features = np.maximum(centres[labels] + 0.5 * noise, 0)
    return Arrays.of(features=features, logits=features @ head.weight.T + head.bias, labels=labels)


def cached_detectors() -> list[str]:
    """Return the names of the detectors that need only the arrays that a single pass of a model stores."""
    cached = [get_detector(name) for name in list_detectors()]
    return [c.label for c in cached if c.spec.models == "one" and CACHED.issuperset(c.needs)]


def detectors(figures: Figures, *, tiny: bool) -> dict[str, float]:
    """Time every cached detector, fitting included; return the seconds of each."""
    n, learn, width, classes = (300, 300, 16, 6) if tiny else (IMAGES, LEARN, WIDTH, CLASSES)
    rng = np.random.default_rng(0)
    centres = rng.exponential(1.0, (classes, width)).astype(np.float32)
    weight = rng.normal(0, 0.05, (classes, width)).astype(np.float32) + centres / 40
    head = Head(weight, np.zeros(classes, np.float32))
    train, val, outside, test = (
        stored_arrays(rows, width, classes, head, centres, seed)
        for seed, rows in enumerate((learn, learn // 10, learn // 10, n))
    )
    of_split = {"train": train, "val": val, "ood-val": outside}
    seconds_of: dict[str, float] = {}
    for name in cached_detectors():
        detector = get_detector(name)
        learn_on: Any = {split: of_split[split] for split in detector.spec.splits}
        fit_on = detector.spec.fit_on
        learn_on = learn_on[fit_on] if isinstance(fit_on, str) else learn_on or None

        def work(detector: Any = detector, learn_on: Any = learn_on) -> Array:
            return confidence(fit(detector, learn_on, head), test)

        try:
            seconds = fastest(work, 1)
        except SplitsError as error:  # e.g. scikit-learn is missing: time the remaining detectors
            figures.add(f"detector {name}", f"not measured: {error}")
            continue
        seconds_of[name] = seconds
        figures.add(f"detector {name}", f"{seconds:.2f} s")
    return seconds_of


class RandomImages:
    """The same few random photographs over and over, read as a dataset's are."""

    transform = batch_transform = None

    def __init__(self, n: int, side: int) -> None:
        self.pixels = torch.randint(0, 256, (2 * BATCH, 3, side, side), dtype=torch.uint8)
        row = {"source": "random", "class_id": "all", "role": "far", "group": "random", "split": "test"}
        rows = [{**row, "image_id": str(i), "label": -1, "view": "raw", "digest": None} for i in range(n)]
        self.table = pa.Table.from_pylist(rows, schema=bench_activations.IMAGE_SCHEMA)

    def __getitems__(self, rows: list[int]) -> Any:
        return SimpleNamespace(images=self.pixels[[row % len(self.pixels) for row in rows]])


def extraction(figures: Figures, device: str, *, tiny: bool) -> float:
    """Time a bare pass of a ResNet-50 and the extraction of its activations; return the pass's seconds."""
    n, side = (2 * BATCH, 32) if tiny else (IMAGES, SIDE)
    torch.manual_seed(0)
    network = torchvision.models.resnet18() if tiny else torchvision.models.resnet50()
    model, data = load_model(network.eval(), device=device), RandomImages(n, side)

    def synchronised(work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        if model.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    def bare(images: int) -> None:
        assert NORMALISED.batch is not None
        ready = NORMALISED.batch(data.pixels[:BATCH].to(model.device))
        with torch.no_grad(), deterministic_kernels():
            for _ in range(images // BATCH):
                network(ready)

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            extract(model, data, Store(Path(folder)), batch_size=BATCH, transform=NORMALISED)

    synchronised(lambda: bare(4 * BATCH if not tiny else BATCH))  # sets the kernels up
    whole = synchronised(lambda: bare(n)) * n / (n // BATCH * BATCH)
    name = type(network).__name__ + ("-18" if tiny else "-50")
    figures.add(f"bare pass, {name}, {n:,} images of {side} pixels, float32", f"{whole:.2f} s")
    seconds = synchronised(ours)
    figures.add(f"extraction, {name}, the same", f"{seconds:.2f} s, {whole / seconds:.2f} x (target >= 0.9)")
    return whole


def main() -> int:
    """Measure; nothing is asserted."""
    options = step_arguments("benches").parse_args()
    figures = Figures(options.figures)
    if not options.tiny:
        figures.add_row(bench_resize.on_a_gpu())
        for row in bench_activations.run():
            figures.add_row(row)
    training(figures, options.device, tiny=options.tiny)
    one_pass = extraction(figures, options.device, tiny=options.tiny)
    seconds_of = detectors(figures, tiny=options.tiny)
    without = {name: seconds for name, seconds in seconds_of.items() if name not in TRAINED}
    for title, seconds in (("all detectors", seconds_of), ("all that train no network", without)):
        total = sum(seconds.values())
        met = "met" if total < one_pass else "not met"
        figures.add(f"{title}, {len(seconds)}", f"{total:.2f} s; one pass {one_pass:.2f} s: {met}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
