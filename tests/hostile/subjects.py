"""Commands that write, to be disturbed while they do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tests.hostile.running import finish

DIGITS = ("--benchmark", "digits", "--device", "cpu")
TRAIN = ("unknown-eval", "train", *DIGITS, "--recipe", "digits-demo", "--seeds", "0", "--epochs", "2")


@dataclass(frozen=True)
class Subject:
    """A command that writes.

    Attributes
    ----------
    words : the folder of what it reads, and the folder to write to -> program and arguments.
    output : path below the folder that is compared with the output of an undisturbed run, byte for byte.
    """

    name: str
    words: Callable[[Path, Path], Sequence[str]]
    output: str


def _resized(file_format: str) -> Subject:
    words = ("fix-resize", "build", "--format", file_format, "--backend", "pillow", "folder")
    more = ("--shard-size", "20", "--workers", "2")
    return Subject(
        f"fix-resize build ({file_format})",
        lambda inputs, out: [*words, "--root", str(inputs / "images"), *more, "--out", str(out / "set")],
        "set",
    )


SUBJECTS = (
    Subject(
        "wordnet-splits build",
        lambda inputs, out: ["wordnet-splits", "build", "digits", "--out", str(out)],
        "digits",
    ),
    Subject(
        "wordnet-splits freeze",
        lambda inputs, out: [
            *("wordnet-splits", "freeze", "digits", "--built", str(inputs / "built")),
            *("--manifests", str(out / "manifests")),
        ],
        "manifests",
    ),
    Subject(
        "wordnet-splits pack",
        lambda inputs, out: ["wordnet-splits", "pack", "digits", "--out", str(out / "store")],
        "store",
    ),
    _resized("png"),
    _resized("parquet"),
    Subject(
        "unknown-eval train",
        lambda inputs, out: [*TRAIN, "--threads", "1", "--out", str(out / "models")],
        "models",
    ),
    Subject(
        "unknown-eval run",
        lambda inputs, out: [
            *("unknown-eval", "run", *DIGITS, "--model", f"trained:{inputs}/models/digits"),
            *("--detectors", "msp,energy,knn", "--store", str(out / "store"), "--out", str(out / "results")),
        ],
        "results",
    ),
)


def make_inputs(inputs: Path) -> None:
    """Write what the subjects read."""
    rng = np.random.default_rng(0)
    for number in range(300):  # enough to be met in the middle
        path = inputs / "images" / f"class-{number % 7}" / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (48, 40 + number % 9, 3), np.uint8)).save(path)
    finish(inputs, "wordnet-splits", "build", "digits", "--out", "built")
    finish(inputs, *TRAIN, "--threads", "1", "--out", "models")


def content(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, locks aside."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(_without_place(path)).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def _without_place(path: Path) -> bytes:
    """Return a file's bytes; a trained model's without the command, which names the folder it was run for."""
    if path.name != "model.json":
        return path.read_bytes()
    data = json.loads(path.read_bytes())
    return json.dumps({k: v for k, v in data.items() if k not in ("command", "checksum")}).encode()
