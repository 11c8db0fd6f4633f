"""The installed programs from their first import on."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.wordnet_splits.command import REPOSITORY, environment
from wordnet_splits.terminal.entry import INTERRUPTED, INTERRUPTION

PROGRAMS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
INTERRUPTS = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "


def enter(program: str, folder: Path, first: str = "") -> subprocess.CompletedProcess[str]:
    module, _, function = PROGRAMS[program].partition(":")
    return subprocess.run(
        [sys.executable, "-c", f"{first}from {module} import {function}; {function}()", "--help"],
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


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of address space")
@pytest.mark.parametrize(
    "failure",
    [
        "raise ImportError('libarrow.so: failed to map')",
        "raise MemoryError",
        "raise TypeError('?')",
        "import sys\nsys.modules['resource'] = None\nraise MemoryError",  # no room for a module more
        INTERRUPTS,  # as OpenBLAS does where it cannot start its threads
    ],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_too_little_room_for_the_libraries_is_one_line(program: str, failure: str, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(f"{failure}\n")
    done = enter(program, tmp_path, LIMIT)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(
        "error: 1024 MiB of address space (`ulimit -v`) are too few for this program"
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_library_that_is_broken_is_not_put_down_to_memory(program: str, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('broken')\n")
    done = enter(program, tmp_path)
    assert done.returncode == 1
    assert "ImportError: broken" in done.stderr
