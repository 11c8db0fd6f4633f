"""How smooth a set of pictures is beside a reference, which shows how it was resized.

A set decimated without a low-pass filter is rougher than photographs are, and a detector that tells it from
CIFAR has learned the resizer. Total variation shows it; content moves it too, so the sure test is a set
against the `fix` rendering of its own originals. Source: the smoothness score of CSI (Tack et al. 2020,
appendix); the signed form beside it, the intervals and the verdict are ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from fix_resize.auditing.auroc import Estimate, bootstrap_auroc
from wordnet_splits.errors import DataError

Scores = npt.NDArray[np.float64]

CLEAN_WITHIN: Final = 0.03
"""Largest distance of the paired AUROC from one half at which a set counts as clean."""

SUSPICIOUS_ABOVE: Final = 0.70
"""Where originals are lacking, a set is suspicious when the interval of its AUROC lies above this."""

BLOCK: Final = 512
"""Pictures at a time, so that memory stays flat."""


def total_variation(pictures: Iterable[npt.NDArray[np.uint8]] | npt.NDArray[np.uint8]) -> Scores:
    """Return the total variation of each picture, (n,) in grey levels per pixel; higher is rougher.

    The mean, over the (h-1) x (w-1) pixels that have both, of the L2 norms of the RGB differences to the
    right and to the lower neighbour, added.

    Parameters
    ----------
    pictures : (n, h, w, 3) uint8, or (h, w, 3) pictures one by one; at least 2 x 2 pixels each.
    """
    if isinstance(pictures, np.ndarray) and pictures.ndim == 4:
        blocks = [pictures[start : start + BLOCK] for start in range(0, len(pictures), BLOCK)]
        return np.concatenate([_variation(block) for block in blocks]) if blocks else np.empty(0)
    return np.array([_variation(picture[None])[0] for picture in pictures], dtype=np.float64)


def _variation(block: npt.NDArray[np.uint8]) -> Scores:
    if block.dtype != np.uint8 or block.shape[3] != 3 or min(block.shape[1:3]) < 2:
        raise DataError(
            f"a picture must be uint8 RGB of at least 2 x 2 pixels, not {block.dtype} {block.shape[1:]}"
        )
    levels = block.astype(np.int32)
    here = levels[:, :-1, :-1]
    right, lower = levels[:, :-1, 1:] - here, levels[:, 1:, :-1] - here
    norms = np.sqrt((right**2).sum(axis=3)) + np.sqrt((lower**2).sum(axis=3))
    mean: Scores = norms.mean(axis=(1, 2))
    return mean


def smoothness(variation: Scores, reference: Scores) -> Scores:
    """Return |TV - mean TV of the reference| for each picture, (n,) >= 0: how unlike the reference it is."""
    score: Scores = np.abs(variation - reference.mean())
    return score


@dataclass(frozen=True)
class Audit:
    """What the total variation of a set says of how it was resized.

    Attributes
    ----------
    signed : AUROC of TV, the set against the reference; above one half the set is rougher.
    unsigned : AUROC of the smoothness score, the set against the reference.
    paired : AUROC of TV, the set against the `fix` rendering of its own originals; None without them.
    verdict : `clean` or `altered` where originals are at hand; else `suspicious` or `no warning`.
    """

    signed: Estimate
    unsigned: Estimate
    paired: Estimate | None
    verdict: Literal["clean", "altered", "suspicious", "no warning"]

    @property
    def suspicious(self) -> bool:
        """Whether the set would be warned of without its originals: the interval lies above .70."""
        return self.unsigned.lo > SUSPICIOUS_ABOVE

    @property
    def clean(self) -> bool:
        """Whether the check came out well: no difference from `fix`, or no warning."""
        return self.verdict in ("clean", "no warning")

    @property
    def points(self) -> float | None:
        """Percentage points of the paired AUROC above one half (rougher than `fix`), None without it."""
        return None if self.paired is None else (self.paired.value - 0.5) * 100

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.points is not None:
            by = abs(self.points)
            relation = "within" if self.verdict == "clean" else "beyond"
            limit = CLEAN_WITHIN * 100
            return f"{self.verdict}: {by:.1f} points from its own fix rendering, {relation} {limit:.0f}"
        low = f"{self.unsigned.lo:.3f}"
        if self.verdict == "suspicious":
            return (
                f"suspicious (interval above {SUSPICIOUS_ABOVE:.2f}, from {low}); originals would settle it"
            )
        return f"no warning (interval from {low}); without originals this proves nothing"


def audit(
    variation: Scores,
    reference: Scores,
    rendered: Scores | None = None,
    *,
    with_original: Scores | None = None,
) -> Audit:
    """Compare a set with a reference, and with the `fix` rendering of its own originals where at hand.

    Parameters
    ----------
    variation : (n,) total variation of the set's pictures.
    reference : (m,) that of the reference's.
    rendered : (k,) that of the `fix` rendering of the set's originals.
    with_original : (k,) that of the pictures whose originals were rendered, if not the whole set.
    """
    signed = bootstrap_auroc(variation, reference, key="signed")
    unsigned = bootstrap_auroc(
        smoothness(variation, reference), smoothness(reference, reference), key="unsigned"
    )
    if rendered is None:
        found = Audit(signed, unsigned, None, "no warning")
        return replace(found, verdict="suspicious") if found.suspicious else found
    paired = bootstrap_auroc(variation if with_original is None else with_original, rendered, key="paired")
    clean = abs(paired.value - 0.5) <= CLEAN_WITHIN
    return Audit(signed, unsigned, paired, "clean" if clean else "altered")
