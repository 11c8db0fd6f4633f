"""What docs/fix-resize.md and the docstring of the package show, run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import fix_resize
from tests.fix_resize.sets import make_folder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fix-resize.md"


@pytest.mark.docs
def test_the_page_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    make_folder(tmp_path / "photographs", each=8)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photographs" / "cut.jpg").write_bytes(b"no picture")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    said = capsys.readouterr().out
    assert "24 images by fix" in said
    assert "unidentified" in said
    assert "broken on purpose" in said


def test_the_docstring_of_the_package() -> None:
    assert doctest.testmod(fix_resize).failed == 0


def test_every_public_name_is_there() -> None:
    for name in fix_resize.__all__:  # type: ignore[attr-defined]  # made by lazy_loader
        assert getattr(fix_resize, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'resize_all'"):
        _ = fix_resize.resize_all  # type: ignore[attr-defined]  # which does not exist
