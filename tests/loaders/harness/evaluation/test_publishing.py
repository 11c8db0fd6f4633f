"""A kill while new results take the place of old ones: one line says so, and the same run again heals it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from loaders.harness import check_results, compare, report
from loaders.harness.cli.main import app
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.report.accessor import plot
from loaders.harness.results.results import Results
from loaders.harness.results.scores import SWEEPS
from tests.loaders.harness.altering import refusal
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run
from wordnet_splits.base.terminal.runner import run

READERS: dict[str, Callable[[Path], object]] = {
    "check_results": lambda folder: check_results(folder, OPEN_SET),
    "compare": lambda folder: compare(folder, bootstrap=0),
    "report": lambda folder: report(folder, folder.with_suffix(".html")),
    "plot": lambda folder: plot(folder, "roc", folder.with_suffix(".svg")),
    "read": Results.read,
}


class Killed(BaseException):
    """What no handler of errors catches."""


class Power:
    """Files that are renamed and removed until the power goes, and never after."""

    def __init__(self, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.failed = steps, False
        rename, unlink = Path.replace, Path.unlink

        def renamed(path: Path, target: Path) -> Path:
            self.step()
            return rename(path, target)

        def unlinked(path: Path, **options: Any) -> None:
            if self.failed and path.name.endswith(".part"):
                return  # the dead do not clear up
            self.step()
            unlink(path, **options)

        monkeypatch.setattr(Path, "replace", renamed)
        monkeypatch.setattr(Path, "unlink", unlinked)

    def step(self) -> None:
        if not self.left:
            self.failed = True
            raise Killed
        self.left -= 1


@pytest.fixture(scope="module")
def swept() -> Results:
    return evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp,energy", sweep=True)


@pytest.fixture(scope="module")
def plain(swept: Results) -> Results:
    """Results of the same models without a sweep, and of other scores."""
    return replace(evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "mls"), sweeps=SWEEPS.empty_table())


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.sampled("faults", one_in=3)
@pytest.mark.parametrize("before", ["nothing", "without a sweep", "with a sweep"])
def test_a_kill_at_any_step_is_named_and_healed(
    before: str, swept: Results, plain: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"nothing": None, "without a sweep": plain, "with a sweep": swept}[before]
    new = plain if old is swept else swept
    new.write(tmp_path / "due")
    if old is not None:
        old.write(tmp_path / "old")
    due, said = content(tmp_path / "due"), set()
    for steps in range(40):
        folder = tmp_path / f"results-{steps}"
        if old is not None:
            shutil.copytree(tmp_path / "old", folder)
        with monkeypatch.context() as patched:
            power = Power(steps, patched)
            try:
                new.write(folder)
            except Killed:
                assert power.failed
            else:
                break
        said |= _after(folder, old, due)
        new.write(folder)
        assert content(folder) == due
    else:
        pytest.fail("no end of steps")
    assert check_results(folder, OPEN_SET).ok
    assert said == {None, "holds incomplete results: there is no about.json"}


def _after(folder: Path, old: Results | None, new: Mapping[str, bytes]) -> set[str | None]:
    """Return what every command says of a folder that is not whole; None of old or new results."""
    if refusal(lambda: Results.read(folder)) is None:
        held = {name: data for name, data in content(folder).items() if not name.endswith(".part")}
        assert held == new or (old is not None and Results.read(folder).scores.equals(old.scores))
        return {None}
    found: set[str | None] = set()
    for name, read in READERS.items():
        line = refusal(partial(read, folder))
        assert line is not None, name
        place, what = line.split(": ", 1)
        assert place == str(folder), (name, line)
        found.add(what.removesuffix(" (run the command that wrote them again)"))
    return found


def test_the_commands_end_in_one_line(
    swept: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    swept.write("half")
    Path("half/about.json").unlink()
    for words in ("recompute --check half", "compare half", "report half --out a.html"):
        assert run(app, words.split(), "unknown-eval") == 2
        out, err = capsys.readouterr()
        line = "half: holds incomplete results: there is no about.json"
        assert (out, err) == ("", f"error: {line} (run the command that wrote them again)\n")
    assert not Path("a.html").exists()
