"""The blocks of ``docs/evaluation.md`` run as they stand, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loaders.harness.detectors import METHODS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "evaluation.md"


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for module in ("registry", "choosing"):  # the page registers a detector
        monkeypatch.setattr(f"loaders.harness.detectors.{module}.METHODS", dict(METHODS))
    names: dict[str, object] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, PAGE.name, "exec", dont_inherit=True), names)
    shown = capsys.readouterr().out
    assert "Model seeds: mean over 2 runs" in shown
    assert "True images compared with digits" in shown
    assert "mapping='given'" in shown


def test_the_pages_list_every_detector() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("| computed from |")[2].partition("\n\n")[0]
    listed = set(re.findall(r"`(\w+)`", table))
    assert listed >= set(METHODS)
    assert listed <= {name for method in METHODS.values() for name in (method.name, *method.aliases)}
    readme = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"{len(METHODS)} detectors, each with its paper" in readme
