"""Intervals cover the true value as often as they say, or are flagged (see `coverage`)."""

from __future__ import annotations

import pytest

from wordnet_splits.metrics import resampling

from . import coverage
from .coverage import Case

FEW = (*(Case(over, (20,)) for over in ("images", "classes", "subtrees")), Case("classes", (20,), True))


def check(case: Case, datasets: int, slack: float) -> None:
    found = coverage.rates(case, datasets)
    for metric in ("auroc", "fpr95_id_positive"):
        assert abs(found[metric][0] - 0.95) <= 0.02 + slack, (case.label, metric, found)
    assert found["fpr95_ood_positive"][0] >= 0.88 - slack, (case.label, found)


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.label)
def test_intervals_cover_the_truth_of_made_data_sets(case: Case) -> None:
    check(case, 150, slack=0.045)  # 2.5 standard deviations


@pytest.mark.oracle
@pytest.mark.parametrize("case", coverage.CASES, ids=lambda case: case.label)
def test_intervals_of_enough_clusters_cover_93_to_97_percent(case: Case, monkeypatch) -> None:
    if case.over == "images" or coverage.mean_freedom(case) >= coverage.FEW_CLUSTERS - 1:
        monkeypatch.setattr(resampling, "LARGE", 0)
        monkeypatch.setattr(resampling, "thread_count", lambda: 1)
        check(case, 2000, slack=0.005)
