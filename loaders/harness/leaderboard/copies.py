"""Runs of two entries that have the same scores although they name different models or authors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from wordnet_splits.base.errors import SplitsError, UnknownNameError
from wordnet_splits.leaderboard import read_entry

from ..detectors.registry import get_method
from ..evaluation.check import Difference
from ..evaluation.derive import blocks
from ..evaluation.results import Results

FEATURES_ALONE: Final = {"features", "labels"}
"""What detectors need that score two classifiers on one backbone alike."""


@dataclass(frozen=True)
class ScoredRun:
    """One run of an entry: its author, its model, and the digest of each detector's confidences."""

    entry: str
    by: str
    benchmark: str
    model_key: str
    run: int
    digests: Mapping[str, str]

    def is_copy_of(self, another: ScoredRun) -> bool:
        """Return whether another author's or model's run has the same scores by every detector of both."""
        if self.entry == another.entry or self.benchmark != another.benchmark:
            return False
        if (self.by, self.model_key) == (another.by, another.model_key):
            return False
        shared = self.digests.keys() & another.digests.keys()
        return bool(shared) and all(self.digests[name] == another.digests[name] for name in shared)


def copied_scores(entries: Sequence[Path]) -> dict[str, list[Difference]]:
    """Return the differences of each entry that has a run whose scores are also another author's or model's.

    Runs are compared by the detectors that use more than features. An entry that cannot be read is
    `check_entry`'s to name.
    """
    runs = [run for folder in entries for run in _runs(folder)]
    copies: dict[str, list[Difference]] = {}
    for run in runs:
        origins = sorted({another.entry for another in runs if run.is_copy_of(another)})
        if origins:
            stored = f"equal to those of {', '.join(origins)}"
            difference = Difference("entry", f"run {run.run}", "scores", stored, "scores of its own")
            copies.setdefault(run.entry, []).append(difference)
    return copies


def _runs(folder: Path) -> list[ScoredRun]:
    try:
        entry, results = read_entry(folder), Results.read(folder)
        digests: dict[int, dict[str, str]] = {}
        for (detector, run), table in blocks(results.scores, "scores"):
            confidences = np.sort(table["confidence"].to_numpy())
            if confidences[0] != confidences[-1] and not _of_features(detector):
                content = confidences.astype("<f4").tobytes()
                digests.setdefault(run, {})[detector] = hashlib.blake2b(content, digest_size=16).hexdigest()
    except SplitsError:
        return []
    about = results.about
    return [
        ScoredRun(folder.name, entry.by, about.benchmark, run.model_key, run.run, digests.get(run.run, {}))
        for run in about.runs
    ]


def _of_features(detector: str) -> bool:
    try:
        return set(get_method(detector.partition("[")[0]).needs) <= FEATURES_ALONE
    except UnknownNameError:
        return False
