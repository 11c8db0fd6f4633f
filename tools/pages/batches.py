"""False-discovery rate and power of batches, over 1,000 divisions of committed scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from loaders.harness import Results
from wordnet_splits.metrics.conformal import BatchGuarantee, ConformalGuarantee, p_values

DIVISIONS, CALIBRATION, BATCH, OUTLIERS, FRAMES = 1000, 2000, 500, 50, 10
RATES = (0.05, 0.1, 0.2)
FALSE_ALARMS = 0.05
CASES = (
    ("unknown-cifar-tinyval-all", "msp", "cifar-60"),
    ("unknown-cifar-tinyval-all", "vim", "gaussian"),
    ("optimizers-mnist-small", "mahalanobis[on=logits]", "fashion-mnist"),
    ("optimizers-mnist-small", "entropy", "omniglot"),
)


class Measured(NamedTuple):
    """The share of ID images among the flagged (divisions,), and the share of outliers found (divisions,)."""

    false: np.ndarray
    found: np.ndarray


def measure(
    id_scores: np.ndarray, ood_scores: np.ndarray, *, frames: int = 1, seed: int = 0
) -> dict[str, Measured]:
    """Return both shares by procedure: ``threshold``, ``bh RATE`` and ``e-bh RATE``.

    Parameters
    ----------
    frames : how often each image is in the batch, for batches of dependent images.
    """
    draw = np.random.default_rng(seed)
    outlier = np.arange(BATCH) < OUTLIERS
    threshold = ConformalGuarantee.for_rate(FALSE_ALARMS, CALIBRATION)
    guarantees = {
        f"{name} {rate:g}": BatchGuarantee(rate, CALIBRATION, dependent)
        for name, dependent in (("bh", False), ("e-bh", True))
        for rate in RATES
    }
    shares: dict[str, list[tuple[float, float]]] = {}
    for _ in range(DIVISIONS):
        known = draw.choice(id_scores, CALIBRATION + (BATCH - OUTLIERS) // frames, replace=False)
        unknown = draw.choice(ood_scores, OUTLIERS // frames, replace=False)
        batch = np.repeat(np.concatenate([unknown, known[CALIBRATION:]]), frames)
        values = p_values(np.sort(known[:CALIBRATION]), batch)
        flags = {"threshold": values <= threshold.false_alarms}
        flags |= {name: g.flags(g.adjusted(values)) for name, g in guarantees.items()}
        for name, flagged in flags.items():
            false = (flagged & ~outlier).sum() / max(1, flagged.sum())
            shares.setdefault(name, []).append((false, flagged[outlier].mean()))
    return {name: Measured(*np.array(pairs).T) for name, pairs in shares.items()}


def stored(results: Path, folder: str, detector: str, group: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ID confidences and those of a group, of the first run of a detector."""
    tables = Results.read(results / folder)
    confidence = tables.confidences(detector)
    groups, roles = (np.array(tables.scores[name].to_pylist()) for name in ("group", "role"))
    return confidence[roles == "id"], confidence[groups == group]


def tables(results: Path) -> Iterator[Iterable[tuple[str, ...]]]:
    """Yield independent batches, and batches in which every image is there ten times."""
    for frames in (1, FRAMES):
        rows = []
        for folder, detector, group in CASES:
            measured = measure(*stored(results, folder, detector, group), frames=frames)
            cells = (f"{100 * of.false.mean():.1f} / {100 * of.found.mean():.1f}" for of in measured.values())
            rows.append((f"{detector}, {group}", *cells))
        yield rows
