"""The settings that a shard is computed with, and their differences between shards."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy
import torch

from .schema import ShardRecord


def settings(device: Any, dtype: Any, batch_size: int) -> dict[str, Any]:
    """Return the settings that the bytes of a shard depend on, besides model and images."""
    device = torch.device(device)
    libraries = {"torch": torch.__version__, "numpy": numpy.__version__}
    if device.type == "cuda":
        kind = torch.cuda.get_device_name(device)
        libraries["cuda"] = str(torch.version.cuda)
        libraries["cudnn"] = str(torch.backends.cudnn.version())
        threads = 0  # the kernels do not depend on the host's
    else:
        kind = f"{device.type} {platform.machine()}"
        threads = torch.get_num_threads()
    return {
        "batch_size": batch_size,
        "device": kind,
        "dtype": str(dtype).removeprefix("torch."),
        "libraries": libraries,
        "threads": threads,
    }


def differences(records: Sequence[ShardRecord]) -> list[str]:
    """Return a sentence for every setting that differs between shards (then equality is rtol 1e-4)."""
    sentences = []
    for key in ("batch_size", "device", "dtype", "libraries", "threads"):
        values = {str(getattr(record.settings, key)) for record in records}
        if len(values) > 1:
            sentences.append(f"shards differ in {key}: {', '.join(sorted(values))}; equality is rtol 1e-4")
    return sentences
