"""Fixtures shared by all tests: the real datasets, where they are at hand."""

from __future__ import annotations

import ctypes
import functools
import gc
import hashlib
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer.main
from filelock import FileLock
from hypothesis import HealthCheck, settings

from wordnet_splits.base.registry import Registry

# before numpy is imported: on a busy machine the threads of small matrix products wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent.parent
pytest_plugins = ["tests.extensions"]
# a command line is built anew by each call of its application, which takes 20 ms; tests call thousands
typer.main.get_command = functools.cache(typer.main.get_command)
# taxonomies and tables are millions of objects, which the collector would look through again and again
gc.set_threshold(20_000, 20, 50)
# a shell that starts the tests in the background has them ignore Ctrl-C, and their children inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# a busy machine is no failure, and a test that failed once must fail again
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

OnceForAllWorkers = Callable[[str, Callable[[Path], None]], Path]
SHARED = Path(os.environ.get("WORDNET_SPLITS_SHARED", REPOSITORY.parent / "shared"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases that stay in ``make test`` of a test marked ``sampled(target, one_in=N)``.

    All cases get the marker ``target``, the name of the make target that runs them all. One in N of each
    test, those with the smallest hashes of their ids, get ``always`` too.
    """
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for test in cases.values():
        test.sort(key=lambda item: hashlib.sha256(item.name.encode()).digest())
        for position, item in enumerate(test):
            (marker,) = item.iter_markers("sampled")
            item.add_marker(marker.args[0])
            if position * marker.kwargs["one_in"] < len(test):
                item.add_marker("always")


@pytest.fixture(scope="session")
def once_for_all_workers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], None]], Path]:
    """Make a folder once, whatever the number of xdist workers: ``once_for_all_workers(name, write)``."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def make(name: str, write: Callable[[Path], None]) -> Path:
        folder, finished = shared / name, shared / f"{name}.finished"
        with FileLock(str(shared / f"{name}.lock")):
            if not finished.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
                write(folder)
                finished.touch()
        return folder

    return make


LIBC = ctypes.CDLL(None)
GROWTH = 100
STATM = Path("/proc/self/statm")
RESIDENT = pytest.StashKey[float]()
"""MiB in memory after the last release."""
CACHED = type(functools.cache(len))
OURS = ("wordnet_splits", "fix_resize", "loaders", "tests", "tools")


def release_memory() -> None:
    """Clear every cache of our modules and return the memory to the system."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OURS:
            for member in list(vars(module).values()):
                if isinstance(member, CACHED) and member.__module__ == name:
                    member.cache_clear()
    gc.collect()
    pa.default_memory_pool().release_unused()
    if hasattr(LIBC, "malloc_trim"):
        LIBC.malloc_trim(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Explain a failure for want of a package, as in the environments of `make oldest` and `make newest`."""
    report = yield
    if report.failed and "is not installed" in str(report.longrepr):
        text = (
            "an environment without this package skips the test: pytest.importorskip or skipif, with a reason"
        )
        report.sections.append(("a package of an extra is absent", text))
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spare the collector the millions of objects of imported modules, which live to the end."""
    release_memory()
    gc.freeze()
    session.stash[RESIDENT] = resident_memory()


def resident_memory() -> float:
    """Return the MiB of this process in memory, NaN where there is no /proc."""
    if not STATM.exists():
        return math.nan
    return int(STATM.read_text().split()[1]) * resource.getpagesize() / 2**20


@pytest.fixture(autouse=True, scope="module")
def _memory_released(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep no more than ``GROWTH`` MiB of taxonomies and tables of images from one file of tests to the next.

    Each release costs 0.2 s, and the next file loads again what it needs.
    """
    yield
    growth = resident_memory() - request.session.stash[RESIDENT]
    if math.isnan(growth) or growth > GROWTH:
        release_memory()
        request.session.stash[RESIDENT] = resident_memory()


@pytest.fixture
def no_roots_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No root of any source but those that the test gives."""
    from wordnet_splits.datasets.sources import root_variable, source_names

    for name in source_names():
        monkeypatch.delenv(root_variable(name), raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def own_datasets_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dataset that another test declared, and none of this one's afterwards."""
    monkeypatch.setattr("wordnet_splits.datasets.catalog.declarations._REGISTERED", {})


@pytest.fixture
def isolated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Function that leaves a registry its shipped objects and gives it entry points, until the test ends."""
    changed: list[Registry[Any]] = []
    found: dict[str, list[EntryPoint]] = {}

    def isolate(registry: Registry[Any], points: Sequence[tuple[str, str]] = ()) -> None:
        shipped = {name: entry for name, entry in registry.registered.items() if registry.is_shipped(name)}
        monkeypatch.setattr(registry, "_entries", shipped)
        monkeypatch.setattr(registry, "_aliases", dict(registry._aliases))
        found[registry.group] = [EntryPoint(name, value, registry.group) for name, value in points]
        monkeypatch.setattr("wordnet_splits.base.registry.entry_points", lambda group: found.get(group, []))
        registry.__dict__.pop("_plugins", None)
        changed.append(registry)

    yield isolate
    for registry in changed:
        registry.__dict__.pop("_plugins", None)


@pytest.fixture
def user_metrics_forgotten(isolated: Callable[..., None]) -> None:
    """No metric of a user's, and none of this test's afterwards."""
    from wordnet_splits.metrics import METRICS

    isolated(METRICS)


@pytest.fixture(scope="session")
def facts() -> Path:
    """The folder of published lists and counts, or skip."""
    folder = SHARED / "facts"
    if not folder.is_dir():
        pytest.skip(f"published facts are not at {folder} (set WORDNET_SPLITS_SHARED)")
    return folder


@pytest.fixture(scope="session")
def real_data(once_for_all_workers: OnceForAllWorkers) -> Path:
    """The real datasets, laid out as their publishers do, or skip."""
    given = os.environ.get("WORDNET_SPLITS_TEST_DATA")
    if given:
        return Path(given)
    unpack = SHARED / "data" / "unpack"
    if not unpack.is_file():
        pytest.skip(f"real datasets are not at {unpack.parent} (set WORDNET_SPLITS_SHARED)")

    def write(folder: Path) -> None:
        subprocess.run([sys.executable, str(unpack), str(folder)], check=True, stdout=subprocess.DEVNULL)

    return once_for_all_workers("real-data", write)


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
