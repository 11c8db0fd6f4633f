"""A catalog of WordNet's nouns: synsets proposed, explained and written."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from tools.benchmarks.rows import Row

CODE = """
import hashlib, time
from pathlib import Path
from wordnet_splits.linking.catalog_maker import make_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy
nouns = (lemma.replace("_", " ") for lemma in Taxonomy.embedded().lemma_index())
names = sorted(nouns, key=lambda noun: hashlib.sha256(noun.encode()).digest())[:20_000]
start = time.perf_counter()
catalog = make_catalog(names, Path("nouns.tsv"))
seconds = time.perf_counter() - start
status = Path("/proc/self/status").read_text()  # getrusage would count the parent's memory at the fork
print(len(catalog.proposals), seconds, int(status.partition("VmHWM:")[2].split()[0]) / 2**20)
"""


def run() -> list[Row]:
    """Measure in a fresh interpreter, so that the memory peak counts this work only."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", CODE]
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=folder)
    count, seconds, peak = done.stdout.split()
    return [
        Row(
            f"catalog of {int(count):,} classes",
            f"{float(seconds):.0f} s, peak {float(peak):.2f} GiB",
            "",
            None,
            "<= 24 s",
            float(seconds) <= 24,
        )
    ]
