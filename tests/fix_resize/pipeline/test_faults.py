"""Kills, a full disk, two builds at once: after going on, the same bytes as of an undisturbed build.

Real processes on loopback. Each build stands still once its first shard is finished, and the harm is done
there: in the middle of the work, on a machine of any speed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from fix_resize import get_spec
from fix_resize.pipeline import building as pipeline
from fix_resize.pipeline.building import BuildResult, PipelineSettings
from fix_resize.pipeline.selection import select_folder
from tests.fix_resize.sets import finished_shards, photographs, run, tree
from tests.wordnet_splits.base.test_workers import run_killed_once

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc"),
]
SHARD = 10
PHOTOGRAPHS = 80
SHARDS = 10
PATIENCE = 60.0


@pytest.fixture(scope="module")
def root(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs, below a plain folder that sorts first, of which every shard is small."""
    root = tmp_path_factory.mktemp("faults") / "photographs"
    (root / "a").mkdir(parents=True)
    for shade in range(2 * SHARD):
        Image.new("RGB", (40, 40), (shade, 0, 0)).save(root / "a" / f"{shade:02d}.png")
    for path in photographs(real_data)[:PHOTOGRAPHS]:
        (root / path.parent.name).mkdir()
        shutil.copy(path, root / path.parent.name)
    return root


@pytest.fixture(scope="module")
def undisturbed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """What a build gives that nothing happens to, in both formats."""
    found = {}
    for file_format in ("png", "parquet"):
        out = tmp_path_factory.mktemp("undisturbed") / file_format
        build_here(root, out, file_format)
        found[file_format] = tree(out)
    return found


def build_here(root: Path, out: Path, file_format: str) -> BuildResult:
    settings = PipelineSettings(get_spec("fix"), file_format, backend="pillow", shard_size=SHARD)
    return pipeline.build(select_folder(root), out, settings)


def build(root: Path, out: Path, file_format: str = "png") -> list[str]:
    words = ["build", "folder", "--root", root, "--out", out, "--format", file_format]
    return [str(word) for word in (*words, "--shard-size", SHARD, "--backend", "pillow")]


@contextlib.contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run something beside the test, in a process group of its own that does not outlive it."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, text=True, start_new_session=True, **pipes) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


HALTING = """
import sys
from fix_resize.cli import main
from fix_resize.pipeline import building as pipeline
from wordnet_splits.base.terminal.runner import run

read, seen = pipeline.read_marker, []

def halting(marker):
    if not seen:
        seen.append(marker)
        print("finished", flush=True)
        sys.stdin.readline()
    return read(marker)

pipeline.read_marker = halting
sys.exit(run(main.app, sys.argv[1:], "fix-resize"))
"""
"""A build that waits, its first shard finished, until its standard input has a line or ends."""


@contextlib.contextmanager
def halted(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a build beside the test, and have it when it stands still."""
    with started(sys.executable, "-c", HALTING, *words) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "finished\n", process.communicate()
        yield process


def children(pid: int) -> list[int]:
    """The processes that a process has started, those of `multiprocessing` for its own use left out."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [child for child in map(int, text.split()) if b"spawn_main" in command_line(child)]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def check_resumed(root: Path, out: Path, whole: dict[str, bytes], file_format: str = "png") -> None:
    """Go on, and compare: nothing finished is done again, and every byte is as it would have been."""
    kept = {path: path.stat().st_mtime_ns for path in finished_shards(out)}
    assert 0 < len(kept) < SHARDS
    assert not (out / "output.json").exists()
    again = build_here(root, out, file_format)
    assert (again.built_shards, again.reused_shards) == (SHARDS - len(kept), len(kept))
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert tree(out) == whole


@pytest.mark.parametrize("file_format", ["png", pytest.param("parquet", marks=pytest.mark.always)])
def test_kill_9_of_the_build(
    root: Path, tmp_path: Path, undisturbed: dict[str, dict[str, bytes]], file_format: str
) -> None:
    out = tmp_path / "out"
    with halted(*build(root, out, file_format), "--workers", "2") as process:
        assert len(children(process.pid)) == 2
        process.kill()
        process.communicate(timeout=PATIENCE)  # its pipes end with the last worker: none is left to write on
    check_resumed(root, out, undisturbed[file_format], file_format)


@pytest.mark.always
def test_ctrl_c(root: Path, tmp_path: Path, undisturbed: dict[str, dict[str, bytes]]) -> None:
    out = tmp_path / "out"
    with halted(*build(root, out), "--workers", "2") as process:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        said, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (130, "")
    assert "the same command continues from here" in errors
    assert "Traceback" not in errors
    check_resumed(root, out, undisturbed["png"])


def test_kill_9_of_a_worker(root: Path, tmp_path: Path, undisturbed: dict[str, dict[str, bytes]]) -> None:
    out = tmp_path / "out"
    main = "fix_resize.cli.main"
    done = run_killed_once(tmp_path, "fix_resize.pipeline.shards", "_resized", main, *build(root, out))
    assert done.returncode == 0, done.stderr
    assert tree(out) == undisturbed["png"]


def test_a_full_disk(root: Path, tmp_path: Path, undisturbed: dict[str, dict[str, bytes]]) -> None:
    """No file may grow beyond what a shard of plain pictures needs: then the first photographs fail."""
    out = tmp_path / "out"
    most = 1 << 14

    def no_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    full = run(*build(root, out, "parquet"), "--workers", 2, preexec_fn=no_space)
    assert (full.code, full.out) == (2, "")
    assert "cannot be written: File too large" in full.err
    assert "the same command continues from here" in full.err
    check_resumed(root, out, undisturbed["parquet"], "parquet")


def test_two_builds_in_one_folder(
    root: Path, tmp_path: Path, undisturbed: dict[str, dict[str, bytes]]
) -> None:
    out = tmp_path / "out"
    with halted(*build(root, out)) as process:
        second = run(*build(root, out))
        assert (second.code, second.out) == (2, "")
        assert "another build is writing here" in second.err
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert tree(out) == undisturbed["png"]


DASK = [sys.executable, "-m", "dask"]
WORKER = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", str(int(PATIENCE))]


@contextlib.contextmanager
def dask_scheduler() -> Iterator[tuple[subprocess.Popen[str], str]]:
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with started(*DASK, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard") as process:
        yield process, f"tcp://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with dask_scheduler() as (_, address):
        yield address


def test_kill_9_of_a_dask_worker(
    root: Path, tmp_path: Path, undisturbed: dict[str, dict[str, bytes]], scheduler: str
) -> None:
    out = tmp_path / "out"
    place = ["--local-directory", str(tmp_path)]
    with (
        started(*DASK, "worker", scheduler, *WORKER, *place) as first,
        started(*DASK, "worker", scheduler, *WORKER, *place),
        halted(*build(root, out), "--scheduler", scheduler) as process,
    ):
        first.kill()
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert tree(out) == undisturbed["png"]


def test_kill_9_of_a_build_on_dask(
    root: Path, tmp_path: Path, undisturbed: dict[str, dict[str, bytes]], scheduler: str
) -> None:
    out = tmp_path / "out"
    place = ["--local-directory", str(tmp_path)]
    with started(*DASK, "worker", scheduler, *WORKER, *place):
        with halted(*build(root, out), "--scheduler", scheduler) as process:
            process.kill()
        again = run(*build(root, out), "--scheduler", scheduler, "--json")
    assert (again.code, again.json["shards"]["kept"] > 0) == (0, True)
    assert tree(out) == undisturbed["png"]


def test_kill_9_of_the_dask_scheduler(
    root: Path, tmp_path: Path, undisturbed: dict[str, dict[str, bytes]]
) -> None:
    out = tmp_path / "out"
    with (
        dask_scheduler() as (scheduler, address),
        started(*DASK, "worker", address, *WORKER, "--local-directory", str(tmp_path)),
        halted(*build(root, out), "--scheduler", address) as process,
    ):
        scheduler.kill()
        said, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (2, ""), errors
    *shown, last = errors.splitlines()  # before it, a busy machine shows how far the build is
    assert "the Dask scheduler has stopped" in last
    assert not [line for line in shown if " of " not in line]
    check_resumed(root, out, undisturbed["png"])
