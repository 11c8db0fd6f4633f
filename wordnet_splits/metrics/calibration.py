"""Calibration of a classifier on ID images: calibration errors, Brier score, negative log-likelihood.

The functions take softmax probabilities (n, K) and labels (n,). Lower is better for all. The gap of
a bin is the difference between the share of correct predictions and the mean probability in it.

`ece` (bins ((b-1)/B, b/B] of equal width) and `ece_equal_mass` look at the predicted class alone, and weight
the absolute gaps by the share of images; `static_calibration_error` (equal width, weighted by share) and
`adaptive_calibration_error` (equal mass, unweighted) are means over all classes.

Bins of equal mass hold n // B images, the first n % B bins one more, in ascending order of probability.
Where equal probabilities lie on both sides of an edge, each bin gets its part of their mean: row order never
changes a value.

References
----------
Guo et al., On Calibration of Modern Neural Networks, ICML 2017 (ECE, NLL). Nguyen and O'Connor, Posterior
Calibration and Exploratory Analysis for Natural Language Processing Models, EMNLP 2015 (bins of equal mass).
Nixon et al., Measuring Calibration in Deep Learning, CVPR Workshops 2019 (static and adaptive error). Brier,
Verification of Forecasts Expressed in Terms of Probability, Monthly Weather Review 78, 1950.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics.counts import Array, Scores, to_numpy
from wordnet_splits.metrics.draws import resample_counts

BINS: Final = 15
"""Bins of the calibration errors, as of Guo et al."""
TOLERANCE: Final = 1e-3
"""Largest deviation of a sum of probabilities from 1: softmax in half precision is that exact."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of a classifier on n labelled images, sorted, so that row order changes no value.

    Attributes
    ----------
    confidence : (n,) probability of the predicted class.
    correct : (n,) whether that is the label.
    log_likelihood : (n,) log-probability of the label.
    brier : (n,) squared distance between the probabilities and the label's unit vector.
    """

    confidence: Array
    correct: Array
    log_likelihood: Array
    brier: Array

    def __post_init__(self) -> None:
        columns = [np.asarray(getattr(self, name), dtype=np.float64) for name in self.__dataclass_fields__]
        if not len(columns[0]):
            raise DataError("there are no labelled images", where="calibration")
        order = np.lexsort(columns[::-1])
        for name, column in zip(self.__dataclass_fields__, columns, strict=True):
            object.__setattr__(self, name, column[order])

    @classmethod
    def of(cls, probabilities: Scores, labels: Scores, *, name: str | None = None) -> Outputs:
        """Return the outputs of softmax probabilities (n, K) and labels (n,).

        Raises
        ------
        DataError : another shape, values that are not probabilities, or labels that are not columns.
        """
        table, classes = checked_probabilities(probabilities, labels, name=name)
        target = table[np.arange(len(table)), classes]
        with np.errstate(divide="ignore"):
            likelihood = np.log(target)
        brier = (table**2).sum(axis=1) - 2 * target + 1
        return cls(table.max(axis=1), table.argmax(axis=1) == classes, likelihood, brier)

    @classmethod
    def concat(cls, parts: Sequence[Outputs]) -> Outputs:
        """Return the outputs on the images of all parts."""
        return cls(*(np.concatenate([getattr(p, f) for p in parts]) for f in cls.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.confidence)


def checked_probabilities(
    probabilities: Scores, labels: Scores, *, name: str | None = None
) -> tuple[Array, Array]:
    """Return probabilities (n, K) as float64 and labels (n,) as integers. Raises as `Outputs.of`."""
    where = f"{name}: probabilities" if name else "probabilities"
    table, classes = to_numpy(probabilities, where=where), to_numpy(labels, where="labels")
    if table.ndim != 2 or table.dtype.kind not in "fiu" or not table.size:
        raise DataError(f"a table (n, K) of numbers expected, found shape {table.shape}", where=where)
    table = table.astype(np.float64)
    if not np.isfinite(table).all() or (table < 0).any() or np.abs(table.sum(axis=1) - 1).max() > TOLERANCE:
        raise DataError("the rows are not probabilities that sum to 1", where=where, hint="pass the softmax")
    if classes.shape != table.shape[:1] or classes.dtype.kind not in "iu":
        raise DataError(f"one integer for each of {len(table)} rows expected", where="labels")
    if classes.min() < 0 or classes.max() >= table.shape[1]:
        raise DataError(
            f"labels from {classes.min()} to {classes.max()} for {table.shape[1]} columns",
            where="labels",
            hint="leave out images without a label",
        )
    return table, classes.astype(np.int64)


def ece(probabilities: Scores, labels: Scores, *, bins: int = BINS, name: str | None = None) -> float:
    """Expected calibration error of the predicted class in bins of equal width (Guo et al., eq. 3).

    Lower is better, range [0, 1].

    Example
    -------
    >>> round(ece([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]], [0, 1, 1]), 4)  # (2 |0.5 - 0.9| + |1 - 0.6|) / 3
    0.4
    """
    return _width_error(Outputs.of(probabilities, labels, name=name), bins)


def ece_equal_mass(
    probabilities: Scores, labels: Scores, *, bins: int = BINS, name: str | None = None
) -> float:
    """Expected calibration error of the predicted class in bins of equal mass (Nguyen and O'Connor 2015).

    Some papers call it the adaptive ECE; Nixon et al.'s is `adaptive_calibration_error`. Lower is better,
    range [0, 1].
    """
    outputs = Outputs.of(probabilities, labels, name=name)
    return float(np.abs(_mass_gaps(outputs, bins)).sum() / len(outputs))


def brier_score(probabilities: Scores, labels: Scores, *, name: str | None = None) -> float:
    """Mean squared distance between the probabilities and the label's unit vector (Brier 1950).

    Summed over the K classes, so twice the usual value for two classes. Lower is better, range [0, 2].
    """
    return float(np.mean(Outputs.of(probabilities, labels, name=name).brier))


def nll(probabilities: Scores, labels: Scores, *, name: str | None = None) -> float:
    """Mean negative log-likelihood of the label, in nats; lower is better, infinite at probability 0."""
    return float(-np.mean(Outputs.of(probabilities, labels, name=name).log_likelihood))


def static_calibration_error(
    probabilities: Scores, labels: Scores, *, bins: int = BINS, name: str | None = None
) -> float:
    """Mean over all classes of the calibration error in bins of equal width (Nixon et al., eq. 2).

    Lower is better, range [0, 1].
    """
    errors = [_width_error(outputs, bins) for outputs in _each_class(probabilities, labels, name)]
    return float(np.mean(errors))


def adaptive_calibration_error(
    probabilities: Scores, labels: Scores, *, bins: int = BINS, name: str | None = None
) -> float:
    """Mean gap over all classes and bins of equal mass (Nixon et al., eq. 3); empty bins are left out.

    Lower is better, range [0, 1].
    """
    gaps = []
    for outputs in _each_class(probabilities, labels, name):
        sizes = np.diff(_mass_edges(len(outputs), bins))
        sums = _mass_gaps(outputs, bins)
        gaps.append(np.abs(sums[sizes > 0]) / sizes[sizes > 0])
    return float(np.mean(np.concatenate(gaps)))


def calibration_values(outputs: Outputs) -> dict[str, float]:
    """Return `ece`, `ece_equal_mass`, `brier_score` and `nll` of the outputs on one set of images."""
    return {name: float(values[0]) for name, values in _values(outputs, _once(outputs)).items()}


def calibration_replicates(
    sets: Mapping[str, Outputs], *, replicates: int, seed: int = 0
) -> dict[str, Array]:
    """Return `calibration_values` (replicates,) of bootstrap samples, drawn in each set on its own.

    Samples are drawn by `bootstrap_replicates` over the sorted images of a set.

    Parameters
    ----------
    sets : name of a set -> outputs on its images.
    """
    pooled = Outputs.concat(list(sets.values()))
    columns = [np.concatenate([getattr(o, f) for o in sets.values()]) for f in Outputs.__dataclass_fields__]
    order = np.lexsort(columns[::-1])
    sizes = {name: len(outputs) for name, outputs in sets.items()}
    parts: dict[str, list[Array]] = {}
    for counts in resample_counts(sizes, replicates=replicates, seed=seed):
        for name, values in _values(pooled, counts[:, order].astype(np.float64)).items():
            parts.setdefault(name, []).append(values)
    return {name: np.concatenate(of_metric) for name, of_metric in parts.items()}


def _values(outputs: Outputs, weights: Array) -> dict[str, Array]:
    """Return the values (r,) of r samples of n images, given as weights (r, n) of the images."""
    gaps, n = _cumulative_gaps(outputs, weights), len(outputs)
    return {
        "ece": np.abs(_width_sums(outputs, gaps, BINS)).sum(axis=1) / n,
        "ece_equal_mass": np.abs(_mass_sums(outputs, weights, gaps, BINS)).sum(axis=1) / n,
        "brier_score": (weights * outputs.brier).sum(axis=1) / n,
        "nll": -(weights * outputs.log_likelihood).sum(axis=1) / n,
    }


def _once(outputs: Outputs) -> Array:
    """Return the weights (1, n) of the sample that holds every image once."""
    return np.ones((1, len(outputs)))


def _width_error(outputs: Outputs, bins: int) -> float:
    gaps = _width_sums(outputs, _cumulative_gaps(outputs, _once(outputs)), bins)
    return float(np.abs(gaps).sum() / len(outputs))


def _mass_gaps(outputs: Outputs, bins: int) -> Array:
    """Return the sum of gaps (bins,) in each bin of equal mass."""
    weights = _once(outputs)
    return np.asarray(_mass_sums(outputs, weights, _cumulative_gaps(outputs, weights), bins)[0])


def _each_class(probabilities: Scores, labels: Scores, name: str | None) -> Iterator[Outputs]:
    """Yield the outputs of each class as if it were predicted for every image."""
    table, classes = checked_probabilities(probabilities, labels, name=name)
    nothing = np.zeros(len(table))
    for column in range(table.shape[1]):
        yield Outputs(table[:, column], classes == column, nothing, nothing)


def _cumulative_gaps(outputs: Outputs, weights: Array) -> Array:
    return _cumulative(weights * (outputs.correct - outputs.confidence))


def _width_sums(outputs: Outputs, gaps: Array, bins: int) -> Array:
    """Return the sum of gaps (r, bins) in each bin of equal width, from the cumulative gaps (r, n + 1)."""
    edges = np.searchsorted(outputs.confidence, np.arange(1, _checked_bins(bins)) / bins, side="right")
    return np.asarray(np.diff(gaps[:, np.concatenate([[0], edges, [len(outputs)]])], axis=1))


def _mass_sums(outputs: Outputs, weights: Array, gaps: Array, bins: int) -> Array:
    """Return the sum of gaps (r, bins) in each bin of equal mass; weights of a row sum to n."""
    ends = np.append(np.flatnonzero(np.diff(outputs.confidence)), len(outputs) - 1) + 1
    ends = np.append(0, ends)  # of ties, within which the gaps are spread evenly
    edges, mass = _mass_edges(len(outputs), bins), _cumulative(weights)
    if len(ends) <= len(outputs):
        mass, gaps = mass[:, ends], gaps[:, ends]
    at_edges = [np.interp(edges, x, y) for x, y in zip(mass, gaps, strict=True)]
    return np.asarray(np.diff(np.array(at_edges), axis=1))


def _mass_edges(n: int, bins: int) -> Array:
    sizes = np.full(_checked_bins(bins), n // bins)
    sizes[: n % bins] += 1
    return np.concatenate([[0], np.cumsum(sizes)])


def _cumulative(values: Array) -> Array:
    sums = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=sums[:, 1:])
    return sums


def _checked_bins(bins: int) -> int:
    if bins < 1:
        raise DataError(f"the number of bins must be at least 1, not {bins}")
    return bins
