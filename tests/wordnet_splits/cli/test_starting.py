"""The installed programs from their first import on."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.wordnet_splits.command import REPOSITORY, environment
from wordnet_splits.base.terminal.entry import INTERRUPTED, INTERRUPTION

PROGRAMS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
INTERRUPTS = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


def enter(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    module, _, function = PROGRAMS[program].partition(":")
    return subprocess.run(
        [sys.executable, "-c", f"from {module} import {function}; {function}()", "--help"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_ctrl_c_during_the_imports_is_one_line(program: str, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(INTERRUPTS)  # what every program imports, pressing Ctrl-C
    done = enter(program, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", f"{INTERRUPTION}\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run_from_their_entry_points(program: str, tmp_path: Path) -> None:
    done = enter(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert program in done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_broken_library_is_a_traceback(program: str, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('broken')\n")
    done = enter(program, tmp_path)
    assert done.returncode == 1
    assert "ImportError: broken" in done.stderr
