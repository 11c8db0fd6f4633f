"""Kills, signals and full disks at seeded moments; then the same command again, and the same bytes."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.subjects import Subject, arguments, content, environment, run, unfinished

DISTURBANCES = ("kill -9", "SIGINT to the group", "SIGTERM", "full disk")


@dataclass(frozen=True)
class Trial:
    """One disturbance of one subject, and what was wrong afterwards (empty: it survived)."""

    subject: str
    disturbance: str
    wrong: str


def disturb(subject: Subject, folder: Path, rounds: int, rng: random.Random) -> Iterator[Trial]:
    """Disturb ``subject`` so many times in each way; every round ends with a run that nothing happens to."""
    started = time.monotonic()
    whole = _undisturbed(subject, folder / "undisturbed")
    seconds = time.monotonic() - started
    for disturbance in DISTURBANCES:
        for number in range(rounds):
            out = folder / f"{disturbance.replace(' ', '-')}-{number}"
            out.mkdir(parents=True)
            wrong = _disturb_once(subject, out, disturbance, rng.uniform(0, seconds), rng)
            yield Trial(subject.name, disturbance, wrong or _resumed(subject, out, whole))
            shutil.rmtree(out, ignore_errors=True)


def _undisturbed(subject: Subject, out: Path) -> dict[str, str]:
    out.mkdir(parents=True)
    finished = run(subject.make(out))
    assert finished.returncode == 0, (subject.name, finished.stderr)
    return content(out / subject.output)


def _disturb_once(subject: Subject, out: Path, disturbance: str, after: float, rng: random.Random) -> str:
    limit: Callable[[], None] | None = None
    if disturbance == "full disk":
        most = rng.choice((0, 1_000, 10_000, 50_000, 200_000))

        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write then fails, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    with subprocess.Popen(
        arguments(subject.make(out)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(),
        start_new_session=True,
        preexec_fn=limit,
    ) as process:
        if disturbance != "full disk":
            try:
                process.wait(after)
            except subprocess.TimeoutExpired:
                _signal(process, disturbance)
        try:
            _, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "it hung for two minutes"
    ours = "Traceback" in errors and "wordnet_splits" in errors  # before main, a traceback is Python's own
    if ours and disturbance != "SIGTERM":
        return f"a traceback: {errors.strip().splitlines()[-1][:100]}"
    if disturbance == "full disk" and process.returncode not in (0, 2):
        return f"exit code {process.returncode}: {errors.strip()[-100:]}"
    return ""


def _signal(process: subprocess.Popen[str], disturbance: str) -> None:
    try:
        if disturbance == "kill -9":
            process.kill()
        elif disturbance == "SIGTERM":
            process.terminate()
        else:
            os.killpg(process.pid, signal.SIGINT)
    except ProcessLookupError:
        pass


def _resumed(subject: Subject, out: Path, whole: dict[str, str]) -> str:
    finished = run(subject.make(out))
    if finished.returncode != 0:
        return f"the next run ends with {finished.returncode}: {finished.stderr.strip()[-150:]}"
    found = content(out / subject.output)
    if found != whole:
        other = sorted(k for k in found.keys() | whole.keys() if found.get(k) != whole.get(k))
        return f"other bytes: {', '.join(other[:3])}"
    if left := unfinished(out):
        return f"left behind: {', '.join(left[:3])}"
    return ""
