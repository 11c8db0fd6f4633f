"""The tables of figures are made from the stored run."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tools.benchmarks.__main__ import main
from tools.benchmarks.record import PAGE, RECORD, measured, page
from tools.benchmarks.rows import compare


def test_the_page_shows_the_stored_run() -> None:
    record = json.loads(RECORD.read_text("utf-8"))
    names = [row.name for row in measured(record)]
    assert len(set(names)) == len(names)
    assert PAGE.read_text("utf-8") == page(record), "python -m tools.benchmarks.record"


def test_an_unknown_module_is_refused_with_the_list_before_any_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["splits,nothing"]) == 2
    error = capsys.readouterr().err
    assert "no benchmark 'nothing'; there are activations, audit" in error
    assert "splits:" not in error


@pytest.mark.parametrize(("seconds", "rounds"), [((1.0, 6.0), 1), ((1.0, 2.0), 3), ((9.0, 12.0), 1)])
def test_a_clear_or_slow_comparison_takes_one_round(
    seconds: tuple[float, float], rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def ours() -> None:
        calls.append("ours")

    def peer() -> None:
        calls.append("peer")

    def fastest(work: Callable[[], object], repeats: int) -> float:
        work()
        return seconds[work is peer]

    monkeypatch.setattr("tools.benchmarks.rows.fastest", fastest)
    assert compare(ours, peer, 3) == (*seconds, seconds[1] / seconds[0])
    assert calls == ["ours", "peer"] * rounds
