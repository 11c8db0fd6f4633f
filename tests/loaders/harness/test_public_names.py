"""The public names of `loaders.harness`, and progress that is shown by default."""

from __future__ import annotations

import inspect

import pytest
from torch import nn

import loaders.harness
from loaders.harness import evaluate

pytestmark = pytest.mark.extensions(
    "loaders.harness.training",
    "loaders.harness.comparison",
    "loaders.harness.report",
    "loaders.harness.leaderboard",
)

NAMES = ("evaluate", "evaluate_arrays", "image_ids", "load_model", "compare", "report", "submit", "train")


def test_dir_lists_the_public_names_and_no_others() -> None:
    names = dir(loaders.harness)
    assert {*NAMES} <= {*names}
    assert not [name for name in names if name.startswith("_")]
    assert all(getattr(loaders.harness, name) is not None for name in names)


@pytest.mark.parametrize("name", NAMES)
def test_progress_is_described(name: str) -> None:
    function = getattr(loaders.harness, name)
    if progress := inspect.signature(function).parameters.get("progress"):
        assert progress.default is None
        assert "progress" in (function.__doc__ or "")


@pytest.mark.parametrize("progress", [None, False])
def test_a_script_without_a_terminal_prints_nothing(
    progress: bool | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wordnet_splits.base.progress.QUIET_SECONDS", 0.0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    evaluate(model, "digits", "msp", groups=["uniform"], device="cpu", progress=progress)
    assert capsys.readouterr() == ("", "")
