"""Commands in a child of this process, bounded in time and memory, and what is wrong with their ends."""

from __future__ import annotations

import importlib
import io
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from wordnet_splits.base.terminal.runner import run

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS, WAITING = 60, 300
"""Seconds of the processor, and on the wall, that a command may take."""
MEMORY, ADDRESSES = 1 << 30, 24 << 30
"""Bytes that a command may add to those of this process, and address: mapped files count among the latter."""
PROGRAMS = {
    "wordnet-splits": "wordnet_splits.cli.main",
    "fix-resize": "fix_resize.cli.main",
    "unknown-eval": "loaders.harness.cli.main",
}
Command = Sequence[str] | Callable[[], int]
"""A command line, or a function that reads the files of the current folder."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (negative: the signal), output, processor seconds, added bytes."""

    code: int
    said: str
    seconds: float
    memory: int

    @property
    def wrong(self) -> str:
        """What is wrong with it, empty where nothing is."""
        if self.code in (-signal.SIGALRM, -signal.SIGXCPU) or self.seconds > SECONDS:
            return f"longer than {SECONDS} s"
        if "Traceback" in self.said:
            return f"a traceback: {self.said.strip().splitlines()[-1][:150]}"
        if self.code not in (0, 1, 2, 3):
            return f"exit code {self.code}"
        if self.memory > MEMORY:
            return f"{self.memory >> 20} MiB"
        if "\x1b" in self.said or "\x07" in self.said:
            return "control characters on the terminal"
        if self.code == 2 and not any(line.startswith("error: ") for line in self.said.splitlines()):
            return f"no line says why: {self.said[-150:]!r}"
        return ""


def run_in_child(command: Command, folder: Path) -> Ended:
    """Run a command in ``folder``, in a child that has imported what this process has."""
    if not callable(command):
        importlib.import_module(PROGRAMS[command[0]])
    output = folder.with_name(f"{folder.name}.txt")
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    child = os.fork()
    if not child:
        os._exit(_child(command, folder, output))
    _, status, used = os.wait4(child, 0)
    said = output.read_bytes()[-20_000:].decode("utf-8", "replace")
    output.unlink()
    seconds = used.ru_utime + used.ru_stime
    return Ended(os.waitstatus_to_exitcode(status), said, seconds, (used.ru_maxrss << 10) - resident)


def finish(folder: Path, *words: str, code: int = 0) -> None:
    """Run a command line that has to end with an exit code, in a process of its own.

    A child of a process that has trained a network cannot train one.
    """
    command = [sys.executable, "-c", f"from {PROGRAMS[words[0]]} import main; main()", *words[1:]]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, (words, done.stderr)


def _child(command: Command, folder: Path, output: Path) -> int:
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(WAITING)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ.update(OMP_NUM_THREADS="1", COLUMNS="100", NO_COLOR="1")
        os.chdir(folder)
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for standard in (1, 2):
            os.dup2(descriptor, standard)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # names that are no UTF-8 have to be printed by a terminal that knows ASCII alone
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), "ascii", errors="backslashreplace")
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), "ascii", errors="backslashreplace")
        sys.stdin = io.TextIOWrapper(io.FileIO(0))
        return _run(command)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _run(command: Command) -> int:
    if not callable(command):
        return run(importlib.import_module(PROGRAMS[command[0]]).app, list(command[1:]), command[0])
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return run(app, [], "read")
