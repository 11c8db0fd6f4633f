"""Kills, signals and full disks at seeded moments; then the same command again, and the same bytes."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.faults.subjects import Subject, arguments, content, environment, unfinished
from tools.fuzz.zygote import Zygote

SIGNALS = {
    "SIGKILL": (signal.SIGKILL, False),
    "SIGKILL to the group": (signal.SIGKILL, True),
    "SIGINT": (signal.SIGINT, False),
    "SIGINT to the group": (signal.SIGINT, True),
    "SIGTERM": (signal.SIGTERM, False),
    "SIGTERM to the group": (signal.SIGTERM, True),
}
"""Fault -> the signal, and whether every process of the command gets it, as from a terminal."""

FULL_DISK = "full disk (a tmpfs)"
LARGE_FILE = "no room for a large file (RLIMIT_FSIZE)"
FAULTS = (*SIGNALS, FULL_DISK, LARGE_FILE)

SECONDS = 120
"""Within which a disturbed command, and whatever it started, has to be gone."""


@dataclass(frozen=True)
class Trial:
    """One fault of one subject, and what was wrong afterwards (empty: it survived)."""

    subject: str
    fault: str
    wrong: str


@dataclass(frozen=True)
class Undisturbed:
    """A run that nothing happened to: its output, the bytes it wrote, when it began to write, and its end."""

    output: dict[str, str]
    size: int
    began: float
    seconds: float


@cache
def mountable() -> bool:
    """Return whether a disk can be made that fills up."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, disk(Path(folder), 1 << 20) as mounted:
        return mounted


@contextmanager
def disk(place: Path, size: int) -> Iterator[bool]:
    """Have ``place`` be a disk of so many bytes; yield whether that could be done."""
    try:
        done = _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place))
    except FileNotFoundError:  # no such program
        done = False
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def _mount(*words: str) -> bool:
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0


def undisturbed(subject: Subject, out: Path) -> Undisturbed:
    """Run a command to its end, looking when it begins to write."""
    out.mkdir(parents=True)
    started, began = time.monotonic(), 0.0
    with _start(subject, out) as process:
        while process.poll() is None:
            if not began and any(out.rglob("*")):
                began = time.monotonic() - started
            time.sleep(0.005)
        _, errors = process.communicate()
    assert process.returncode == subject.code, (subject.name, errors)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Undisturbed(content(out / subject.output), size, began, time.monotonic() - started)


def disturb(
    subject: Subject, fault: str, whole: Undisturbed, out: Path, rng: random.Random, zygote: Zygote
) -> Trial:
    """Disturb ``subject`` once, and run it again, as a child of ``zygote``, with nothing that disturbs it."""
    out.mkdir(parents=True)
    try:
        if fault == FULL_DISK:
            size = rng.randrange(4096, whole.size)
            with disk(out, size) as mounted:
                assert mounted, "was mountable a moment ago"
                wrong = _disturb_once(subject, fault, whole, out, rng)
                assert _mount("-o", f"remount,size={2 * whole.size + (64 << 20)}", str(out))
                wrong = wrong or _resumed(subject, zygote, out, whole)
        else:
            wrong = _disturb_once(subject, fault, whole, out, rng) or _resumed(subject, zygote, out, whole)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return Trial(subject.name, fault, wrong)


def _start(subject: Subject, out: Path, before: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        arguments(subject.make(out)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(),
        cwd=out.parent,
        start_new_session=True,
        preexec_fn=before,
    )


def _disturb_once(subject: Subject, fault: str, whole: Undisturbed, out: Path, rng: random.Random) -> str:
    limit: Callable[[], None] | None = None
    if fault == LARGE_FILE:
        largest = rng.choice((0, 1_000, 10_000, 50_000, 200_000))

        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write then fails, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    with _start(subject, out, limit) as process:
        if fault in SIGNALS:
            # half of all moments while it writes, however long the program takes to start
            begin = rng.choice((0.0, whole.began))
            try:
                process.wait(rng.uniform(begin, whole.seconds))
            except subprocess.TimeoutExpired:
                _signal(process, *SIGNALS[fault])
        try:
            _, errors = process.communicate(timeout=SECONDS)  # until its workers are gone, too
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"it, or what it started, was there after {SECONDS} s"
    code = process.returncode
    # until our first line runs, Ctrl-C is Python's own, and a traceback there
    pythons_own = errors.strip().endswith("KeyboardInterrupt") and "in enter" not in errors
    if "Traceback" in errors and not pythons_own:
        return f"a traceback: {errors.strip().splitlines()[-1][:100]}"
    due = (subject.code, 2) if fault not in SIGNALS else (subject.code, 130, -SIGNALS[fault][0])
    return "" if code in due else f"exit code {code}: {errors.strip()[-150:]}"


def _signal(process: subprocess.Popen[str], number: signal.Signals, group: bool) -> None:
    try:
        if group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
    except ProcessLookupError:
        pass


def _resumed(subject: Subject, zygote: Zygote, out: Path, whole: Undisturbed) -> str:
    ended = zygote.run(subject.make(out), out.parent)
    if ended.wrong or ended.code != subject.code:
        return f"the next run: {ended.wrong or ended.said.strip()[-150:]}"
    found = content(out / subject.output)
    if found != whole.output:
        other = sorted(k for k in found.keys() | whole.output.keys() if found.get(k) != whole.output.get(k))
        return f"other bytes: {', '.join(other[:3])}"
    if left := unfinished(out):
        return f"left behind: {', '.join(left[:3])}"
    return ""
