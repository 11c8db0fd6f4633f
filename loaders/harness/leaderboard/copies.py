"""Scores that two entries share although they name different models or authors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from wordnet_splits.errors import SplitsError
from wordnet_splits.leaderboard import read_entry

from ..evaluation.check import Difference
from ..evaluation.derive import DetectorRun, blocks
from ..evaluation.results import Results

Origin = tuple[str, str]
"""Who submitted scores, and the key of the model that they are said to be of."""


def copied_scores(entries: Sequence[Path]) -> dict[str, list[Difference]]:
    """Return the differences of each entry whose scores are also those of another author or model.

    Two detectors' scores are the same where their sorted confidences are. Confidences that are all equal tell
    no models apart and are passed over; an entry that cannot be read is `check_entry`'s to name.
    """
    origins: dict[str, dict[Origin, list[tuple[str, str]]]] = {}
    for folder in entries:
        try:
            entry, results = read_entry(folder), Results.read(folder)
            model_keys = {run.run: run.model_key for run in results.about.runs}
            for (detector, run), digest in _score_digests(results):
                same = origins.setdefault(digest, {})
                rows = same.setdefault((entry.by, model_keys.get(run, "")), [])
                rows.append((folder.name, f"{detector}, {run}"))
        except SplitsError:
            continue
    copies: dict[str, list[Difference]] = {}
    for same in origins.values():
        if len(same) > 1:
            for origin, places in same.items():
                others = sorted({name for other, rows in same.items() if other != origin for name, _ in rows})
                for name, row in places:
                    difference = Difference(
                        "entry", row, "scores", f"equal to those of {', '.join(others)}", "scores of its own"
                    )
                    copies.setdefault(name, []).append(difference)
    return copies


def _score_digests(results: Results) -> Iterator[tuple[DetectorRun, str]]:
    """Yield each detector and run with the digest of its confidences, whatever the order of the images."""
    for key, table in blocks(results.scores, "scores"):
        confidences = np.sort(table["confidence"].to_numpy())
        if confidences[0] != confidences[-1]:
            content = confidences.astype("<f4").tobytes()
            yield key, hashlib.blake2b(content, digest_size=16).hexdigest()
