"""The blocks of ``docs/manifests.md`` run as they stand, one after the other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from wordnet_splits.cli.main import app, run
from wordnet_splits.exchange import format_names

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "manifests.md").read_text(encoding="utf-8")


@pytest.mark.docs
def test_the_page_runs_as_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, block in re.findall(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL):
        if kind == "python":
            exec(compile(block, "docs/manifests.md", "exec"), names)
            continue
        for line in block.splitlines():
            assert run(app, shlex.split(line)[1:], "wordnet-splits") == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "test/gaussian/all/8x8x1%2Fs0%2F00000.png -1\n500\n" in said
    assert "['my-lists/test_id', 'my-lists/test_odd']" in said
    assert said.endswith("True\n")


def test_the_page_has_every_format():
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) == list(format_names())
