"""Kills, signals and full disks at seeded moments; then the same command again, and the same bytes."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.hostile.running import PROGRAMS
from tests.hostile.subjects import SUBJECTS, Subject, content, make_inputs

pytestmark = pytest.mark.faults
SIGNALS = {
    f"{number.name}{' to the group' if group else ''}": (number, group)
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
    for group in (False, True)
}
"""Fault -> the signal, and whether every process of the command gets it, as from a terminal."""
FULL_DISK, LARGE_FILE = "full disk (a tmpfs)", "no room for a large file (RLIMIT_FSIZE)"
SECONDS = 120
"""Seconds within which a disturbed command, and whatever it started, has to be gone."""


@dataclass(frozen=True)
class Undisturbed:
    """A whole run: its output, the bytes it wrote, when it began to write, and its duration in seconds."""

    output: dict[str, str]
    size: int
    began: float
    seconds: float


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder)
    return folder


@pytest.fixture(scope="module", params=SUBJECTS, ids=lambda subject: subject.name)
def subject(request: pytest.FixtureRequest) -> Subject:
    return request.param


@pytest.fixture(scope="module")
def whole(subject: Subject, inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Run the command to its end, looking when it begins to write."""
    out = tmp_path_factory.mktemp("whole") / "out"
    out.mkdir()
    started, began = time.monotonic(), 0.0
    with _start(subject, inputs, out) as process:
        while process.poll() is None:
            if not began and any(out.rglob("*")):
                began = time.monotonic() - started
            time.sleep(0.005)
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Undisturbed(content(out / subject.output), size, began, time.monotonic() - started)


@pytest.mark.parametrize("fault", [*SIGNALS, FULL_DISK, LARGE_FILE])
def test_the_next_run_ends_as_if_nothing_had_happened(
    subject: Subject, fault: str, whole: Undisturbed, inputs: Path, tmp_path: Path
) -> None:
    rng, out = Random(f"{subject.name} {fault}"), tmp_path / "out"
    out.mkdir()
    if fault != FULL_DISK:
        _disturb(subject, fault, whole, inputs, out, rng)
        _resume(subject, whole, inputs, out)
        return
    with _disk(out, rng.randrange(4096, whole.size)):
        _disturb(subject, fault, whole, inputs, out, rng)
        _mount("-o", f"remount,size={2 * whole.size + (64 << 20)}", str(out))
        _resume(subject, whole, inputs, out)


def _disturb(subject: Subject, fault: str, whole: Undisturbed, inputs: Path, out: Path, rng: Random) -> None:
    limit: Callable[[], None] | None = None
    if fault == LARGE_FILE:
        largest = rng.choice((0, 1_000, 10_000, 50_000, 200_000))

        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write then fails, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    with _start(subject, inputs, out, limit) as process:
        if fault in SIGNALS:
            # half of all moments while it writes, however long the program takes to start
            moment = rng.uniform(rng.choice((0.0, whole.began)), whole.seconds)
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                number, group = SIGNALS[fault]
                (os.killpg if group else os.kill)(process.pid, number)
        try:
            _, errors = process.communicate(timeout=SECONDS)  # until its workers are gone, too
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    # until our first line runs, Ctrl-C is Python's own, and a traceback there
    pythons_own = errors.strip().endswith("KeyboardInterrupt") and "in run_main" not in errors
    assert "Traceback" not in errors or pythons_own, errors
    codes = (0, 130, -SIGNALS[fault][0]) if fault in SIGNALS else (0, 2)
    assert process.returncode in codes, errors


def _resume(subject: Subject, whole: Undisturbed, inputs: Path, out: Path) -> None:
    with _start(subject, inputs, out) as process:
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert content(out / subject.output) == whole.output
    assert not [path for path in out.rglob("*") if path.name.endswith((".part", ".old"))]


def _start(
    subject: Subject, inputs: Path, out: Path, before: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    program, *arguments = subject.words(inputs, out)
    package = PROGRAMS[program].removesuffix(".main")
    return subprocess.Popen(
        [sys.executable, "-c", f"from {package} import program; program()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"},
        cwd=out.parent,
        start_new_session=True,
        preexec_fn=before,
    )


@contextmanager
def _disk(place: Path, size: int) -> Iterator[None]:
    """Have ``place`` be a disk of so many bytes; skip where that cannot be done."""
    if shutil.which("mount") is None or _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)):
        pytest.skip("no disk can be mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _mount(*words: str) -> int:
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode
