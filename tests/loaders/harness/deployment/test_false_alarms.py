"""The guarantees of a threshold and of a batch, kept by stored scores over 1,000 divisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from scipy.stats import betabinom, binom

from loaders.harness.results.scores import column_of, scored_keys
from tools.pages.batches import BATCH, CASES, OUTLIERS, measure, stored
from wordnet_splits.base.parquet import read_table
from wordnet_splits.metrics.conformal import ConformalGuarantee

RESULTS = Path(__file__).resolve().parents[4] / "manifests" / "results"
ENTRY = RESULTS / "unknown-cifar-tinyval-all" / "scores.parquet"
DIVISIONS, CALIBRATION, RATE = 1000, 1000, 0.05
pytestmark = pytest.mark.skipif(not ENTRY.exists(), reason="the committed results are not in this copy")


@pytest.fixture(scope="module")
def id_scores() -> dict[int, np.ndarray]:
    """The confidences of the ID test images by number of the column: a detector and run."""
    table = read_table(ENTRY)
    rows = table.filter(pc.equal(table["group"], "cifar-40"))
    names = list(map(column_of, scored_keys(table)))
    return {number: rows[name].to_numpy() for number, name in enumerate(names)}


@pytest.mark.parametrize("column", [0, 10, 20])
def test_false_alarms_over_1000_divisions_follow_the_promise(
    column: int, id_scores: dict[int, np.ndarray]
) -> None:
    scores = id_scores[column]
    guarantee = ConformalGuarantee.for_rate(RATE, CALIBRATION)
    later = len(scores) - CALIBRATION
    draw = np.random.default_rng(column)
    alarms = []
    for _ in range(DIVISIONS):
        shuffled = draw.permutation(scores)
        threshold = np.sort(shuffled[:CALIBRATION])[guarantee.rank - 1]
        alarms.append(int((shuffled[CALIBRATION:] < threshold).sum()))
    law = betabinom(later, guarantee.rank, CALIBRATION + 1 - guarantee.rank)
    assert law.mean() / later == pytest.approx(guarantee.false_alarms)
    # the mean of 1,000 counts lies within four standard errors of the guarantee
    assert np.mean(alarms) == pytest.approx(law.mean(), abs=4 * law.std() / DIVISIONS**0.5)
    # and as many counts lie in the promised interval as a binomial law of its exact probability allows
    low, high = guarantee.counts(later)
    inside = sum(low <= count <= high for count in alarms)
    probability = law.cdf(high) - law.cdf(low - 1)
    assert probability >= 0.95
    few, many = binom(DIVISIONS, probability).interval(0.9999)
    assert few <= inside <= many


@pytest.mark.parametrize("frames", [1, 10])
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_batches_keep_their_false_discovery_rate(case: tuple[str, str, str], frames: int) -> None:
    shares = measure(*stored(RESULTS, *case), frames=frames, seed=1)
    for name, (false, _) in shares.items():
        procedure, _, rate = name.partition(" ")
        if procedure == "e-bh" or (procedure == "bh" and frames == 1):
            most = float(rate) * (1 - OUTLIERS / BATCH)
            assert false.mean() <= most + 4 * false.std() / len(false) ** 0.5, name
    assert shares["bh 0.2"].found.mean() >= shares["bh 0.05"].found.mean()
