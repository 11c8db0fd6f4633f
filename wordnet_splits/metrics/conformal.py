"""Split conformal prediction: a threshold on confidences with a guaranteed rate of false alarms.

Calibrated on n ID scores that the detector was not fitted on, exchangeable with the ID images of later use:

- p-value of a score s: (1 + number of calibration scores <= s) / (n + 1).
- An image is flagged as OOD if its p-value is at most ``false_alarms``, that is, if its score is below the
  k-th smallest calibration score, k = floor(false_alarms (n + 1)).
- The probability that an ID image is flagged is k / (n + 1), and less if scores are equal. The rate of a
  calibrated detector is Beta(k, n + 1 - k); it flags a beta-binomial number of m ID images.

References
----------
Vovk, Gammerman and Shafer. Algorithmic Learning in a Random World. Springer, 2005.
Vovk. Conditional validity of inductive conformal predictors. ACML 2012 (the beta law).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.tabular import Jsonable
from wordnet_splits.metrics.counts import Array

ROUNDING = 1e-9
"""Slack of the rank: 0.05 * 200 is 10.000000000000002 in binary."""


@dataclass(frozen=True)
class ConformalGuarantee(Jsonable):
    """The guarantee of a threshold that was calibrated on some images.

    Attributes
    ----------
    requested : the greatest acceptable probability of a false alarm, in (0, 1).
    images : n, the calibration images.
    rank : k; the threshold is the k-th smallest calibration score.
    """

    requested: float
    images: int
    rank: int

    @classmethod
    def for_rate(cls, requested: float, images: int, *, where: str | None = None) -> ConformalGuarantee:
        """Return the guarantee for a rate of false alarms and a number of calibration images.

        Raises
        ------
        DataError : the rate is not in (0, 1), or there are too few images to keep it and flag anything.
        """
        if not 0 < requested < 1:
            raise DataError(f"a rate of false alarms of {requested:g} is not between 0 and 1", where=where)
        rank = math.floor(requested * (images + 1) + ROUNDING)
        if rank < 1:
            least = math.ceil(1 / requested - ROUNDING) - 1
            raise DataError(
                f"{images:,} calibration images are too few for a rate of false alarms of {requested:g}, "
                f"which takes {least:,}",
                where=where,
                hint="accept a greater rate, or give more ID validation images",
            )
        return cls(float(requested), int(images), min(rank, images))

    @property
    def false_alarms(self) -> float:
        """The probability that an ID image is flagged: k / (n + 1), at most ``requested``."""
        return self.rank / (self.images + 1)

    @property
    def coverage(self) -> float:
        """The probability that an ID image is accepted."""
        return 1 - self.false_alarms

    def rates(self, level: float = 0.95) -> tuple[float, float]:
        """Return the central interval of a calibrated detector's false-alarm rate."""
        from scipy.stats import beta

        tail = (1 - level) / 2
        law = beta(self.rank, self.images + 1 - self.rank)
        return float(law.ppf(tail)), float(law.ppf(1 - tail))

    def counts(self, images: int, level: float = 0.95) -> tuple[int, int]:
        """Return the central interval of the number of false alarms among so many ID images."""
        from scipy.stats import betabinom

        tail = (1 - level) / 2
        law = betabinom(images, self.rank, self.images + 1 - self.rank)
        return int(law.ppf(tail)), int(law.ppf(1 - tail))


def p_values(calibration: Array, scores: Array) -> Array:
    """Return the conformal p-value (m,) of each score.

    Parameters
    ----------
    calibration : (n,) confidences of ID images, ascending.
    scores : (m,) of the same type.
    """
    return np.asarray((1 + np.searchsorted(calibration, scores, side="right")) / (len(calibration) + 1))
