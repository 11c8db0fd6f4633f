"""Lines of progress where there is no terminal: how far, how fast and how long, as far as is known."""

from __future__ import annotations

from itertools import count

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
