"""Metrics on a million scores, against scikit-learn, on ten million in little memory, and the bootstrap.

``python -m tools.benchmarks.bench_metrics NAME`` is the process whose memory is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from tools.benchmarks.rows import Row, fastest
from wordnet_splits import metrics

SCORES = 1_000_000
BOOTSTRAP_SCORES = 100_000
MANY_SCORES = 10_000_000
ENTRIES, PAIRED_SCORES = 60, 160_000
BYTES = 6
"""Largest memory in bytes a score, in addition to the scores themselves."""
SHARED_WITH_SKLEARN = ("auroc", "aupr_in", "aupr_out", "fpr95_id_positive")


def _scores(total: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ID and OOD confidences, half each, float32 as they are stored, and correctness of ID."""
    random = np.random.default_rng(0)
    inside = random.normal(1, 1, total // 2).astype(np.float32)
    outside = random.normal(0, 1, total // 2).astype(np.float32)
    return inside, outside, random.random(total // 2) < 0.8


def _sklearn(inside: np.ndarray, outside: np.ndarray) -> dict[str, float]:
    scores = np.concatenate([inside, outside])
    is_id = np.concatenate([np.ones(len(inside), dtype=int), np.zeros(len(outside), dtype=int)])
    fpr, tpr, _ = roc_curve(is_id, scores)
    return {
        "auroc": float(roc_auc_score(is_id, scores)),
        "aupr_in": float(average_precision_score(is_id, scores)),
        "aupr_out": float(average_precision_score(1 - is_id, -scores)),
        "fpr95_id_positive": float(fpr[np.argmax(tpr >= 0.95)]),
    }


def many_scores() -> dict[str, float]:
    """Compute three metrics of ten million scores; return the seconds and the bytes a score."""
    random = np.random.default_rng(0)
    inside, outside = (random.standard_normal(MANY_SCORES // 2, dtype=np.float32) for _ in range(2))
    inside += 1
    metrics.evaluate_scores(inside[:10], outside[:10])  # imports
    before, start = _memory("VmRSS:"), time.perf_counter()
    metrics.evaluate_scores(inside, outside)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "bytes": (_memory("VmHWM:") - before) / MANY_SCORES}


def paired() -> dict[str, float]:
    """Draw the sets of `ENTRIES` detectors over 60 OOD classes, for three metrics: seconds and peak bytes."""
    random, half = np.random.default_rng(0), PAIRED_SCORES // 2
    clusters = random.integers(0, 60, half)

    def sets() -> list[metrics.ScoreSet]:
        inside, outside = (random.normal(mean, 1, half).astype(np.float32) for mean in (1, 0))
        known = metrics.ScoreSet("id", "id", inside)
        return [known, metrics.ScoreSet("ood", "near", outside, None, clusters)]

    entries = [sets() for _ in range(ENTRIES)]
    metrics.paired_replicates(entries[:1], "auroc", replicates=300)  # imports numba
    start = time.perf_counter()
    for name in metrics.resampling.PAIR_METRICS:
        metrics.paired_replicates(entries, name)
    return {"seconds": time.perf_counter() - start, "bytes": _memory("VmHWM:")}


def _measured(name: str) -> dict[str, float]:
    words = [sys.executable, "-m", "tools.benchmarks.bench_metrics", name]
    stdout = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(stdout))


def _memory(field: str) -> int:
    """Return the current (VmRSS) or peak (VmHWM) memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text()  # getrusage would count the parent's memory at the fork
    return int(status.partition(field)[2].split()[0]) * 1024


def run() -> list[Row]:
    """Measure, and check that both sides computed the same values."""
    inside, outside, correct = _scores(SCORES)

    def full() -> dict[str, float]:
        return metrics.evaluate(metrics.rank_counts(inside, outside, correct=correct))

    def shared() -> dict[str, float]:
        return metrics.evaluate(metrics.rank_counts(inside, outside), SHARED_WITH_SKLEARN)

    expected, actual = _sklearn(inside, outside), shared()
    same = all(abs(actual[name] - expected[name]) <= 1e-12 for name in SHARED_WITH_SKLEARN)
    full_time, shared_time = fastest(full, 3), fastest(shared, 3)
    sklearn_time = fastest(lambda: _sklearn(inside, outside), 1)
    ratio = sklearn_time / shared_time

    few_inside, few_outside, few_correct = _scores(BOOTSTRAP_SCORES)
    known = metrics.ScoreSet("id", "id", few_inside, few_correct)
    boot = fastest(lambda: metrics.bootstrap([known, metrics.ScoreSet("ood", "far", few_outside)]), 1)
    many, pairs = _measured("many_scores"), _measured("paired")
    took, each = (many[key] for key in ("seconds", "bytes"))
    drawn, peak = pairs["seconds"], pairs["bytes"] / 2**30
    full_name = f"all {len(metrics.list_metrics())} metrics, {SCORES:,} scores"
    shared_name = f"AUROC, AP in, AP out, FPR95, {SCORES:,} scores"
    boot_name = f"bootstrap of all metrics, {BOOTSTRAP_SCORES:,} scores x 1,000"
    peer, met = f"scikit-learn {sklearn_time:.3f} s", same and ratio >= 3
    many_name, target = f"AUROC, AP in, FPR95, {MANY_SCORES:,} scores", f"<= 3 s, <= {BYTES} bytes a score"
    within = took <= 3 and each <= BYTES
    pairs_name = f"AUROC, both FPR95, {ENTRIES} detectors x {PAIRED_SCORES:,} scores x 1,000 over classes"
    fits = drawn <= 60 and peak <= 1.5
    many_took, pairs_took = f"{took:.2f} s, {each:.1f} bytes a score", f"{drawn:.1f} s, peak {peak:.2f} GiB"
    return [
        Row(full_name, f"{full_time:.3f} s", "", None, "<= 1 s", full_time <= 1),
        Row(shared_name, f"{shared_time:.3f} s", peer, ratio, ">= 3 x, equal to 1e-12", met),
        Row(many_name, many_took, "", None, target, within),
        Row(boot_name, f"{boot:.1f} s", "", None, "<= 10 s", boot <= 10),
        Row(pairs_name, pairs_took, "", None, "<= 60 s, <= 1.5 GiB", fits),
    ]


if __name__ == "__main__":
    print(json.dumps({"many_scores": many_scores, "paired": paired}[sys.argv[1]]()))
