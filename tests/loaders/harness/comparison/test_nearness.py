"""Nearness against difficulty: SciPy's rank correlation, synsets pair by pair, and a bootstrap by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from loaders.harness import Results, nearness, plot
from loaders.harness.comparison.class_nearness import MEASURES, REFERENCE, TO
from loaders.harness.comparison.semantics import classes_of
from loaders.harness.report.plots import plot_data
from loaders.harness.report.plots.selection import REPLICATES
from tests.loaders.harness.comparison.test_compare import draw
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics import bootstrap_indices
from wordnet_splits.wordnet.similarity import compare_synsets

FOLDER = (
    Path(__file__).resolve().parents[4] / "manifests" / "results" / "unknown-cifar-tinyval-resnet20-short"
)


@pytest.fixture(scope="module")
def held() -> Results:
    return Results.read(FOLDER)


def of_classes(held: Results, detector: str, group: str) -> Any:
    """AUROC (mean over runs) and stored similarity of each class."""
    rows = held.by_class.to_pandas()
    chosen = rows[(rows.detector == detector) & (rows.group == group)]
    return chosen.groupby("class_id", sort=True)[["auroc", "similarity"]].mean()


def found_for(found: Any, detector: str, measure: str, to: str) -> Any:
    (one,) = (c for c in found.correlations if (c.detector, c.measure, c.to) == (detector, measure, to))
    return one


def test_ours_is_scipys_of_the_stored_similarities(held: Results) -> None:
    found = nearness(held, groups=["cifar-60"], bootstrap=0)
    for detector in ("mcp", "energy", "ensemble"):
        table = of_classes(held, detector, "cifar-60")
        one = found_for(found, detector, *REFERENCE)
        assert one.rho == pytest.approx(spearmanr(table.similarity, table.auroc).statistic)
        assert (one.classes, one.lo, one.hi) == (60, None, None)
    assert len(found.correlations) == len(held.detectors) * len(MEASURES) * len(TO)


@pytest.mark.parametrize("measure", ["path", "wup"])
@pytest.mark.parametrize("to", list(TO))
def test_other_measures_are_those_of_single_pairs(held: Results, measure: str, to: str) -> None:
    classes, labels = classes_of(load_manifest("unknown-cifar-tinyval"))
    table = of_classes(held, "mcp", "cifar-60")
    near = []
    for class_id in table.index:
        wnids = classes["cifar100", class_id].wnids
        each = [
            max(getattr(compare_synsets(a, b), measure) for a in wnids for b in known.wnids)
            for known in labels.values()
        ]
        near.append(max(each) if to == "nearest" else np.mean(each))
    found = nearness(held, detectors=["mcp"], groups=["cifar-60"], bootstrap=0)
    expected = spearmanr(near, table.auroc).statistic
    assert found_for(found, "mcp", measure, to).rho == pytest.approx(expected)


def test_intervals_are_of_classes_drawn_again(held: Results) -> None:
    pairs = zip(held.by_class["group"].to_pylist(), held.by_class["class_id"].to_pylist(), strict=True)
    order = [class_id for group, class_id in dict.fromkeys(pairs) if group == "cifar-60"]
    table = of_classes(held, "energy", "cifar-60").loc[order]
    near, values = table.similarity.to_numpy(), table.auroc.to_numpy()
    drawn = [bootstrap_indices(3, "classes", r, len(near)) for r in range(50)]
    rhos = [spearmanr(near[d], values[d]).statistic for d in drawn]
    found = nearness(held, detectors=["energy"], groups=["cifar-60"], bootstrap=50, seed=3, level=0.9)
    one = found_for(found, "energy", *REFERENCE)
    assert (one.lo, one.hi) == pytest.approx(tuple(np.quantile(rhos, (0.05, 0.95))))
    ours, *others = sorted(found.measures, key=lambda m: (m.measure, m.to) != REFERENCE)
    assert ours.weaker is None
    for other in others:
        assert other.weaker == pytest.approx(other.rho - ours.rho)
        assert other.weaker_lo <= other.weaker <= other.weaker_hi
    assert [m.rho for m in found.measures] == sorted(m.rho for m in found.measures)


def test_classes_without_a_synset_are_counted(held: Results) -> None:
    found = nearness(held, detectors=["mcp"], bootstrap=5)
    assert found.correlations[0].classes == 60 + 10
    assert "Without a synset, left out: 1 class." in found.notes
    assert "rank correlation" in str(found)
    assert "<table" in found._repr_html_()
    assert found.to_pandas().shape == (len(MEASURES) * len(TO), 9)


def test_the_plot_shows_the_correlations(held: Results, tmp_path: Path) -> None:
    (panel,) = plot_data(held, "nearness-trend", groups=["cifar-60"], detectors=["mcp", "energy"]).panels
    found = nearness(held, groups=["cifar-60"], detectors=["mcp", "energy"], bootstrap=REPLICATES)
    for bar in panel.bars:
        one = found_for(found, bar.category, *REFERENCE)
        assert (bar.value, bar.lo, bar.hi) == (one.rho, one.lo, one.hi)
    assert [bar.value for bar in panel.bars] == sorted(bar.value for bar in panel.bars)
    path = plot(held, "nearness-trend", tmp_path / "a.svg", detectors=["mcp"])
    assert path.read_bytes().startswith(b"<?xml")


def test_what_cannot_be_correlated_is_said(held: Results) -> None:
    with raises(UnknownNameError, where="--group", naming="cifar60"):
        nearness(held, groups=["cifar60"])
    with raises(DataError, where="unknown-cifar-tinyval"):
        nearness(held, groups=["gaussian"])
    draws = [draw(number, "mcp") for number in (1, 2)]
    with raises(DataError, naming="2"):
        nearness(draws)


def test_a_benchmark_that_its_name_does_not_find_is_given(
    held: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = FOLDER.parents[1]
    shutil.copytree(manifests / held.about.benchmark, tmp_path / "build" / "mine")
    expected = nearness(held, detectors=["mcp"], bootstrap=0).rows()
    monkeypatch.setattr("wordnet_splits.benchmark.manifest.loading.shipped_folders", lambda: [tmp_path])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        nearness(held, bootstrap=0)
    assert caught.value.where == held.about.benchmark
    for place in ("build/mine", Path("build/mine"), load_manifest("build/mine")):
        assert nearness(held, detectors=["mcp"], bootstrap=0, benchmark=place).rows() == expected
    with pytest.raises(DataError) as caught:
        nearness(held, bootstrap=0, benchmark=manifests / "digits")
    assert caught.value.where == str(manifests / "digits")
