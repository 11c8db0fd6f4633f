"""The results that are committed beside the manifests are entries, and recompute, as their README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from loaders.harness.evaluation.metric_rows import has_interval
from loaders.harness.evaluation.results import Results
from loaders.harness.leaderboard.check import check_entry

RESULTS = Path(__file__).resolve().parents[4] / "manifests" / "results"
FOLDERS = sorted(folder for folder in RESULTS.iterdir() if folder.is_dir())


def test_there_are_some() -> None:
    assert FOLDERS


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_value_recomputes(folder: Path) -> None:
    found = check_entry(folder)
    assert found.ok, found.differences
    assert found.exact == found.values > 1_000


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_value_has_its_interval(folder: Path) -> None:
    """Of 1,000 replicates over images; `check_entry` recomputes a sample of them."""
    results = Results.read(folder)
    assert results.about.options.replicates == 1_000
    for row in results.results.select(["metric", "lo", "hi"]).to_pylist():
        assert (row["lo"] is not None) == (row["hi"] is not None) == has_interval(row["metric"])
