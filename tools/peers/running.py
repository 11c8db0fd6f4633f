"""Fetch each peer's tests and run them on our functions."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tools.peers.statements import ADAPTER, RECORDS, Record, read, wrapped

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Peer:
    """Another project and the tests of it that concern us.

    Parameters
    ----------
    name : its distribution. adapter : our module in ``tools.peers.adapters``.
    tests : its test modules and doctests, below the folder that holds them.
    beside : folders and files that the tests need.
    origin : where the tests come from: ``installed``, ``sdist`` or ``checkout`` (no package has them).
    inside : for ``installed``, the import package that holds them.
    """

    name: str
    adapter: str
    tests: tuple[str, ...]
    origin: str
    beside: tuple[str, ...] = ()
    inside: str = ""


PEERS = (
    Peer(
        "nltk",
        "nltk_wordnet",
        ("nltk/test/unit/test_wordnet.py", "nltk/test/wordnet.doctest", "nltk/test/wordnet_lch.doctest"),
        "sdist",
    ),
    Peer(
        "wn",
        "wn_measures",
        ("tests/similarity_test.py", "tests/taxonomy_test.py"),
        "sdist",
        beside=("tests/conftest.py", "tests/data"),
    ),
    Peer(
        "scikit-learn", "sklearn_ranking", ("metrics/tests/test_ranking.py",), "installed", inside="sklearn"
    ),
    Peer("fd-shifts", "fd_shifts", ("fd_shifts/tests/analysis/test_metrics.py",), "checkout"),
    Peer(
        "pytorch-ood",
        "pytorch_ood",
        ("tests/metrics/test_functional.py", "tests/metrics/test_ood_metrics.py"),
        "checkout",
    ),
)


def folder_of(peer: Peer, checkouts: Mapping[str, Path], scratch: Path) -> Path | None:
    """Return the folder above the peer's tests; None where only a checkout has them and none is given."""
    if peer.name in checkouts:
        return checkouts[peer.name]
    if peer.origin == "installed":
        spec = importlib.util.find_spec(peer.inside)
        assert spec is not None
        return Path(str(spec.origin)).parent
    return _sdist(peer.name, scratch) if peer.origin == "sdist" else None


def version_of(peer: Peer, checkouts: Mapping[str, Path]) -> str:
    """Return the version whose tests are run."""
    if peer.name in checkouts:
        git = subprocess.run(
            ["git", "-C", checkouts[peer.name], "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
        )
        return git.stdout.strip() or "a folder without a commit"
    return version(peer.name)


def _sdist(name: str, scratch: Path) -> Path:
    """Return the unpacked source distribution of the installed version."""
    release = f"{name}=={version(name)}"
    folder = scratch / "sdist" / release
    if not folder.is_dir():
        download = scratch / "download" / release
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--no-binary", ":all:", "--dest", download, release], check=True)
        (archive,) = download.glob("*.tar.gz")
        unpacked = scratch / "unpacked" / release
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        (inner,) = unpacked.iterdir()
        folder.parent.mkdir(parents=True, exist_ok=True)
        inner.rename(folder)
    return folder


def run(peer: Peer, folder: Path, scratch: Path) -> list[Record]:
    """Run the peer's tests in a process of its own and return how each statement ended."""
    copy, records = scratch / "run" / peer.name, scratch / f"{peer.name}.jsonl"
    shutil.rmtree(copy, ignore_errors=True)
    records.unlink(missing_ok=True)
    for path in (*peer.tests, *peer.beside):
        source, target = folder / path, copy / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif path in peer.tests and path.endswith(".py"):
            target.write_text(wrapped(source.read_text("utf-8")), "utf-8")
        else:
            shutil.copyfile(source, target)
    (copy / "pytest.ini").write_text("[pytest]\n", "utf-8")
    environment = {
        **os.environ,
        ADAPTER: peer.adapter,
        RECORDS: str(records),
        "PYTHONPATH": os.pathsep.join((str(REPOSITORY), os.environ.get("PYTHONPATH", ""))),
    }
    modules = [path for path in peer.tests if path.endswith(".py")]
    doctests = [path for path in peer.tests if path.endswith(".doctest")]
    commands: list[Sequence[str]] = [
        [
            "-m",
            "pytest",
            "-q",
            "-p",
            "tools.peers.plugin",
            "-p",
            "no:cacheprovider",
            "--import-mode=importlib",
            "-c",
            "pytest.ini",
            *modules,
        ]
    ]
    if doctests:
        commands.append(["-m", "tools.peers.doctests", *doctests])
    for command in commands:
        done = subprocess.run(
            [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True
        )
        (scratch / f"{peer.name}.log").write_text(done.stdout + done.stderr, "utf-8")
        if done.returncode not in (0, 1) or not records.exists():
            raise SystemExit(
                f"{peer.name}: its tests did not run\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
            )
    return read(records)
