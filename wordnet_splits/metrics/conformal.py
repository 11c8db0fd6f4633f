"""Split conformal prediction: a threshold on confidences with a guaranteed rate of false alarms.

Calibrated on n ID scores that the detector was not fitted on, exchangeable with the ID images of later use:

- p-value of a score s: (1 + number of calibration scores <= s) / (n + 1).
- An image is flagged as OOD if its p-value is at most ``false_alarms``, that is, if its score is below the
  k-th smallest calibration score, k = floor(false_alarms (n + 1)).
- The probability that an ID image is flagged is k / (n + 1), and less if scores are equal. The rate of a
  calibrated detector is Beta(k, n + 1 - k); it flags a beta-binomial number of m ID images.

In a batch of m images, Benjamini and Hochberg's procedure bounds the false-discovery rate instead: the
expected share of ID images among the flagged images (`BatchGuarantee`).

References
----------
Vovk, Gammerman and Shafer. Algorithmic Learning in a Random World. Springer, 2005.
Vovk. Conditional validity of inductive conformal predictors. ACML 2012 (the beta law).
Bates, Candes, Lei, Romano and Sesia. Testing for outliers with conformal p-values. Annals of Statistics 2023
(theorem 2: p-values that share a calibration set are PRDS, so the procedure of 1995 holds).
Wang and Ramdas. False discovery rate control with e-values. JRSS B 2022 (e-BH, for any dependence).
Vovk and Wang. E-values: calibration, combination and applications. Annals of Statistics 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.jsonable import Jsonable
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


@dataclass(frozen=True)
class BatchGuarantee(Jsonable):
    """The guarantee of outliers that are flagged together, in a batch of images.

    On average at most a share ``fdr`` of the flagged images are ID (0 if none is flagged), more exactly
    ``fdr`` times the share of ID images in the batch. The batch's ID images must be exchangeable with the
    calibration images, all together; with ``dependent`` each by itself, and they may depend on each other.

    Attributes
    ----------
    fdr : the greatest acceptable false-discovery rate, in (0, 1).
    images : n, the calibration images.
    dependent : e-BH in place of Benjamini-Hochberg.
    """

    fdr: float
    images: int
    dependent: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.fdr < 1:
            raise DataError(
                f"the false-discovery rate must be between 0 and 1, got {self.fdr:g}", where="fdr"
            )

    def adjusted(self, values: Array) -> Array:
        """Return the least rate (m,) that flags each image: the least m p_(k)/k of p-values from its own."""
        m = len(values)
        order = np.argsort(values, kind="stable")[::-1]
        scaled = np.minimum(values[order] * self._penalty(m) * m / np.arange(m, 0, -1), 1)
        adjusted = np.empty(m)
        adjusted[order] = np.minimum.accumulate(scaled)
        return adjusted

    def flags(self, adjusted: Array) -> Array:
        """Return whether each image is flagged (m,), from `adjusted`."""
        return np.asarray(adjusted <= self.fdr * (1 + ROUNDING))

    def least(self, batch: int) -> int:
        """Return the fewest images that can be flagged in a batch of m: 1 if n + 1 >= m/fdr.

        Raises
        ------
        DataError : none can be flagged, even if all images are outliers.
        """
        smallest = self._penalty(batch) / (self.images + 1)
        if smallest > self.fdr * (1 + ROUNDING):
            raise DataError(
                f"{self.images:,} calibration images are too few for a false-discovery rate of {self.fdr:g}: "
                f"the adjusted p-values of {batch:,} images are at least {smallest:.3g}",
                where="fdr",
                hint="accept a greater rate, or export with more ID validation images",
            )
        return max(1, math.ceil(batch * smallest / self.fdr - ROUNDING))

    def images_for_one(self, batch: int) -> int:
        """Return the fewest calibration images with which a single image of a batch can be flagged."""
        penalty = replace(self, images=batch)._penalty(batch)
        return math.ceil(batch * penalty / self.fdr - ROUNDING) - 1

    def _penalty(self, batch: int) -> float:
        """Return the factor of p-values that may depend on each other.

        1/(H p) is an e-value for H = 1 + 1/2 + ... + 1/(n + 1), the mean of 1/p over its n + 1 values, and
        e-BH is Benjamini-Hochberg on the reciprocals of e-values. For fewer images than that,
        H = 1 + ... + 1/m is enough (Benjamini and Yekutieli 2001).
        """
        return float(np.sum(1 / np.arange(1, min(batch, self.images + 1) + 1))) if self.dependent else 1.0


def p_values(calibration: Array, scores: Array) -> Array:
    """Return the conformal p-value (m,) of each score.

    Parameters
    ----------
    calibration : (n,) confidences of ID images, ascending.
    scores : (m,) of the same type.
    """
    return np.asarray((1 + np.searchsorted(calibration, scores, side="right")) / (len(calibration) + 1))
