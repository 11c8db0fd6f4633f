"""The results that are committed beside the manifests are entries, and recompute, as their README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from loaders.harness.results import check
from loaders.harness.results.entries import check_entry
from loaders.harness.results.metric_rows import has_interval
from loaders.harness.results.results import Results

RESULTS = Path(__file__).resolve().parents[4] / "manifests" / "results"
ENTRIES = {folder.name: folder for folder in sorted(RESULTS.iterdir()) if folder.is_dir()}
OF_A_FAMILY = (
    "openood-cifar100-drawn",
    "optimizers-mnist-small",
    "rungs-cifar100-all",
    "unknown-cifar-tinyval-kim",
)
WITHOUT_SCORES = (
    "openood-cifar100-drawn-methods",
    "openood-cifar100-drawn-methods-knn",
    "openood-cifar100-drawn-methods-outputs",
    "optimizers-fashion-small",
    "unknown-cifar-tinyval-methods",
    "unknown-cifar-tinyval-methods-knn",
    "unknown-cifar-tinyval-methods-outputs",
)


def test_every_family_of_benchmarks_has_an_entry() -> None:
    families = {name.partition("-")[0] for name in ENTRIES}
    assert {name.partition("-")[0] for name in OF_A_FAMILY} == families


@pytest.mark.results
@pytest.mark.parametrize("name", ENTRIES)
def test_every_value_recomputes(name: str) -> None:
    checked = check_entry(ENTRIES[name])
    assert checked.ok, checked.differences
    if name not in WITHOUT_SCORES:
        assert checked.exact == checked.values > 1_000


@pytest.mark.sampled("oracle", one_in=4)
@pytest.mark.parametrize("name", OF_A_FAMILY)
def test_an_entry_of_every_family_recomputes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the intervals of one entry: the others' are recomputed by ``make check-results``."""
    if name != OF_A_FAMILY[-1]:
        monkeypatch.setattr(check, "sampled", lambda sizes, replicates: ())
    test_every_value_recomputes(name)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_value_has_its_interval(name: str) -> None:
    """Of 1,000 replicates over images; `check_entry` recomputes a sample of them."""
    results = Results.read(ENTRIES[name])
    assert results.about.options.replicates == 1_000
    for row in results.results.select(["metric", "lo", "hi"]).to_pylist():
        assert (row["lo"] is not None) == (row["hi"] is not None) == has_interval(row["metric"])
