"""What is disturbed: the commands that write, each with how its output is checked and compared."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "wordnet-splits": "wordnet_splits.cli.main",
    "fix-resize": "fix_resize.cli.main",
    "unknown-eval": "loaders.harness.cli.main",
}
PICTURES = 300


@dataclass(frozen=True)
class Subject:
    """A command that writes below a folder, and the one that checks what it wrote.

    Attributes
    ----------
    make : folder to write to -> program and arguments.
    check : the same folder -> program and arguments; exit code 0 for what is whole.
    output : what below the folder is compared, byte for byte, with that of an undisturbed run.
    free : keys of JSON files that may hold anything, since nobody relies on them.
    working : a folder of the output that only the command itself reads, on going on; nobody checks it, but
        after its alteration the command has to end in the same output again, or to refuse.
    """

    name: str
    make: Callable[[Path], list[str]]
    check: Callable[[Path], list[str]]
    output: str
    free: tuple[str, ...] = ()
    working: str | None = None


def subjects(inputs: Path) -> list[Subject]:
    """Return all subjects; ``inputs`` gets the pictures and the model that some of them read."""
    pictures = make_pictures(inputs / "pictures")
    model = inputs / "models"
    train = ["unknown-eval", "train", "--benchmark", "digits", "--recipe", "digits-demo", "--seeds", "0"]
    train += ["--epochs", "2", "--threads", "1", "--device", "cpu", "--out"]
    if not any(model.glob("digits/*/model.json")):
        finished = run([*train, str(model)])
        assert finished.returncode == 0, finished.stderr

    def resize(file_format: str) -> Subject:
        words = ["fix-resize", "build", "folder", "--root", str(pictures), "--format", file_format]
        return Subject(
            f"fix-resize build ({file_format})",
            lambda out: [*words, "--shard-size", "20", "--backend", "pillow", "--out", str(out / "set")],
            lambda out: ["fix-resize", "verify", str(out / "set")],
            "set",
            free=("versions", "provenance"),
            working=".shards",
        )

    def evaluate(out: Path) -> list[str]:
        words = ["unknown-eval", "run", "--benchmark", "digits", "--model", f"trained:{model}/digits"]
        words += ["--detectors", "msp,energy,knn", "--device", "cpu", "--store", str(out / "store")]
        return [*words, "--out", str(out / "results")]

    return [
        Subject(
            "wordnet-splits build",
            lambda out: ["wordnet-splits", "build", "digits", "--out", str(out)],
            lambda out: ["wordnet-splits", "verify", str(out / "digits")],
            "digits",
            free=("provenance",),
        ),
        Subject(
            "wordnet-splits pack",
            lambda out: ["wordnet-splits", "pack", "digits", "--out", str(out / "store")],
            lambda out: ["wordnet-splits", "pack", "digits", "--check", "--out", str(out / "store")],
            "store",
        ),
        resize("png"),
        resize("parquet"),
        Subject(
            "unknown-eval train",
            lambda out: [*train, str(out / "models")],
            lambda out: [
                *("unknown-eval", "run", "--benchmark", "digits", "--detectors", "msp", "--device", "cpu"),
                *("--model", f"trained:{out}/models/digits", "--store", str(inputs / "store-of-trained")),
                *("--out", str(out / "checked"), "--overwrite"),
            ],
            "models",
        ),
        Subject(
            "unknown-eval run",
            evaluate,
            lambda out: ["unknown-eval", "check-results", str(out / "results")],
            "results",
        ),
    ]


def make_pictures(folder: Path) -> Path:
    """Write small pictures, the same at every call, in folders of their own."""
    rng = np.random.default_rng(0)
    for number in range(PICTURES):
        path = folder / f"class-{number % 7}" / f"{number:03d}.png"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (48, 40 + number % 9, 3), np.uint8)).save(path)
    return folder


def arguments(words: Sequence[str]) -> list[str]:
    """Return the command line of a program of ours in this interpreter."""
    return [sys.executable, "-m", PROGRAMS[words[0]], *words[1:]]


def environment() -> dict[str, str]:
    """Return this process's environment, importing this checkout, on one thread."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def run(words: Sequence[str], seconds: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        arguments(words), capture_output=True, text=True, errors="replace", env=environment(), timeout=seconds
    )


def content(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, locks aside."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def unfinished(folder: Path) -> list[str]:
    """Return what a killed writer left and nobody cleared."""
    return [str(p.relative_to(folder)) for p in folder.rglob("*") if p.name.endswith((".part", ".old"))]
