"""Attributes of results that extensions register."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.results import ACCESSORS, Results, register_accessor
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run


@pytest.fixture(scope="module")
def results() -> Results:
    return evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp")


@pytest.fixture
def registered() -> Iterator[None]:
    @register_accessor("best")
    def best(results: Results) -> str:
        return results.detectors[0]

    yield
    ACCESSORS.remove("best")


def test_a_registered_function_is_an_attribute(results: Results, registered: None) -> None:
    assert results.best == "msp"
    assert "best" in dir(results)


def test_extensions_are_found_and_completed(results: Results) -> None:
    assert {"plot", "export_detector", "hierarchy", "scores", "write"} <= {*dir(results)}
    assert "roc" in dir(results.plot)
    assert [panel.title for panel in results.plot.roc().panels]
    assert "false_alarms" in (results.export_detector.__doc__ or "")


@pytest.mark.parametrize("name", ["best", "_repr_png_", "__deepcopy__"])
def test_other_names_are_no_attributes(results: Results, name: str) -> None:
    assert not hasattr(results, name)
    assert copy.copy(results).detectors == results.detectors
