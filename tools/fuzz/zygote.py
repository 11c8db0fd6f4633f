"""Runs cases in children of a process that has imported everything, so that a case takes what it takes.

python -m tools.fuzz.zygote MODULE...   reads one case a line (JSON) and answers with one line each.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

SECONDS = 60
"""Of the processor: how long a case waits for its turn says nothing about it."""
WAITING = 300
"""Seconds on the wall after which one that waits for something is taken to wait for ever."""
MEMORY = 24 << 30  # of addresses: mapped files count; what is used is measured
REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "wordnet-splits": "wordnet_splits.cli.main",
    "fix-resize": "fix_resize.cli.main",
    "unknown-eval": "loaders.harness.cli.main",
    "look": "tools.fuzz.looks",
    "train-an-epoch": "tools.faults.interrupted",
    "weights": "tools.fuzz.weights",
}


@dataclass(frozen=True)
class Ended:
    """How a case ended: exit code (negative: the signal), what it said, processor seconds, peak bytes."""

    code: int
    said: str
    seconds: float
    memory: int

    @property
    def hangs(self) -> bool:
        """Return whether it waits for ever, or works for longer than it may."""
        return self.code in (-signal.SIGALRM, -signal.SIGXCPU) or self.seconds > SECONDS

    @property
    def traceback(self) -> bool:
        """Return whether it ended in a traceback."""
        return "Traceback" in self.said

    @property
    def large(self) -> bool:
        """Return whether it took more memory than it may."""
        return self.memory > 1 << 30

    @property
    def wrong(self) -> str:
        """Return what is wrong with it, empty where nothing is."""
        if self.hangs:
            return "waits for ever" if self.code == -signal.SIGALRM else f"longer than {SECONDS} s"
        if self.code < 0:
            return f"killed by signal {-self.code}"
        if self.traceback:
            return f"a traceback: {self.said.strip().splitlines()[-1][:150]}"
        if self.code not in (0, 1, 2, 3):
            return f"exit code {self.code}"
        if self.large:
            return f"{self.memory >> 20} MiB"
        if "\x1b" in self.said or "\x07" in self.said:
            return "control characters on the terminal"
        if self.code == 2 and not any(line.startswith("error: ") for line in self.said.splitlines()):
            return f"no line says why: {self.said[-150:]!r}"
        return ""


class Zygote:
    """A process with some modules imported, which runs cases one after the other."""

    def __init__(self, programs: Sequence[str]) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            # names that are no UTF-8 have to be printed by a terminal that knows ASCII alone
            "LC_ALL": "C",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONUTF8": "0",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.fuzz.zygote", *programs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=REPOSITORY,
        )

    def run(self, words: Sequence[str], folder: Path, *, warm: bool = False) -> Ended:
        """Run a command line with ``folder`` as the current one.

        Parameters
        ----------
        warm : run it in the process itself, whose children then find imported and read what all need alike.
        """
        return self._ask(words, folder, "warm" if warm else "run")

    def learn(self, words: Sequence[str], folder: Path) -> Ended:
        """Run a command line as ever, and import for all later ones the modules that it has imported."""
        return self._ask(words, folder, "learn")

    def _ask(self, words: Sequence[str], folder: Path, way: str) -> Ended:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([list(words), str(folder), way]) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _child(words: list[str], folder: str, way: str, output: Path) -> int:
    """Be the program, in a process of its own."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WAITING)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(folder)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = _run(words)
    if way == "learn":
        _modules(output).write_text("\n".join(sys.modules), "utf-8")
    return code


def _modules(output: Path) -> Path:
    return output.with_suffix(".modules")


def _import_all(names: Sequence[str]) -> None:
    for name in names:
        # some are no modules of their own, and which ones is for their packages to know
        with suppress(ImportError, AttributeError):
            importlib.import_module(name)


def _run(words: list[str]) -> int:
    try:
        from wordnet_splits.base.terminal.runner import run

        code = run(importlib.import_module(PROGRAMS[words[0]]).app, words[1:], words[0])
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _here(words: list[str]) -> Ended:
    started, said = time.process_time(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = _run(words)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return Ended(code, said.getvalue(), time.process_time() - started, memory)


def _forked(words: list[str], folder: str, way: str, output: Path) -> Ended:
    child = os.fork()
    if not child:
        os._exit(_child(words, folder, way, output))
    _, status, used = os.wait4(child, 0)
    said = output.read_bytes()[-20_000:].decode("utf-8", "replace") if output.exists() else ""
    if way == "learn":
        _import_all(_modules(output).read_text("utf-8").splitlines())
        _modules(output).unlink()
    seconds = used.ru_utime + used.ru_stime
    return Ended(os.waitstatus_to_exitcode(status), said, seconds, memory=used.ru_maxrss << 10)


def main(programs: Sequence[str]) -> None:
    """Answer cases until there are no more."""
    for program in programs:
        importlib.import_module(PROGRAMS[program])
    output = Path(os.environ.get("TMPDIR", "/tmp")) / f"fuzz-{os.getpid()}.txt"
    for line in sys.stdin:
        words, folder, way = json.loads(line)
        ended = _here(words) if way == "warm" else _forked(words, folder, way, output)
        print(json.dumps(asdict(ended)), flush=True)
    output.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
