"""Steps of a ResNet-20 per second, plain and replayed as a CUDA graph, and the kernels that take longest."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

from loaders.harness.models.transforms import Normalise
from loaders.harness.training.data import DeviceData, Images, TrainingData
from loaders.harness.training.machine import choose_machine, reproducible
from loaders.harness.training.methods import Batch, Network, State, Terms
from loaders.harness.training.methods.classification import Softmax
from loaders.harness.training.recipe import load_recipe
from loaders.harness.training.runs import plan_runs
from loaders.harness.training.trainer import Trainer
from wordnet_splits.base.progress import Silent

from .figures import Figures

STEPS, CLASSES, KERNELS = 100, 40, 8


@dataclass(frozen=True)
class PlainSoftmax(Softmax):
    """Cross-entropy whose step is not marked as replayable by a CUDA graph."""

    def step(self, model: Network, batch: Batch, state: State) -> Terms:
        """Return the cross-entropy."""
        return super().step(model, batch, state)


def training(figures: Figures, device: str, *, tiny: bool) -> None:
    """Time an epoch each way, after an epoch of warm-up."""
    recipe, machine = load_recipe("kim-cifar"), choose_machine(device, "float32")
    (run,) = plan_runs(recipe)
    steps = 1 if tiny else STEPS
    data = DeviceData.from_data(random_images(steps * recipe.batch), machine.device)
    with reproducible(machine.device):
        for method in (PlainSoftmax(), Softmax()):
            trainer = Trainer(run, data, machine, method=method)
            title = "replayed" if trainer.replays else f"plain steps of {method.name}"
            trainer.train_epoch(0, Silent())
            began = time.perf_counter()
            trainer.train_epoch(1, Silent())
            rate = steps / (time.perf_counter() - began)
            figures.add(f"ResNet-20, batches of {recipe.batch}, {title}", f"{rate:.3g} steps/s")
        if machine.device.type == "cuda":
            with profile(activities=[ProfilerActivity.CUDA]) as profiled:
                trainer.train_epoch(2, Silent())
            kernels = sorted(profiled.key_averages(), key=lambda kernel: -kernel.self_device_time_total)
            whole = sum(kernel.self_device_time_total for kernel in kernels)
            figures.add("GPU time of a step", f"{whole / steps / 1000:.2f} ms")
            for kernel in kernels[:KERNELS]:
                share = kernel.self_device_time_total / whole
                figures.add(f"of it {kernel.key[:70]}", f"{share:.1%}, {kernel.count / steps:.1f} launches")


def random_images(n: int) -> TrainingData:
    """Return images of noise."""
    pixels = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8)
    return TrainingData(
        benchmark={"name": "noise", "version": 1, "fingerprint": "f" * 64, "parts": []},
        classes=tuple(map(str, range(CLASSES))),
        normalise=Normalise(),
        train=Images(pixels, torch.arange(n) % CLASSES),
    )
