"""The settings a shard is computed with: deterministic kernels, and a record of what they ran on."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from .schema import ShardRecord


@contextmanager
def deterministic() -> Iterator[None]:
    """Use deterministic kernels and full float32 products inside the block; settings are restored after it.

    Kernels without a deterministic form warn once, and run.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        (cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32),
    )
    torch.use_deterministic_algorithms(True, warn_only=True)
    cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = True, False, False, False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = before[2]


def settings(device: Any, dtype: Any, batch_size: int) -> dict[str, Any]:
    """Return what the bytes of a shard depend on, besides model and images."""
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
    found = []
    for key in ("batch_size", "device", "dtype", "libraries", "threads"):
        values = {str(getattr(record.settings, key)) for record in records}
        if len(values) > 1:
            found.append(f"shards differ in {key}: {', '.join(sorted(values))}; equality is rtol 1e-4")
    return found
