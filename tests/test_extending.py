"""docs/extending.md: every block runs under the name in its first line; edits go to a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.selection import cases

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = (REPOSITORY / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
SAID = {
    "A benchmark": ["{'with-loops': 240, 'without': 1084}", "without: seven is not in an earlier group"],
    "A source": ["{'all': 6}", "('n04398044',)", "('n02391049',)"],
    "An operator": ["deep: leopard lies 14 edges below the root"],
    "A detector": ["halved"],
    "A metric": ["0.6666666666666666"],
    "An accessor": ["gaussian"],
    "A command": ["6 letters"],
    "A training method": ["msp"],
}
NEEDS_TORCH = ("A detector", "A metric", "An accessor", "A training method")


def blocks(section):
    """Yield language, file name and text of a section's blocks."""
    for language, text in re.findall(r"```(\w+)\n(.*?)```", SECTIONS[section], re.DOTALL):
        name = re.match(r"# (\S+)\n", text)
        yield language, name[1] if name else "", text


def test_each_example_is_short():
    assert list(SECTIONS) == list(SAID)
    for section in SECTIONS:
        written = {language: [] for language in ("python", "toml")}
        for language, _, text in blocks(section):
            written[language] += [line for line in text.splitlines() if line and not line.startswith("#")]
        assert len(written["python"]) < 40, section


def install(folder, text):
    """Leave beside the modules what an installer makes of a pyproject.toml's entry points."""
    made = folder / "mine-0.1.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 0.1\n")
    groups = tomllib.loads(text)["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items())
        for group, points in groups.items()
    ]
    (made / "entry_points.txt").write_text("".join(lines))


@pytest.mark.docs
@pytest.mark.parametrize("section", cases(SAID, always="An operator"))
def test_the_blocks_run(section, tmp_path):
    if section in NEEDS_TORCH:
        pytest.importorskip("torch", reason="the harness needs torch")
    if any("/" in name for _, name, _ in blocks(section)):
        package, copy = REPOSITORY / "wordnet_splits", tmp_path / "wordnet_splits"
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("data", "__pycache__"))
        (copy / "data").symlink_to(package / "data")
    said = ""
    for language, name, text in blocks(section):
        (tmp_path / name).write_text(text, encoding="utf-8")
        if name == "pyproject.toml":
            install(tmp_path, text)
        if language != "python" or "/" in name:
            continue
        path = os.pathsep.join((str(tmp_path), str(REPOSITORY)))
        done = subprocess.run(
            [sys.executable, name],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said += done.stdout
    for text in SAID[section]:
        assert text in said, said
