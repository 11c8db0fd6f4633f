"""The numba kernel and the torch backend against the bare Pillow loop, one core, images already decoded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
from PIL import Image

from fix_resize import kernel
from fix_resize.resize import apply, pillow_resize
from fix_resize.spec import Resize, Step, get_spec
from tools.benchmarks.rows import Row, fastest

FIX = get_spec("fix")
LAST_STAGE = Step(Resize(32), (256, 256), (32, 32), (0, 0), (32, 32))
ROUNDS = 5
GPU_BATCH = 1024


def run() -> list[Row]:
    """Measure every row of this file."""
    return [last_stage(), whole_recipe(), on_a_gpu()]


def last_stage() -> Row:
    """256 -> 32, the stage that the speed target is stated for."""
    pictures = noise(32, 256, 256)
    images = [Image.fromarray(picture) for picture in pictures]
    kernel_time, peer = alternating(
        lambda: [kernel.resample_step(picture, LAST_STAGE) for picture in pictures],
        lambda: [pillow_resize(image, (32, 32), "bilinear") for image in images],
    )
    return row(
        "resize 256 -> 32, numba", len(pictures) / kernel_time, len(pictures) / peer, least=2.0, aim=3.0
    )


def whole_recipe() -> Row:
    """The whole of fix on photographs of ImageNet's usual size."""
    pictures = noise(8, 375, 500)
    images = [Image.fromarray(picture) for picture in pictures]
    kernel_time, peer = alternating(
        lambda: kernel.apply_batch(FIX, pictures), lambda: [apply(FIX, image) for image in images]
    )
    return row(
        "fix of 500 x 375, numba", len(pictures) / kernel_time, len(pictures) / peer, least=2.0, aim=3.0
    )


def on_a_gpu() -> Row:
    """256 -> 32 in batches on the device, against Pillow on one CPU core."""
    name = "resize 256 -> 32, torch on a GPU"
    if importlib.util.find_spec("torch") is None:
        return Row(name, "not measured: no torch", "", None, ">= 30 x", None)
    import torch

    if not torch.cuda.is_available():
        return Row(name, "not measured: no CUDA device", "", None, ">= 30 x", None)
    from fix_resize import backend_torch

    pictures = noise(32, 256, 256)
    image = Image.fromarray(pictures[0])
    batch = torch.from_numpy(pictures).cuda().repeat(GPU_BATCH // len(pictures), 1, 1, 1)

    def resize_on_gpu() -> None:
        backend_torch.resize_batch(FIX, batch)  # at 256 pixels the first stage changes nothing
        torch.cuda.synchronize()

    fast, slow = alternating(
        resize_on_gpu, lambda: [pillow_resize(image, (32, 32), "bilinear") for _ in range(100)]
    )
    return row(name, GPU_BATCH / fast, 100 / slow, least=30.0, aim=30.0)


def noise(number: int, height: int, width: int) -> np.ndarray:
    """Return random images: the work does not depend on their content."""
    return np.random.default_rng(0).integers(0, 256, (number, height, width, 3), dtype=np.uint8)


def alternating(resizer: Callable[[], object], peer: Callable[[], object]) -> tuple[float, float]:
    """Return the least seconds of each; runs alternate, so that load on the machine slows both equally."""
    resizer()  # compiles, and caches weights
    times = [(fastest(resizer, 3), fastest(peer, 3)) for _ in range(ROUNDS)]
    return min(time for time, _ in times), min(time for _, time in times)


def row(name: str, rate: float, peer: float, *, least: float, aim: float) -> Row:
    """Return the row of two rates in images a second."""
    ratio = rate / peer
    target = f">= {least:g} x" + (f", aim {aim:g}" if aim > least else "")
    return Row(name, f"{rate:,.0f} images/s", f"Pillow {peer:,.0f} images/s", ratio, target, ratio >= least)
