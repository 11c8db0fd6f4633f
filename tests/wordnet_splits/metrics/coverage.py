"""Coverage of 95% intervals over made data sets: images within classes within subtrees, of known variance.

``python -m tests.wordnet_splits.metrics.coverage [DATASETS]`` prints the table of docs/reference/power.md.

Scores of OOD images are the sum of normal effects of subtree, class and image; ID scores are normal in ten
classes. The true value is that of all possible images of the drawn classes (over images), or of all possible
classes and subtrees. Classes have 20 images, subtrees three classes; unequal ones have 5 to 80 images.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from wordnet_splits.base.workers import thread_count
from wordnet_splits.metrics import (
    ClusterDesign,
    Interval,
    ScoreSet,
    bootstrap_replicates,
    evaluate,
    interval,
    pool,
    resampling,
)
from wordnet_splits.metrics.uncertainty import FEW_CLUSTERS, scarce_units

METRICS = ("auroc", "fpr95_id_positive", "fpr95_ood_positive")
SUBTREE, CLASS, IMAGE = 0.5, 0.5, 1.0
"""Standard deviations of the effects."""
KNOWN = 1.5
"""Mean of ID scores, with standard deviation 1."""


class Case(NamedTuple):
    """A kind of data set: OOD sets of some clusters each, whose values are averaged."""

    over: str
    clusters: tuple[int, ...]
    unequal: bool = False

    @property
    def label(self) -> str:
        """Level and clusters, as in the table."""
        several = "mean of sets of " if len(self.clusters) > 1 else ""
        sizes = ", unequal" if self.unequal else ""
        return f"{several}{' and '.join(map(str, self.clusters))} {self.over}{sizes}"


CASES = (
    *(Case("images", (k,)) for k in (5, 10, 20, 40)),
    *(Case(over, (k,)) for over in ("classes", "subtrees") for k in (3, 5, 10, 20, 40)),
    *(Case(over, (k,), True) for over in ("classes", "subtrees") for k in (5, 10, 20, 40)),
    *(Case("classes", counts) for counts in ((60,), (3, 60), (6, 6))),
)


def _ood_set(random: np.random.Generator, case: Case, number: int) -> tuple[ScoreSet, np.ndarray, np.ndarray]:
    """A set, and the share and mean score of each of its classes."""
    k = case.clusters[number]
    per = 3 if case.over == "subtrees" else 1
    if case.unequal and per > 1:
        subtree = np.repeat(np.arange(k), random.integers(1, 6, k))
    else:
        subtree = np.repeat(np.arange(k), per)
    sizes = random.integers(5, 81, len(subtree)) if case.unequal else np.full(len(subtree), 20)
    means = random.normal(0, SUBTREE, k)[subtree] + random.normal(0, CLASS, len(subtree))
    scores = np.repeat(means, sizes) + random.normal(0, IMAGE, sizes.sum())
    clusters = None if case.over == "images" else np.repeat(subtree, sizes)
    return ScoreSet(f"set{number}", "near", scores, None, clusters), sizes / sizes.sum(), means


def _truth(shares: np.ndarray, means: np.ndarray, sd: float) -> dict[str, float]:
    """The values of infinitely many images whose scores are a mixture of normal ones."""

    def below(threshold: float) -> float:
        return float(shares @ norm.cdf((threshold - means) / sd))

    threshold = brentq(lambda t: below(t) - 0.95, -20, 20)
    return {
        "auroc": float(shares @ norm.cdf((KNOWN - means) / np.hypot(1, sd))),
        "fpr95_id_positive": 1 - below(KNOWN + norm.ppf(0.05)),
        "fpr95_ood_positive": float(norm.cdf(threshold - KNOWN)),
    }


def covered(case: Case, seed: int, replicates: int = 400) -> dict[str, tuple[int, float]]:
    """Where the truth lies in one made data set: 0 in the interval, -1 below, 1 above; and the half width."""
    random = np.random.default_rng([seed, *map(ord, case.label)])
    strata = np.repeat(np.arange(10), 50)
    known = ScoreSet("id", "id", random.normal(KNOWN, 1, 500), None, strata)
    drawn, truth, values = [], [], []
    sets = []
    for number in range(len(case.clusters)):
        ood, shares, means = _ood_set(random, case, number)
        sets.append([ood])
        if case.over == "images":
            truth.append(_truth(shares, means, IMAGE))
        else:
            total = float(np.sqrt(SUBTREE**2 + CLASS**2 + IMAGE**2))
            truth.append(_truth(np.ones(1), np.zeros(1), total))
        drawn.append(bootstrap_replicates([known, ood], METRICS, replicates=replicates, seed=seed))
        values.append(evaluate(pool([known, ood]), METRICS))
    found = {}
    for name in METRICS:
        value, true = (float(np.mean([row[name] for row in rows])) for rows in (values, truth))
        mean = np.mean([row[name] for row in drawn], axis=0)
        if case.over == "images":
            result: Interval = interval(value, mean)
        else:
            result = interval(value, mean, ClusterDesign.from_pools(sets), clip=True)
        found[name] = int(true > result.hi) - int(true < result.lo), (result.hi - result.lo) / 2
    return found


def rates(case: Case, datasets: int) -> dict[str, tuple[float, float]]:
    """Share of data sets whose interval covers the truth, and the mean half width, by metric."""
    results = [covered(case, seed) for seed in range(datasets)]
    return {
        name: (
            float(np.mean([r[name][0] == 0 for r in results])),
            float(np.mean([r[name][1] for r in results])),
        )
        for name in METRICS
    }


def mean_freedom(case: Case) -> float:
    """The degrees of freedom of made data sets, in the mean."""
    random = np.random.default_rng(0)
    designs = (
        ClusterDesign.from_pools([[_ood_set(random, case, n)[0]] for n in range(len(case.clusters))])
        for _ in range(100)
    )
    return float(np.mean([design.df for design in designs]))


def table(datasets: int) -> Iterator[str]:
    """Lines of the table, in Markdown."""
    yield "| drawn | df | AUROC | FPR95, ID positive | FPR95, OOD positive | flagged |"
    yield "|---|---|---|---|---|---|"
    workers = thread_count()
    os.environ["OMP_NUM_THREADS"] = "1"  # threads of each worker
    resampling.LARGE = 0
    with ProcessPoolExecutor(workers) as executor:
        for case, found in zip(CASES, executor.map(partial(rates, datasets=datasets), CASES), strict=True):
            freedom = mean_freedom(case)
            cells = [f"{100 * share:.1f}% (+-{width:.3f})" for share, width in found.values()]
            flagged = "all" if freedom < FEW_CLUSTERS - 1 else "OOD positive"
            row = [case.label, f"{freedom:.1f}", *cells, flagged]
            if case.over == "images":
                scarce = scarce_units("fpr95_ood_positive", 20 * case.clusters[0], None)
                row = [f"images of {case.clusters[0]} classes", "", *cells, "OOD positive" if scarce else ""]
            yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 2000):
        print(line, flush=True)
