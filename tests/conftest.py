"""Fixtures shared by all tests: the real datasets, where they are at hand."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

# before numpy is imported: on a busy machine the threads of small matrix products wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent.parent
# a shell that starts the tests in the background has them ignore Ctrl-C, and their children inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# a busy machine is no failure, and a test that failed once must fail again
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

SHARED = Path(os.environ.get("WORDNET_SPLITS_SHARED", REPOSITORY.parent / "shared"))


@pytest.fixture
def no_roots_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No root of any source but those that the test gives."""
    from wordnet_splits.sources import root_variable, source_names

    for name in source_names():
        monkeypatch.delenv(root_variable(name), raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def own_datasets_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dataset that another test declared, and none of this one's afterwards."""
    monkeypatch.setattr("wordnet_splits.catalog.declarations._BESIDE", {})


@pytest.fixture(scope="session")
def facts() -> Path:
    """The folder of published lists and counts, or skip."""
    folder = SHARED / "facts"
    if not folder.is_dir():
        pytest.skip(f"published facts are not at {folder} (set WORDNET_SPLITS_SHARED)")
    return folder


@pytest.fixture(scope="session")
def real_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real datasets, laid out as their publishers do, or skip."""
    given = os.environ.get("WORDNET_SPLITS_TEST_DATA")
    if given:
        return Path(given)
    unpack = SHARED / "data" / "unpack"
    if not unpack.is_file():
        pytest.skip(f"real datasets are not at {unpack.parent} (set WORDNET_SPLITS_SHARED)")
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    target, done = base / "real-data", base / "real-data.done"
    with FileLock(str(base / "real-data.lock")):  # one unpacking, whatever the number of xdist workers
        if not done.exists():
            subprocess.run([sys.executable, str(unpack), str(target)], check=True, stdout=subprocess.DEVNULL)
            done.touch()
    return target


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, as root in CI too."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine: `apt-get install chromium`, as .ci/run does")
    playwright = pytest.importorskip("playwright.sync_api", reason="drives chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()
