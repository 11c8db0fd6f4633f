"""The budget is kept, a restart does not repeat what is done, a failure does not end the rest."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.raising import raises
from tools.gpu import __main__ as command
from tools.gpu.running import MARGIN, Step, exit_code, in_time, run_steps
from tools.gpu.table6 import FEWEST_EPOCHS, SEEDS, SLOWER, planned
from wordnet_splits.base.errors import DataError

MACHINE = {"device": "toy"}


class Machine:
    """A clock, and steps that take their own time of it; a code of None is of one that needs too much."""

    def __init__(self, **takes: tuple[float, int]) -> None:
        self.takes, self.now, self.ran = takes, 0.0, list[tuple[str, float]]()

    def clock(self) -> float:
        return self.now

    def execute(self, words: Sequence[str], seconds: float, log: Path) -> int | None:
        name, given, figures = words
        needs, code = self.takes[name]
        self.ran.append((name, seconds))
        assert float(given) == pytest.approx(seconds, abs=0.5)
        self.now += min(needs, seconds)
        Path(figures).write_text(json.dumps({"began": 1} if needs > seconds else {"value": needs}))
        return None if needs > seconds else code


def step(name: str, share: float = 1.0, least: float = 1.0) -> Step:
    return Step(name, name.upper(), (name, "{seconds}", "{figures}"), share, least)


def run(machine: Machine, out: Path, *steps: Step, budget: float = 100 + MARGIN) -> list[tuple[str, str]]:
    records = run_steps(steps, out, budget, MACHINE, execute=machine.execute, clock=machine.clock)
    return [(r.name, r.status) for r in records]


def test_every_step_gets_its_share_and_the_last_what_is_left(tmp_path: Path) -> None:
    machine = Machine(a=(10, 0), b=(30, 0), c=(20, 0))
    found = run(machine, tmp_path, step("a", 0.2), step("b", 0.5), step("c"))
    assert found == [("a", "done"), ("b", "done"), ("c", "done")]
    assert machine.ran == [("a", 21), ("b", 52.5), ("c", 60)]
    held = json.loads((tmp_path / "summary.json").read_text())
    assert [row["figures"] for row in held["steps"]] == [{"value": 10}, {"value": 30}, {"value": 20}]
    assert "| B | done | 30 |" in (tmp_path / "summary.md").read_text()


def test_the_budget_is_kept_and_what_does_not_fit_is_named(tmp_path: Path) -> None:
    machine = Machine(a=(95, 0), b=(1, 0), c=(1e9, 0))
    found = run(machine, tmp_path, step("a"), step("b", least=6), step("c"))
    assert found == [("a", "done"), ("b", "skipped"), ("c", "stopped")]
    assert machine.now == 100
    page = (tmp_path / "summary.md").read_text()
    assert "| B | skipped | 0 | 5 s are left, and it needs 6 s |" in page
    assert "| C | stopped | 5 | stopped after 5 s |" in page
    assert "| began | 1 |" in page  # as far as it came


def test_a_restart_runs_what_is_not_done(tmp_path: Path) -> None:
    run(Machine(a=(10, 0), b=(1e9, 0), c=(1, 0)), tmp_path, step("a"), step("b"), step("c"))
    again = Machine(b=(3, 0), c=(4, 0))
    assert run(again, tmp_path, step("a"), step("b"), step("c")) == [(n, "done") for n in "abc"]
    assert [name for name, _ in again.ran] == ["b", "c"]
    held = json.loads((tmp_path / "summary.json").read_text())
    assert [row["seconds"] for row in held["steps"]] == [10, 3, 4]


def test_a_killed_run_has_its_finished_steps(tmp_path: Path) -> None:
    machine = Machine(a=(10, 0))
    with pytest.raises(KeyError):  # as it begins b
        run(machine, tmp_path, step("a"), step("b"), step("c"))
    held = json.loads((tmp_path / "summary.json").read_text())
    assert [(row["name"], row["status"]) for row in held["steps"]] == [
        ("a", "done"),
        ("b", "skipped"),
        ("c", "skipped"),
    ]
    again = Machine(b=(1, 0), c=(1, 0))
    run(again, tmp_path, step("a"), step("b"), step("c"))
    assert [name for name, _ in again.ran] == ["b", "c"]


def test_a_failure_is_recorded_and_the_next_goes_on(tmp_path: Path) -> None:
    machine = Machine(a=(1, 7), b=(1, 0))
    found = run_steps(
        [step("a"), step("b")], tmp_path, 100, MACHINE, execute=machine.execute, clock=machine.clock
    )
    assert [(r.status, r.detail) for r in found] == [("failed", "exit code 7: see log.txt"), ("done", "")]
    assert exit_code(found) == 1
    assert exit_code(found[1:]) == 0
    again = Machine(a=(1, 0))
    assert run(again, tmp_path, step("a"), step("b")) == [("a", "done"), ("b", "done")]
    short = run_steps([step("c", least=200)], tmp_path / "c", 100, MACHINE, clock=machine.clock)
    assert exit_code(short) == 3


def test_a_folder_of_another_machine_is_refused(tmp_path: Path) -> None:
    run(Machine(a=(1, 0)), tmp_path, step("a"))
    with raises(DataError, where=tmp_path):
        run_steps([step("a")], tmp_path, 100, {"device": "other"})
    (tmp_path / "state.json").write_text('{"steps": [{}]}')
    with raises(DataError, where="state.json"):
        run_steps([step("a")], tmp_path, 100, MACHINE)


def test_processes_are_ended_in_time_with_their_children_and_logged(tmp_path: Path) -> None:
    log, child = tmp_path / "log.txt", tmp_path / "child"
    asleep = "import time; time.sleep(1e6)"
    started = (
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {asleep!r}]);"
        f"open({str(child)!r}, 'w').write(str(p.pid)); {asleep}"
    )
    assert in_time(["-c", "print('said'); raise SystemExit(4)"], 1e6, log) == 4
    assert "said" in log.read_text()
    waited = 1.0
    while not child.exists() or not child.read_text():  # on a busy machine it has not begun: longer, then
        assert in_time(["-c", started], waited, log) is None
        waited *= 2
    process = Path(f"/proc/{child.read_text()}")
    if sys.platform == "linux":
        while process.exists() and "\nState:\tZ" not in (process / "status").read_text():
            time.sleep(0.01)  # the kernel has yet to end it


def test_epochs_and_seeds_by_the_time_there_is() -> None:
    assert planned(1e9, 1.0, 200) == (200, SEEDS)
    epochs, seeds = planned(100, 1.0, 200)
    assert seeds == SEEDS
    assert epochs * seeds * SLOWER <= 100 < (epochs + 1) * seeds * SLOWER
    assert planned(FEWEST_EPOCHS * SLOWER * 1.01, 1.0, 200) == (FEWEST_EPOCHS, 1)
    assert planned(FEWEST_EPOCHS * SLOWER * 0.99, 1.0, 200) == (0, 0)


def test_without_a_gpu_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "has_gpu", lambda: False)
    assert command.main(["--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.err == "make gpu: no GPU here (or PyTorch has no CUDA); nothing was run\n"
    assert captured.out == ""
    assert not (tmp_path / "out").exists()


def test_on_a_cpu_without_time_every_step_is_skipped_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--device", "cpu", "--budget", "0", "--out", str(tmp_path / "out")]) == 3
    out = capsys.readouterr().out
    for name, least in (("tests", 1), ("exactness", 1), ("benches", 1), ("table6", 3)):
        assert f"{name}: skipped: 0 s are left, and it needs {least} s" in out
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "state.json",
        "summary.json",
        "summary.md",
    ]
