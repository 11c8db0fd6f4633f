"""Extract one group of digits, standing still where asked: run by tests that kill it, or under torchrun.

``python extract_digits.py STORE SHARD_ROWS SHARDS``: after so many shards it waits to be killed; 0 for never.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import torch

from loaders import UnknownDetectionSet
from loaders.harness.extraction.activations import extract
from loaders.harness.extraction.outputs import Store
from loaders.harness.models.loading import load_model
from tests.loaders.harness.models.networks import Wrapped

PROBES = ("odin[T=10,eps=0.01]", "layer[layer=network.2,statistic=mean]")
BATCH = 32


class Halting(Wrapped):
    """Waits for ever in the first forward pass after some shards are done."""

    store = Path()
    shards = 0

    def forward(self, x: Any) -> Any:
        if self.shards and len(list(self.store.rglob("forward/0000*.json"))) >= self.shards:
            print("standing still", flush=True)
            threading.Event().wait()
        return super().forward(x)


def extract_near(store: Path, shard_rows: int) -> Any:
    """Extract the near group with two probes."""
    data = UnknownDetectionSet("digits", role="near")
    return extract(
        load_model(Halting(), device="cpu"), data, Store(store, shard_rows), probes=PROBES, batch_size=BATCH
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    Halting.store, Halting.shards = Path(sys.argv[1]), int(sys.argv[3])
    found = extract_near(Halting.store, int(sys.argv[2]))
    print(found.n, "torch._inductor" in sys.modules)
