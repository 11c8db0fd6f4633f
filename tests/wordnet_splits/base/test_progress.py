"""Bars on a terminal or in a notebook, lines elsewhere, nothing for short work."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from wordnet_splits.base import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(reports: progress.Progress) -> None:
    with reports.task("images", 100) as whole:
        task = progress.PartOfTask(whole, "v\x1bal")
        task.skip(30)
        task.advance(10)
        task.extend(20)
        task.advance(80)
    assert task.done == 120


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QUIET_SECONDS", "BAR_SECONDS", "LINE_SECONDS"):
        monkeypatch.setattr(progress, name, 0.0)


@pytest.mark.usefixtures("at_once")
def test_without_a_terminal_lines_are_printed_on_request_only(capsys: pytest.CaptureFixture[str]) -> None:
    work(progress.choose_progress(None))
    assert capsys.readouterr() == ("", "")
    work(progress.choose_progress(True))
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("images (v\\x1bal): 100%")
    assert "120/120" in lines[-1]


@pytest.mark.usefixtures("at_once")
def test_work_of_unknown_length_has_a_count_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.OnStderr().task("images", 0) as task:
        task.advance(50)
    line = capsys.readouterr().err.splitlines()[-1]
    assert "50" in line
    assert "/0" not in line


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("notebook", [False, True])
def test_a_terminal_and_a_notebook_show_a_bar(notebook: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO() if notebook else Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    if notebook:
        shell = SimpleNamespace(kernel="a kernel")
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    work(progress.choose_progress(None))
    assert "120/120" in stream.getvalue()
    assert "\n" not in stream.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_short_work_shows_nothing(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    work(progress.OnStderr())
    assert stream.getvalue() == ""


def test_receivers_are_chosen() -> None:
    assert isinstance(progress.choose_progress(False), progress.Silent)
    assert type(progress.choose_progress(True)) is progress.OnStderr
    silent = progress.Silent()
    assert progress.choose_progress(silent) is silent


@pytest.mark.parametrize(
    ("receiver", "printed"),
    [(progress.OnStderr(), "a\\x1bb\n"), (progress.InPlace(), ""), (progress.Silent(), "")],
)
def test_messages_are_printed_where_progress_is(
    receiver: progress.Progress, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    progress.choose_messages(receiver)("a\x1bb")
    assert capsys.readouterr().err == printed
