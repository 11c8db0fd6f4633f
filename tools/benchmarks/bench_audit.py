"""An audit of 1,000 classes against a user's loop over NLTK, and ImageNet-21K at every threshold."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.benchmarks.bench_taxonomy import nltk_nouns
from tools.benchmarks.rows import Row, fastest
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.datasets.catalog import load_catalog

PAIRS = 4_000
"""Pairs of NLTK's similarities that are timed; the loop needs a million."""


def run() -> list[Row]:
    """Measure, and check that both sides found the same leaks."""
    return [_against_nltk(), _thresholds()]


def _against_nltk() -> Row:
    """Find the classes of SSB-hard that are kin of ImageNet-1K's, and the most similar class of each."""
    listed, known_ids = (
        [item.wnids[0] for item in load_catalog(name)] for name in ("ssb-hard", "imagenet1k")
    )
    result = audit_classes("ssb-hard")
    seconds_audit = fastest(lambda: audit_classes("ssb-hard"), 5)
    with tempfile.TemporaryDirectory() as base:
        synsets = nltk_nouns(Path(base), [*listed, *known_ids])
        nouns, known_nouns = synsets[: len(listed)], synsets[len(listed) :]
        start = time.perf_counter()
        leaks = _loop(nouns, known_nouns)
        seconds = time.perf_counter() - start
        if leaks != result.counts["leaking"]:
            raise AssertionError(f"NLTK finds {leaks} leaking classes, we {result.counts['leaking']}")
        start = time.perf_counter()
        for n in range(PAIRS):
            nouns[n % len(nouns)].wup_similarity(known_nouns[n * 7919 % len(known_nouns)])
        each = (time.perf_counter() - start) / PAIRS
    peer = seconds + each * len(nouns) * len(known_nouns)
    return Row(
        "audit of 1,000 classes against 1,000, warm",
        f"{seconds_audit:.2f} s",
        f"a loop over NLTK {peer:.0f} s ({seconds:.1f} s kin, the rest wup)",
        peer / seconds_audit,
        "<= 1 s",
        seconds_audit <= 1,
    )


def _loop(nouns: Sequence[Any], known_nouns: Sequence[Any]) -> int:
    """Count the nouns that are kin of a known noun, by NLTK's closures."""

    def above(noun: Any) -> set[Any]:
        return {noun, *noun.closure(lambda synset: synset.hypernyms() + synset.instance_hypernyms())}

    distinct = set(known_nouns)
    ancestors = set().union(*map(above, known_nouns))
    return sum(noun in ancestors or not distinct.isdisjoint(above(noun)) for noun in nouns)


def _thresholds() -> Row:
    """Measure in a fresh interpreter, so that the memory peak counts this work only."""
    code = """
import time
from pathlib import Path
from wordnet_splits.audit.thresholds import thresholds
start = time.perf_counter()
found = thresholds("imagenet21k", "imagenet1k")
found.write(Path("thresholds.parquet"))
found.counts()
seconds = time.perf_counter() - start
status = Path("/proc/self/status").read_text()  # getrusage would count the parent's memory at the fork
print(len(found.table), seconds, int(status.partition("VmHWM:")[2].split()[0]) / 2**20)
"""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", code]
        runs = [
            subprocess.run(words, capture_output=True, text=True, check=True, cwd=folder).stdout.split()
            for _ in range(3)
        ]
    count, seconds, peak = min(runs, key=lambda run: float(run[1]))
    return Row(
        f"{int(count):,} other classes of ImageNet-21K at every threshold",
        f"{float(seconds):.2f} s, peak {float(peak):.2f} GiB",
        "",
        None,
        "<= 5 s, <= 1.5 GiB",
        float(seconds) <= 5 and float(peak) <= 1.5,
    )
