"""The tables of figures are made from the stored run."""

from __future__ import annotations

import json
import time

import pytest

from tools.benchmarks.__main__ import main
from tools.benchmarks.record import FIRST_PAGE, RECORD, measured, pages
from tools.benchmarks.rows import compare


def test_the_pages_show_the_stored_run() -> None:
    record = json.loads(RECORD.read_text("utf-8"))
    names = [row.name for row in measured(record)]
    assert len(set(names)) == len(names)
    assert set(FIRST_PAGE) <= set(names)
    for path, text in pages(record).items():
        assert path.read_text("utf-8") == text, "python -m tools.benchmarks.record"


def test_an_unknown_module_is_refused_with_the_list_before_any_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["splits,nothing"]) == 2
    error = capsys.readouterr().err
    assert "no benchmark 'nothing'; there are activations, audit" in error
    assert "splits:" not in error


def test_a_clear_ratio_is_measured_once() -> None:
    calls: list[str] = []

    def work(name: str, seconds: float) -> None:
        calls.append(name)
        time.sleep(seconds)

    compare(lambda: work("ours", 0), lambda: work("peer", 0.05), rounds=3)
    assert calls == ["ours", "peer"]
    compare(lambda: work("ours", 0.01), lambda: work("peer", 0), rounds=3)
    assert len(calls) == 8
