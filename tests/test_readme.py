"""The README's Python and its recipe work as pasted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from wordnet_splits.build import build

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_python_runs_as_pasted(tmp_path, number):
    code = PYTHON[number]
    if "torch" in code:
        pytest.importorskip("torch", reason="the loaders need torch")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    if number == 0:
        assert done.stdout.splitlines()[0] == "n02075296 4 0.8571"
        assert done.stdout.splitlines()[-1] == "True"
    if "evaluate(" in code:
        _, columns, _, *rows = done.stdout.splitlines()
        assert columns.split()[:3] == ["detector", "ACC", "AURC"]
        assert [row.split()[0] for row in rows[:3]] == ["msp", "energy", "knn[k=10]"]


def test_the_recipe_builds(tmp_path):
    (recipe,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    path = tmp_path / "my.toml"
    path.write_text(recipe, encoding="utf-8")
    counts = {g.group: g.actual for g in build(path).manifest.groups if g.split == "test"}
    assert counts == {"cats": 100, "kin": 60}
