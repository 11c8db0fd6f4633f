"""The power that is promised is the power of the test, on nested classes of known variance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, nct, norm
from scipy.stats import t as student

from wordnet_splits.metrics import auroc, fpr95_id_positive, rank_counts
from wordnet_splits.metrics.power import (
    Components,
    OodSet,
    classes_needed,
    smallest_difference,
    unpaired,
)
from wordnet_splits.metrics.uncertainty import ClusterDesign

TRIALS, PER_CLASS = 2000, 20
PARTS = Components(0.3, 0.5, 4.0, 0.0)


def made_set(classes: int, subtrees: int, parts: Components = PARTS, per_class: int = PER_CLASS) -> OodSet:
    sizes = {"classes": [per_class] * classes, "subtrees": [per_class * classes // subtrees] * subtrees}
    return OodSet({"auroc": parts, "fpr95": parts}, {over: np.array(of) for over, of in sizes.items()})


@pytest.mark.parametrize("clusters", [5, 10, 40])
@pytest.mark.parametrize("over", ["classes", "subtrees"])
def test_power_lies_within_the_interval_of_simulated_power(clusters: int, over: str) -> None:
    per_subtree = 1 if over == "classes" else 3
    rng = np.random.default_rng(clusters)
    shape = (TRIALS, clusters, per_subtree, PER_CLASS)
    drawn = made_set(clusters * per_subtree, clusters)
    difference = smallest_difference([drawn], 1, "auroc", over)
    images = difference + sum(
        rng.normal(0, np.sqrt(variance), (*shape[: 2 + n], *[1] * (2 - n)))
        for n, variance in enumerate(PARTS[:3])
    )
    means = images.mean(axis=(2, 3))
    statistic = means.mean(axis=1) / means.std(axis=1, ddof=1) * np.sqrt(clusters)
    shown = int((np.abs(statistic) > student.ppf(0.975, clusters - 1)).sum())
    lo, hi = binom.interval(0.95, TRIALS, 0.8)
    assert lo <= shown <= hi


@pytest.mark.parametrize("count", [2, 3, 5, 17, 200])
def test_the_formula_is_that_of_the_noncentral_t(count: int) -> None:
    drawn = made_set(count, count, Components(0.3, 0.5, 4.0, 2.0))
    error = np.sqrt(0.8 / count + 4 / (PER_CLASS * count) + 2 / 500)
    shift = smallest_difference([drawn], 500, "auroc", "classes") / error
    critical = student.ppf(0.975, count - 1)
    assert nct.sf(critical, count - 1, shift) == pytest.approx(0.8, abs=1e-4)
    plain = smallest_difference([drawn], 500, "auroc", "images")
    n = PER_CLASS * count
    assert plain == pytest.approx((norm.ppf(0.975) + norm.ppf(0.8)) * np.sqrt(4.8 / n + 2 / 500))


def test_the_number_of_classes_is_the_least_that_shows_the_difference() -> None:
    parts = Components(0.001, 0.002, 0.1, 0.05)
    needed = classes_needed(0.02, [made_set(3, 3, parts)], 5000)
    assert needed is not None
    below, at = (
        smallest_difference([made_set(k, k, parts)], 5000, "auroc", "classes") for k in (needed - 1, needed)
    )
    assert at <= 0.02 < below
    assert classes_needed(0.02, [made_set(3, 3, parts)], 50) is None  # the ID images alone are too few
    assert classes_needed(0.02, [made_set(1, 1, parts)], 5000) is None


def test_a_mean_keeps_a_set_of_one_class_as_it_is() -> None:
    single, several = made_set(1, 1), made_set(6, 6)
    assert smallest_difference([single, single], 10, "auroc", "classes") is None
    alone = smallest_difference([several], 10, "auroc", "classes")
    both = smallest_difference([several, single], 10, "auroc", "classes")
    error = np.sqrt(0.8 / 6 + 4 / 120)
    assert both / alone == pytest.approx(np.sqrt(error**2 + 4 / PER_CLASS) / 2 / error)


@pytest.mark.parametrize("value", [0.6, 0.8, 0.95])
def test_the_units_are_the_variances_of_a_detector(value: float) -> None:
    rng = np.random.default_rng(0)
    rate = value / (1 - value)  # negative exponential scores have exactly Hanley and McNeil's moments
    outside, inside = rng.exponential(1 / rate, 200_000), rng.exponential(1, 200_000)
    above, below = np.exp(-outside), 1 - np.exp(-rate * inside)
    assert above.mean() == pytest.approx(value, abs=0.005)
    units = unpaired("auroc", value)
    assert (above.var(), below.var()) == pytest.approx((units.images, units.id_images), rel=0.05)
    shift = np.sqrt(2) * norm.ppf(value)
    values = [
        float(fpr95_id_positive(rank_counts(rng.normal(shift, 1, 1000), rng.normal(0, 1, 1000))))
        for _ in range(300)
    ]
    units = unpaired("fpr95", value)
    assert np.var(values) == pytest.approx((units.images + units.id_images) / 1000, rel=0.35)
    assert float(auroc(rank_counts(inside[:2000], outside[:2000]))) == pytest.approx(value, abs=0.03)


@pytest.mark.parametrize("counts", [(5, 40), (10, 10)])
def test_power_of_a_mean_over_sets(counts: tuple[int, int]) -> None:
    sets, rng = [made_set(k, k) for k in counts], np.random.default_rng(0)
    difference = smallest_difference(sets, 1, "auroc", "classes")
    classes = [rng.normal(difference, np.sqrt(0.8 + 4 / PER_CLASS), (TRIALS, k)) for k in counts]
    error = np.sqrt(sum(c.var(axis=1, ddof=1) / c.shape[1] for c in classes)) / 2
    statistic = sum(c.mean(axis=1) for c in classes) / 2 / error
    freedom = ClusterDesign((0.5, 0.5), counts).df
    shown = int((np.abs(statistic) > student.ppf(0.975, freedom)).sum())
    lo, hi = binom.interval(0.95, TRIALS, 0.8)
    assert lo <= shown <= hi
