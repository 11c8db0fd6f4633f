"""The blocks of ``docs/evaluation.md`` run as they stand, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "evaluation.md"


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, PAGE.name, "exec", dont_inherit=True), names)
    shown = capsys.readouterr().out
    assert "Model seeds: mean over 2 runs" in shown
    assert "True images compared with digits" in shown
    assert "mapping='given'" in shown
