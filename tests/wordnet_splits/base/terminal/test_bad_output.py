"""Output that cannot be written, Ctrl-C, and two builds at once: real processes, and nothing half-written."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.raising import mentions
from tests.selection import cases
from tests.wordnet_splits.command import Command, environment, finish, spawn
from tests.wordnet_splits.recipes import BANDED, FAR, HEAD, KNOWN, group, visible, write_dtd, write_recipe
from wordnet_splits.base import parquet
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.construct.digesting import CHUNK

TEST_ALL = '{ test = { from = "all", all = true } }'


def test_a_lack_of_memory_is_one_line(command, monkeypatch):
    def short(*arguments, **options):
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(parquet.pq, "ParquetFile", short)  # type: ignore[attr-defined]
    assert "malloc of size 64 failed" in command("build", "unknown-cifar").error


@pytest.fixture
def command(capsys, monkeypatch, tmp_path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def test_an_output_that_cannot_be_written(command, tmp_path):
    (tmp_path / "file").touch()
    for out in ("file", "file/below"):
        assert "file" in command("build", "digits", "--out", out).error
    if Path("/proc").is_dir():
        line = command("build", "digits", "--out", "/proc/nowhere").error
        assert mentions(line, "/proc/nowhere")
        assert "or give another one" in line
    command("build", "digits")
    assert command("freeze", "digits", "--manifests", "file").error


def largest_file(size: int) -> Callable[[], None]:
    """What a process does first to write no file larger than ``size`` bytes: the same as a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.faults
@pytest.mark.parametrize("size", cases([0, 20_000], always=20_000))
def test_a_full_disk(command, tmp_path, size):
    assert command("build", "digits", "--out", "out").code == 0
    before = (tmp_path / "out" / "digits" / "manifest.json").read_bytes()
    done = spawn(tmp_path, "build", "digits", "--out", "out", preexec_fn=largest_file(size))
    assert done.error
    assert done.error
    assert visible(tmp_path / "out") == ["digits"]
    left = {p.name for p in (tmp_path / "out").iterdir()}
    assert left - {".digits.journal"} == {"digits"}
    assert (tmp_path / "out" / "digits" / "manifest.json").read_bytes() == before


@pytest.mark.faults
def test_a_disk_that_fills_while_images_are_read(tmp_path):
    root = write_dtd(tmp_path / "dtd")
    recipe = write_recipe(tmp_path, KNOWN, group("far", "far", "dtd", BANDED, TEST_ALL))
    done = spawn(
        tmp_path, "build", recipe, "--root", f"dtd={root}", "--out", "out", preexec_fn=largest_file(2000)
    )
    assert done.error
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [".mine.journal"]


# -- interruption and two at once ------------------------------------------------------------------------

CLASSES = ("banded", "blotchy", "braided", "bubbly")
MANY = group("far", "far", "dtd", f"{{ listed = {list(CLASSES)} }}", TEST_ALL)


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> tuple[Path, Path, str]:
    """A recipe and a root of 480 images, four chunks of reading, and the fingerprint they give."""
    folder = tmp_path_factory.mktemp("many")
    root = write_dtd(folder / "dtd", CLASSES)
    recipe = write_recipe(folder, KNOWN, MANY)
    built = build_benchmark(recipe, roots={"dtd": root}, out=folder / "out")
    return recipe, root, str(built.manifest.fingerprint) + _pixels(folder / "out" / "mine")


def _pixels(folder: Path) -> str:
    return str(json.loads((folder / "manifest.json").read_text())["fingerprints"]["pixels_in_all"])


HALTING = """
import sys, threading
from wordnet_splits.benchmark.construct import digesting
from wordnet_splits.cli import main

add = digesting._Journal.add

def halting(*arguments):
    add(*arguments)
    print("noted", flush=True)
    threading.Event().wait()

digesting._Journal.add = halting
sys.exit(main.run(main.app, sys.argv[1:], "wordnet-splits"))
"""
"""A build that stands still once it has noted its first chunk of images."""


def halted(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start a build in a process group of its own, and return it when it stands still."""
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    words = [sys.executable, "-c", HALTING, *map(str, arguments)]
    process = subprocess.Popen(
        words, cwd=folder, env=environment(folder), text=True, start_new_session=True, **pipes
    )
    assert process.stdout.readline() == "noted\n", process.communicate()
    return process


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.faults), 2])
def test_ctrl_c_leaves_nothing_half_written_and_the_next_build_goes_on(command, tmp_path, many, workers):
    recipe, root, fingerprint = many
    arguments = ("build", recipe, "--root", f"dtd={root}", "--out", "out", "--json")
    process = halted(tmp_path, *arguments, "--workers", workers)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to every process, workers too
    done = finish(process)
    assert done.code == 130
    assert done.out == ""
    last = done.err.splitlines()[-1]  # before it, a busy machine shows how far the reading is
    assert last == "interrupted; nothing half-written is left, and the same command continues from here"
    assert visible(tmp_path / "out") == []

    noted = (tmp_path / "out" / ".mine.journal" / "dtd.tsv").read_text().splitlines()
    assert len(noted) == 1 + CHUNK
    again = command(*arguments)
    assert again.code == 0
    assert again.json["built"][0]["fingerprint"] + _pixels(tmp_path / "out" / "mine") == fingerprint
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["mine"]


def test_a_killed_build_leaves_nothing_half_written_either(command, tmp_path, many):
    recipe, root, fingerprint = many
    arguments = ("build", recipe, "--root", f"dtd={root}", "--out", "out", "--json")
    process = halted(tmp_path, *arguments, "--workers", 2)
    process.kill()
    assert finish(process).code == -signal.SIGKILL  # its pipes end with the last of its workers
    assert visible(tmp_path / "out") == []
    with (tmp_path / "out" / ".mine.journal" / "dtd.tsv").open("ab") as journal:
        journal.write(b"banded/banded_0002\tnot a dig\xff")  # torn where the power went
    again = command(*arguments)
    assert again.json["built"][0]["fingerprint"] + _pixels(tmp_path / "out" / "mine") == fingerprint


def test_a_journal_of_other_roots_is_no_hindrance(command, tmp_path):
    """What an interrupted build with more roots left behind goes when the next one is done."""
    left = tmp_path / "out" / ".mine.journal" / "food101.tsv"
    left.parent.mkdir(parents=True)
    left.write_text("{}\n")
    recipe = write_recipe(tmp_path, KNOWN, FAR)
    assert command("build", recipe, "--out", "out").code == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["mine"]


HELD = """
import sys
from wordnet_splits.benchmark.construct import run
from wordnet_splits.cli import main

read = run.read_pixels

def held(*arguments, **options):
    print("reading", file=sys.stderr, flush=True)
    sys.stdin.readline()
    return read(*arguments, **options)

run.read_pixels = held
sys.exit(main.run(main.app, sys.argv[1:], "wordnet-splits"))
"""
"""A build that waits, in the middle, for a line on its standard input."""


def test_two_builds_into_one_folder_at_once(command, tmp_path):
    arguments = ("build", str(write_recipe(tmp_path, KNOWN)), "--out", "out")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    first = subprocess.Popen(
        [sys.executable, "-c", HELD, *arguments], cwd=tmp_path, env=environment(tmp_path), text=True, **pipes
    )
    assert first.stderr.readline() == "reading\n"
    assert mentions(spawn(tmp_path, *arguments).error, "build")
    assert command(*arguments[:-1], "elsewhere").code == 0
    first.communicate("go on\n")
    assert first.returncode == 0
    one, other = (tmp_path / out / "mine" / "manifest.json" for out in ("out", "elsewhere"))
    assert one.read_bytes() == other.read_bytes()


def test_what_a_kill_left_is_cleared_by_the_next_build(command, tmp_path):
    for name in (".digits.part", ".digits.old"):
        (tmp_path / "build" / name / "images").mkdir(parents=True)
    assert command("build", "digits").code == 0
    assert sorted(p.name for p in (tmp_path / "build").iterdir()) == ["digits"]


def test_an_old_manifest_stays_when_a_build_is_refused(command, tmp_path):
    recipe = write_recipe(tmp_path, KNOWN)
    command("build", recipe)
    before = (tmp_path / "build" / "mine" / "manifest.json").read_bytes()
    write_recipe(tmp_path, KNOWN.replace("all = true", "per_class = 500"), head=HEAD)
    assert command("build", recipe).code == 2
    assert (tmp_path / "build" / "mine" / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_outputs_are_no_error(closed, tmp_path):
    words = [sys.executable, "-m", "wordnet_splits.cli.main", "cite", "digits"]
    shell = ["sh", "-c", f'"$@" {closed}', "sh", *words]
    done = subprocess.run(shell, capture_output=True, text=True, env=environment(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("@") == (closed == "2>&-")
