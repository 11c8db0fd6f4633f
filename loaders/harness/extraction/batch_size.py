"""The number of images of a forward pass, proposed for a network, the size of its inputs and its device."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from wordnet_splits.base.untrusted import USER_CODE_ERRORS

from ..models.hooks import removing, run_eagerly
from ..models.model import Model

LARGEST_BATCH: Final = 128
LARGEST_TENSOR: Final = 25 << 20
"""Bytes of a batch's largest layer output on a CPU: glibc gives blocks of 32 MiB or more back to the system,
which clears their pages for each layer again."""
SHARE_OF_MEMORY: Final = 1 / 8
"""Share of a GPU's free memory for a batch's largest layer output; its input, and workspaces, take more."""
ASSUMED_GROWTH: Final = 16 / 3
"""Size of the largest layer output relative to the input, if unknown: 64 channels at half the resolution."""
TRIED: Final = 2
"""Number of images of the trial."""


def propose_batch_size(model: Model, x: Tensor) -> int:
    """Return the batch size for a model in evaluation mode, after a pass over a few inputs (n, 3, h, w).

    It follows from the size of layer outputs, not from timings: equal networks, inputs, devices and threads
    get the same proposal. On a GPU with little free memory it is smaller.
    """
    device = model.device
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free = torch.cuda.mem_get_info(device)[0] + cached
        return largest_batch(largest_output(model, x), int(free * SHARE_OF_MEMORY))
    if device.type == "cpu":
        return largest_batch(largest_output(model, x), LARGEST_TENSOR, torch.get_num_threads())
    return LARGEST_BATCH


def largest_batch(image_bytes: int, limit: int, threads: int = 1) -> int:
    """Return the largest power of two, up to `LARGEST_BATCH`, of images whose outputs fit a limit in bytes.

    Parameters
    ----------
    image_bytes : size of an image's largest layer output.
    threads : threads with work for an image each, even above the limit.
    """
    images = max(1, threads, limit // max(1, image_bytes))
    return 1 << (min(images, LARGEST_BATCH).bit_length() - 1)


def largest_output(model: Model, x: Tensor) -> int:
    """Return the bytes per image of the largest output of a layer, assumed where layers are not visible."""
    x = x[:TRIED]
    sizes = [0]

    def note(_: Any, __: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            sizes.append(output.nbytes)

    if model.has_layers:
        modules = model.require_module().modules()
        handles = [module.register_forward_hook(note) for module in modules]
        with removing(handles), run_eagerly(), torch.no_grad():
            try:
                model.forward(x)
            except USER_CODE_ERRORS:  # raised again, with its context, by the first batch
                sizes = [0]
    largest = max(sizes)
    return round((largest if largest > x.nbytes else ASSUMED_GROWTH * x.nbytes) / len(x))
