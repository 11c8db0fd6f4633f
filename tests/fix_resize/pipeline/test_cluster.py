"""The Dask commands of docs/computing.md: on one machine they listen on loopback, on several they use TLS."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from fix_resize.pipeline.cluster import check_address
from tests.fix_resize.sets import COMMAND, make_folder

pytestmark = [
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into /proc"),
    pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed"),
]
REPOSITORY = Path(__file__).resolve().parents[3]
ONE, SEVERAL = (REPOSITORY / "docs" / "computing.md").read_text("utf-8").split("### Several machines\n")
PATIENCE = 120.0
LISTENING = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


def commands(text: str, word: str) -> list[str]:
    """The lines of a text's shell blocks that begin with a word."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for line in "".join(blocks).splitlines() if line.startswith(word)]


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@contextlib.contextmanager
def started(line: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of a page beside the test, in a session of its own that does not outlive it."""
    words = [sys.executable, "-m", *shlex.split(line)]
    log = (folder / f"{words[3]}.log").open("wb")
    with log, subprocess.Popen(words, cwd=folder, stderr=log, stdout=log, start_new_session=True) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(what: Callable[[], object], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, [log.read_text() for log in folder.glob("*.log")]
        time.sleep(0.05)


def listening(session: int) -> list[str]:
    """The local addresses, in hexadecimal, on which the processes of a session listen."""
    tables = (Path(f"/proc/net/{f}").read_text() for f in ("tcp", "tcp6"))
    rows = [line.split() for table in tables for line in table.splitlines()]
    places = {row[9]: row[1].partition(":")[0] for row in rows if row[3] == LISTENING}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(process.name)) == session:
                links = (str(link.readlink()) for link in (process / "fd").iterdir())
                found += [places[n] for link in links if (n := link[8:-1]) in places]
    return found


def test_the_commands_for_one_machine_listen_on_loopback_only(tmp_path: Path) -> None:
    from distributed import Client

    port, dashboard, workers = free_port(), free_port(), 2
    scheduler, worker = (
        line.replace("8786", port).replace("8787", dashboard).replace("--nworkers 4", f"--nworkers {workers}")
        for line in commands(ONE, "dask ")
    )
    with started(scheduler, tmp_path) as first, started(worker, tmp_path) as second:
        wait_for(lambda: len(listening(first.pid)) >= 2, tmp_path)
        with Client(f"tcp://127.0.0.1:{port}", timeout=PATIENCE, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)
            found = listening(first.pid) + listening(second.pid)
    assert len(found) >= 2 + 2 * workers  # scheduler, dashboard; of each worker its nanny and itself
    assert set(found) <= LOOPBACK


@pytest.mark.faults
@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with openssl")
def test_the_commands_for_several_machines_build_over_tls(tmp_path: Path) -> None:
    (make,) = commands(SEVERAL, "openssl ")
    subprocess.run(shlex.split(make), cwd=tmp_path, check=True, capture_output=True)
    make_folder(tmp_path / "photographs")
    port = free_port()

    def here(line: str) -> str:
        local = re.sub(r"10\.0\.0\.\d", "127.0.0.1", line)
        return local.replace("8786", port).replace("workers 4", "workers 1")

    (scheduler, worker), (build,) = commands(SEVERAL, "dask "), commands(SEVERAL, "fix-resize ")
    named = dict(line.split()[1].split("=") for line in commands(SEVERAL, "export "))
    words = [*COMMAND, *shlex.split(here(build))[1:]]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with started(here(scheduler), tmp_path) as process:
        wait_for(lambda: listening(process.pid), tmp_path)
        with started(here(worker), tmp_path):
            refused = subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            done = subprocess.run(
                words,
                cwd=tmp_path,
                env={**environment, **named},
                capture_output=True,
                text=True,
                check=False,
            )
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert "certificate" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fixed" / "output.json").exists()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://[::1]:1", "localhost:1", "tls://10.0.0.7:1"])
def test_a_scheduler_here_or_with_tls_needs_no_warning(address: str) -> None:
    assert check_address(address) is None


@pytest.mark.parametrize("address", ["tcp://10.0.0.7:8786", "ws://cluster:80"])
def test_a_scheduler_elsewhere_needs_a_warning(address: str) -> None:
    assert address in (check_address(address) or "")
