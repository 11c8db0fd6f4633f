"""Memory of detectors on arrays of ImageNet's size, measured in separate processes.

``python -m tools.benchmarks.bench_memory detectors`` and ``... bank ROWS`` are these processes.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from loaders.harness.data.arrays import Arrays, ArrayView, Head
from loaders.harness.detectors import ConfiguredDetector, get_detector, list_detectors
from loaders.harness.evaluation.scoring import confidence, fit
from tools.benchmarks.rows import Row

IMAGES, WIDTH, CLASSES = 50_000, 2048, 1000
BANK, QUERIES, SHARD = 1_281_167, 500, 4096
SCORED = 2 * SHARD
"""Number of scored images and of validation images; scoring goes shard by shard, so memory does not grow."""
CACHED = {"features", "logits", "labels", "head"}
GIB, SECONDS = 8.0, 45.0
SHORT: dict[str, dict[str, Any]] = {"opengan": {"epochs": 1}}
"""Detectors that are trained in steps -> parameters; they fit on the scored images only."""


def cached_detectors() -> list[ConfiguredDetector]:
    """Return the detectors that require only a model's features, logits, labels and head."""
    detectors = [get_detector(name, **SHORT.get(name, {})) for name in list_detectors()]
    return [d for d in detectors if d.spec.models == "one" and {*d.needs, *d.spec.needs} - {"{on}"} <= CACHED]


def all_detectors() -> dict[str, Any]:
    """Fit each detector on all images (or on some validation images), and score some images."""
    rng = np.random.default_rng(0)
    centres = rng.exponential(1.0, (CLASSES, WIDTH)).astype(np.float32)
    labels = np.arange(IMAGES) % CLASSES
    features = rng.standard_normal((IMAGES, WIDTH), dtype=np.float32)
    for i in range(0, IMAGES, SHARD):
        features[i : i + SHARD] = np.maximum(features[i : i + SHARD] + centres[labels[i : i + SHARD]], 0)
    head = Head(centres / 40, np.zeros(CLASSES, np.float32))
    data = Arrays.of(features=features, logits=features @ head.weight.T, labels=labels)
    scored = Arrays.of(**{name: data[name][:SCORED] for name in ("features", "logits", "labels")})
    detectors = cached_detectors()
    for detector in detectors:
        start = time.perf_counter()
        splits = detector.spec.splits
        by_split = {
            split: data if split == "train" and detector.spec.name not in SHORT else scored
            for split in splits
        }
        learn: Any = by_split[splits[0]] if isinstance(detector.spec.fit_on, str) else by_split or None
        confidence(fit(detector, learn, head), scored)
        print(f"  {detector.label} {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return {"count": len(detectors)}


def bank_on_disk(rows: int) -> dict[str, Any]:
    """Search a bank of float16 features in shards on disk for the nearest of some images."""
    rng = np.random.default_rng(0)
    some = np.abs(rng.standard_normal((SHARD, WIDTH), dtype=np.float32)).astype(np.float16)
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for start in range(0, rows, SHARD):
            path = Path(folder) / f"{start:08d}.npy"
            np.save(path, some[: rows - start, rng.permutation(WIDTH)])
            parts.append(np.load(path, mmap_mode="r"))
        bank = Arrays.of(features=ArrayView(parts))
        queries = Arrays.of(features=np.abs(rng.standard_normal((QUERIES, WIDTH), dtype=np.float32)))
        start_time = time.perf_counter()
        confidence(fit(get_detector("knn", k=1000), bank), queries)
        return {"seconds": time.perf_counter() - start_time}


def run() -> list[Row]:
    """Measure both."""
    detectors = _run_process("detectors")
    detector_row = Row(
        f"peak memory, {detectors['count']} detectors, {IMAGES:,} x {WIDTH:,}, {CLASSES:,} classes, "
        f"{SCORED:,} scored",
        f"{detectors['gib']:.1f} GiB",
        "",
        None,
        f"<= {GIB:g} GiB",
        detectors["gib"] <= GIB,
    )
    free_rows = shutil.disk_usage(tempfile.gettempdir()).free // (2 * WIDTH) * 9 // 10
    size = min(BANK, free_rows)
    bank = _run_process("bank", str(size))
    name = f"knn[k=1000], {QUERIES:,} images against {size:,} x {WIDTH:,} float16 on disk"
    bank_row = Row(
        name if size == BANK else f"{name} (no space for {BANK:,})",
        f"{bank['seconds']:.0f} s, {bank['gib']:.1f} GiB",
        "",
        None,
        f"<= {SECONDS:g} s, {GIB:g} GiB",
        bank["seconds"] <= SECONDS and bank["gib"] <= GIB if size == BANK else None,
    )
    return [detector_row, bank_row]


def _run_process(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tools.benchmarks.bench_memory", *arguments]
    stdout = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return result


WORK: dict[str, Callable[..., dict[str, Any]]] = {"detectors": all_detectors, "bank": bank_on_disk}

if __name__ == "__main__":
    measured = WORK[sys.argv[1]](*map(int, sys.argv[2:]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({**measured, "gib": peak}))
