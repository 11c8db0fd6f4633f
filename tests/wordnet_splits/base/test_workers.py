"""The one pool: killed workers, Ctrl-C while they start, their parent's death, few jobs ahead.

What happens when is decided by the processes themselves: a script whose workers import it again can have them
kill themselves, or send Ctrl-C, at an exact place.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.base.jobs import deadly_at_three, failing, squared
from tests.wordnet_splits.benchmark.images.conftest import build_many
from tests.wordnet_splits.command import environment
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.workers import AHEAD, MAX_DEATHS, run_jobs
from wordnet_splits.benchmark.resolve import load_manifest

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals of POSIX")
JOBS = 12

KILLED_ONCE = """
import os, signal, sys
import {module} as module

if __name__ == "__mp_main__":  # in a worker
    function = module.{function}
    def killed_once(*arguments):
        try:
            os.close(os.open("killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return function(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    module.{function} = killed_once

if __name__ == "__main__":
    from {main} import main
    main()
"""
"""Of all workers, the first one at ``function`` is killed with -9 in the middle of its job."""


def run_killed_once(
    folder: Path, module: str, function: str, main: str, *words: object
) -> subprocess.CompletedProcess[str]:
    """Run a command with two workers, of which one is killed."""
    script = folder / "killed_once.py"
    script.write_text(KILLED_ONCE.format(module=module, function=function, main=main), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), *map(str, words), "--workers", "2"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (folder / "killed").exists(), done
    return done


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("count", [0, 1, JOBS])
def test_every_job_once_and_in_order_where_that_is_asked(workers: int, count: int) -> None:
    found = list(run_jobs(squared, range(count), workers, name=str, ordered=True))
    assert found == [(n, n * n) for n in range(count)]
    assert sorted(run_jobs(squared, range(count), workers, name=str)) == found


@pytest.mark.parametrize("ordered", [True, pytest.param(False, marks=pytest.mark.faults)])
def test_few_jobs_are_begun_ahead(ordered: bool) -> None:
    begun = 0

    def jobs() -> Iterator[int]:
        nonlocal begun
        for number in range(JOBS):
            begun += 1
            yield number

    for taken, _ in enumerate(run_jobs(squared, jobs(), 2, name=str, ordered=ordered)):
        assert begun <= taken + 1 + AHEAD * 2


def test_a_job_that_kills_every_process_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = ((n, str(log)) for n in range(JOBS))
    running = run_jobs(deadly_at_three, jobs, 2, name=lambda job: f"job {job[0]}")
    with raises(SplitsError, naming=MAX_DEATHS + 1):
        list(running)
    assert len(log.read_text()) == MAX_DEATHS + 1


def test_what_a_job_raises_is_raised_here() -> None:
    with pytest.raises(SplitsError):
        list(run_jobs(failing, range(JOBS), 2, name=str))


INTERRUPTED = """
import os, signal, sys, time
from wordnet_splits.base.workers import run_jobs

if __name__ == "__mp_main__":  # a worker that is starting: nothing of ours has prepared it yet
    os.killpg(os.getpgrp(), signal.SIGINT)

def work(job):
    return job

if __name__ == "__main__":
    try:
        for _ in run_jobs(work, range(10), 3, name=str):
            pass
        while True:  # Ctrl-C may come as late as this
            signal.pause()
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_ctrl_c_to_the_whole_group_while_workers_start(tmp_path: Path) -> None:
    """Every worker sends it from its first lines; the parent gets it, and nobody shouts."""
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


ORPHANED = """
import os, signal, sys
from wordnet_splits.base.workers import run_jobs

def work(job):
    if job == 0:
        os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()  # for ever

if __name__ == "__main__":
    list(run_jobs(work, range(10), 2, name=str))
"""


def test_workers_leave_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "orphaned.py"
    script.write_text(ORPHANED, encoding="utf-8")
    done = subprocess.run(  # its workers hold its stdout too: this returns only when they are gone
        [sys.executable, str(script)], env=environment(tmp_path), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL


WORDNET_SPLITS = "wordnet_splits.cli.main"


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.faults
def test_a_build_survives_a_killed_worker(tmp_path: Path) -> None:
    undisturbed = build_many(tmp_path / "a")
    recipe, out = tmp_path / "a" / "many.toml", tmp_path / "b"
    module = "wordnet_splits.benchmark.construct.digesting"
    done = run_killed_once(tmp_path, module, "_read", WORDNET_SPLITS, "build", recipe, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert files(out / "many") == files(undisturbed)


@pytest.mark.faults
def test_packing_survives_a_killed_worker(tmp_path: Path) -> None:
    from wordnet_splits.benchmark.images.pack import pack

    manifest = build_many(tmp_path / "a")
    pack(load_manifest(manifest), tmp_path / "undisturbed")
    module, out = "wordnet_splits.benchmark.images.pack", tmp_path / "b"
    done = run_killed_once(tmp_path, module, "_outcome", WORDNET_SPLITS, "pack", manifest, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert files(out) == files(tmp_path / "undisturbed")
