"""Power of a benchmark: the smallest difference between two detectors that its OOD images can show.

Both detectors score the same images. The difference of a metric on an OOD set is the mean over its n images
of paired differences: of the share of ID images that score higher (AUROC), of acceptance at 95% TPR (FPR95).
The difference of image i, of class c in subtree s, is D + u_s + v_c + e_i, with independent parts of
variances `Components`; the m ID images add a part of their own. The variance of the estimated D is then

- over images: (subtrees + classes + images) / n + id_images / m
- over classes: (subtrees + classes) / k_c + images / n + id_images / m
- over subtrees: subtrees / k_s + classes / k_c + images / n + id_images / m

with k clusters of equal size, or n^2 / sum of n_j^2 for clusters of n_j images (Kish). The hypothesis D = 0
is tested by t with the degrees of freedom of `ClusterDesign` (over images: normal); its power is that of the
noncentral t. In a mean over sets the ID parts are taken as fully correlated.

References
----------
Kish, Survey Sampling, 1965, section 8.2. Hanley and McNeil, The Meaning and Use of the Area under a ROC
Curve, Radiology 1982. Johnson and Welch, Applications of the Non-Central t-Distribution, Biometrika 1940.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import NamedTuple

import numpy as np

from wordnet_splits.metrics.counts import Array
from wordnet_splits.metrics.uncertainty import ClusterDesign, effective_number

POWER, SIGNIFICANCE, TPR = 0.8, 0.05, 0.95
METRICS = ("auroc", "fpr95")
MOST_CLASSES = 100_000
"""Largest number of classes that is tried."""


class Components(NamedTuple):
    """Variances of the parts of a paired difference; ``id_images`` is the variance of the ID part times m."""

    subtrees: float
    classes: float
    images: float
    id_images: float


def unpaired(metric: str, auroc: float) -> Components:
    """Return the variances of a single detector of that AUROC, the units of components.

    ``auroc``: shares of ID images above an OOD image have the variance A (1 - A)^2 / (2 - A), shares of OOD
    images below an ID image A^2 (1 - A) / (1 + A) (Hanley and McNeil's Q1 - A^2 and Q2 - A^2). ``fpr95``:
    F (1 - F), and for the threshold the delta method, given normal scores of equal variance.
    """
    from scipy.special import ndtr, ndtri  # takes a while to import

    if metric == "auroc":
        of_ood, of_id = auroc * (1 - auroc) ** 2 / (2 - auroc), auroc**2 * (1 - auroc) / (1 + auroc)
    else:
        strict = ndtri(TPR)
        z = strict - sqrt(2) * ndtri(auroc)
        of_ood, of_id = ndtr(z) * ndtr(-z), TPR * (1 - TPR) * exp(strict**2 - z**2)
    return Components(of_ood, of_ood, of_ood, of_id)


@dataclass(frozen=True, eq=False)
class OodSet:
    """An OOD set: components by metric, and level -> number of images of each class, of each subtree.

    A set of a single cluster is not drawn again: only its images vary.
    """

    components: Mapping[str, Components]
    sizes: Mapping[str, Array]

    def variance(self, metric: str, over: str) -> float:
        """Return the variance of the OOD part of the difference."""
        subtrees, classes, images, _ = self.components[metric]
        total = float(self.sizes["classes"].sum())
        if over == "images":
            return (subtrees + classes + images) / total
        if len(self.sizes[over]) == 1:
            return images / total
        of_subtrees, of_classes = (float(np.sum((self.sizes[k] / total) ** 2)) for k in (over, "classes"))
        return subtrees * of_subtrees + classes * of_classes + images / total


def smallest_difference(sets: Sequence[OodSet], id_images: int, metric: str, over: str) -> float | None:
    """Return the difference of the mean over OOD sets that a two-sided test at 5% shows with 80% power.

    None if no set has several clusters.

    Parameters
    ----------
    sets : at least one.
    id_images : number of ID images, at least 1.
    over : ``images``, ``classes`` or ``subtrees``.
    """
    from scipy.special import nctdtrinc, ndtri, stdtrit  # takes a while to import

    share = 1 / len(sets)
    of_id = sum(share * sqrt(part.components[metric].id_images) for part in sets) ** 2 / id_images
    error = sqrt(of_id + sum(share**2 * part.variance(metric, over) for part in sets))
    if over == "images":
        return float(error * (ndtri(1 - SIGNIFICANCE / 2) + ndtri(POWER)))
    counts = tuple(effective_number(sizes) for part in sets if len(sizes := part.sizes[over]) > 1)
    if not counts:
        return None
    df = ClusterDesign((share,) * len(counts), counts).df
    return float(error * nctdtrinc(df, 1 - POWER, stdtrit(df, 1 - SIGNIFICANCE / 2)))


def classes_needed(difference: float, sets: Sequence[OodSet], id_images: int) -> int | None:
    """Return the number of OOD classes of the same sizes that show a difference in AUROC over classes.

    The classes of every set with several change in proportion. None if no number is enough: then the ID
    images, or sets of a single class, limit the error.
    """
    sizes = [np.sort(part.sizes["classes"]) for part in sets]
    counts = list(map(len, sizes))
    several = sum(count for count in counts if count > 1)

    def shown(total: int) -> bool:
        grown = [
            OodSet(part.components, {"classes": size[np.arange(new) * count // new]})
            for part, size, count in zip(sets, sizes, counts, strict=True)
            for new in [1 if count == 1 else max(2, round(count * total / several))]
        ]
        smallest = smallest_difference(grown, id_images, "auroc", "classes")
        return smallest is not None and smallest <= difference

    least = 2 * sum(count > 1 for count in counts)
    needed = least + bisect_left(range(least, MOST_CLASSES), True, key=shown)
    return needed + counts.count(1) if several and needed < MOST_CLASSES else None
