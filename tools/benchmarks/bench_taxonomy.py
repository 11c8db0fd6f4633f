"""Similarity against warm NLTK per pair, all pairs of ImageNet-21K, and loading the taxonomy."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nltk
import numpy as np

from tools.benchmarks.rows import Row, fastest
from tools.wndb_export import export_wndb
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.similarity import pairs as similarity

MEASURES = ("path", "lch", "wup", "wup_wn")
NLTK_METHODS = {"path": "path_similarity", "lch": "lch_similarity", "wup": "wup_similarity"}
NLTK_PAIRS = 4_000


def run() -> list[Row]:
    """Measure, and check that both sides computed the same values."""
    return [_loading(), *_against_nltk(), _imagenet_21k()]


def _loading() -> Row:
    """A fresh interpreter from the import to the first query of the graph, minus the interpreter's start."""
    work = "from wordnet_splits.wordnet.taxonomy import Taxonomy; Taxonomy.embedded().ancestors('n02084071')"
    seconds = min(
        float(subprocess.run([sys.executable, "-c", _timed(work)], capture_output=True, check=True).stdout)
        for _ in range(5)
    )
    return Row(
        "load embedded WordNet, import included", f"{seconds:.2f} s", "", None, "<= 0.3 s", seconds <= 0.3
    )


def _timed(work: str) -> str:
    return f"import time; t = time.perf_counter(); {work}; print(time.perf_counter() - t)"


def _against_nltk() -> list[Row]:
    """All four measures of 1,000 x 1,000 classes; NLTK has three, and is charged for three."""
    classes = [entry.wnids[0] for entry in load_catalog("imagenet1k").classes]
    seconds_per_pair = (
        fastest(lambda: similarity.similarity_matrices(MEASURES, classes), 5) / len(classes) ** 2
    )
    nltk_seconds = _seconds_per_pair(classes)
    ratio = sum(nltk_seconds.values()) / seconds_per_pair
    detail = ", ".join(f"{measure} {seconds * 1e6:.0f}" for measure, seconds in nltk_seconds.items())
    table = fastest(lambda: similarity.similarity_matrix("mean", classes, classes[:200]), 5)
    return [
        Row(
            "path, lch, wup, wup_wn of 1,000 x 1,000 ImageNet classes",
            f"{seconds_per_pair * 1e9:.0f} ns a pair",
            f"NLTK {sum(nltk_seconds.values()) * 1e6:.0f} us ({detail})",
            ratio,
            ">= 5,000 x",
            ratio >= 5_000,
        ),
        Row("mean of 1,000 x 200 classes", f"{table * 1e3:.0f} ms", "", None, "<= 50 ms", table <= 0.05),
    ]


def _seconds_per_pair(classes: Sequence[str]) -> dict[str, float]:
    """NLTK's time for a pair with warm caches; its values must equal ours."""
    numbers = np.arange(NLTK_PAIRS)
    rows, columns = numbers * 7919 % len(classes), numbers * 104_729 // 3 % len(classes)
    with tempfile.TemporaryDirectory() as base:
        nouns = nltk_nouns(Path(base), classes)
        pairs = [(nouns[x], nouns[y]) for x, y in zip(rows.tolist(), columns.tolist(), strict=True)]
        seconds = {}
        for measure, method in NLTK_METHODS.items():
            values = [getattr(x, method)(y) for x, y in pairs]
            if (similarity.similarity_matrix(measure, classes)[rows, columns] != values).any():
                raise AssertionError(f"{measure} differs from NLTK's")
            start = time.perf_counter()
            for x, y in pairs:
                getattr(x, method)(y)
            seconds[measure] = (time.perf_counter() - start) / len(pairs)
    return seconds


def nltk_nouns(base: Path, classes: Sequence[str]) -> list[Any]:
    """Return NLTK's synsets of wnids with warm caches; ``base`` is an empty folder."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    export_wndb(base / "corpora" / "wordnet")
    nltk.data.path.insert(0, str(base))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no multilingual data is needed
            reader = WordNetCorpusReader(str(base / "corpora" / "wordnet"), None)
        nouns = [reader.synset_from_pos_and_offset("n", int(wnid[1:])) for wnid in classes]
        for noun in nouns:  # read every ancestor, and the depth of the taxonomy, before the clock starts
            noun.wup_similarity(nouns[0])
            noun.lch_similarity(nouns[0])
        return nouns
    finally:
        nltk.data.path.remove(str(base))


def _imagenet_21k() -> Row:
    """Measure in a fresh interpreter, so that the memory peak counts this work only."""
    name = "all distances of 21,841 ImageNet-21K synsets, int8"
    target = "<= 2 s, <= 1.2 GiB"
    spec = importlib.util.find_spec("timm")
    if spec is None or spec.origin is None:
        return Row(name, "not measured: timm is not installed", "", None, target, False)
    synsets = Path(spec.origin).parent / "data" / "_info" / "imagenet22k_synsets.txt"
    code = f"""
import time
from pathlib import Path
import wordnet_splits as ws
from wordnet_splits.wordnet.taxonomy import Taxonomy
wnids = Path({str(synsets)!r}).read_text().split()
Taxonomy.embedded().indices(wnids)
start = time.perf_counter()
distances = ws.similarity_matrix("distance", wnids)
seconds = time.perf_counter() - start
status = Path("/proc/self/status").read_text()  # getrusage would count the parent's memory at the fork
peak = int(status.partition("VmHWM:")[2].split()[0])
print(len(wnids), distances.dtype, seconds, peak / 2**20)
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    count, dtype, seconds, peak = min(runs, key=lambda run: float(run[2]))
    met = (count, dtype) == ("21841", "int8") and float(seconds) <= 2 and float(peak) <= 1.2
    return Row(name, f"{float(seconds):.2f} s, peak {float(peak):.2f} GiB", "", None, target, met)
