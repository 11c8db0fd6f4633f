"""Lines of progress where there is no terminal: how far, how fast and how long, as far as is known."""

from __future__ import annotations

import io
import sys
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from wordnet_splits.base import progress


def test_a_line_says_how_far_and_what_is_left_once_that_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = count(0, 20)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(times)))  # type: ignore[attr-defined]
    with progress.OnStderr().task("images", 100) as task:
        task.advance(0, note="val")
        task.advance(50)
        task.advance(40)
    assert capsys.readouterr().err.splitlines() == [
        "images (val): 0 of 100",
        "images (val): 50 of 100, 1/s, 40 s left",
        "images (val): 90 of 100, 2/s, 7 s left",
    ]


def test_steps_of_an_interrupted_run_say_nothing_of_the_speed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = count(0, 20)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(times)))  # type: ignore[attr-defined]
    with progress.OnStderr().task("epochs", 100) as whole:
        task = progress.PartOfTask(whole, "s0")
        task.skip(60)
        task.advance(20)
    assert task.done == 80
    assert capsys.readouterr().err == "epochs (s0): 80 of 100, 1/s, 20 s left\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(reports: progress.Progress) -> None:
    with reports.task("images", 100) as task:
        task.skip(30)
        task.advance(10, note="val")
        task.advance(60)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look at the clock be three seconds later."""
    times = count(0, 3)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(times)))  # type: ignore[attr-defined]


@pytest.mark.usefixtures("slow")
def test_by_default_there_is_a_bar_in_a_terminal_and_nothing_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work(progress.choose_progress(None))
    assert capsys.readouterr() == ("", "")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work(progress.choose_progress(None))
    assert "images (val)" in terminal.getvalue()
    assert "100/100" in terminal.getvalue()


def test_work_of_less_than_two_seconds_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work(progress.choose_progress(None))
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("slow")
def test_a_notebook_shows_the_bar_as_an_output_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    handle = SimpleNamespace(update=shown.append)

    def display(output: Any, *, display_id: bool) -> Any:
        shown.append(output)
        return handle

    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel="a kernel"))
    )
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display, HTML=str))
    work(progress.choose_progress(None))
    first, *_, last = shown
    assert "<pre" in first._repr_mimebundle_([], [])["text/html"]
    assert last == ""


def test_false_is_silent_and_true_prints_lines() -> None:
    assert isinstance(progress.choose_progress(False), progress.Silent)
    assert isinstance(progress.choose_progress(True), progress.OnStderr)
    silent = progress.Silent()
    assert progress.choose_progress(silent) is silent


@pytest.mark.parametrize(
    ("receiver", "printed"),
    [(progress.OnStderr(), "a?b\n"), (progress.InPlace(), ""), (progress.Silent(), "")],
)
def test_messages_are_printed_where_progress_is(
    receiver: progress.Progress, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    progress.choose_messages(receiver)("a\x1bb")
    assert capsys.readouterr().err == printed
