"""What is disturbed and altered: the commands that write, each with how its output is checked."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tests.wordnet_splits.recipes import KNOWN, group, write_dtd, write_recipe
from tools.fuzz.zygote import PROGRAMS, REPOSITORY, Ended, Zygote

Words = list[str]

PICTURES = 300
"""Enough that a build of them takes long enough to be met in the middle."""

DIGITS = ("--benchmark", "digits", "--device", "cpu")
TRAIN = ("unknown-eval", "train", *DIGITS, "--recipe", "digits-demo", "--seeds", "0", "--epochs", "2")


@dataclass(frozen=True)
class Subject:
    """A command that writes below a folder, and the one that checks what it wrote.

    Attributes
    ----------
    make : folder to write to -> program and arguments.
    check : the same folder -> program and arguments; exit code 0 for what is whole.
    output : what below the folder is compared, byte for byte, with that of an undisturbed run.
    code : exit code of ``make`` when nothing happens to it.
    free : keys of JSON files that may hold anything, since nobody relies on them.
    altered : what below the folder is altered, ``output`` unless given.
    working : a folder that only the command itself reads, on going on; nobody checks it, but after an
        alteration in it the command has to end in the same output, or to refuse.
    again : what goes on from there, ``make`` unless given.
    most : of its alterations, drawn by the seed; all unless given.
    faults : ``disturbed``, ``altered``, or both.
    """

    name: str
    make: Callable[[Path], Words]
    check: Callable[[Path], Words]
    output: str
    code: int = 0
    free: tuple[str, ...] = ()
    altered: str | None = None
    working: str | None = None
    again: Callable[[Path], Words] | None = None
    most: int | None = None
    faults: tuple[str, ...] = ("disturbed", "altered")

    @property
    def program(self) -> str:
        """Return the program that makes and checks it."""
        return self.make(Path())[0]

    def goes_on(self, folder: Path) -> Words:
        """Return what goes on from what is there."""
        return (self.again or self.make)(folder)

    def finished(self, folder: Path) -> dict[str, str]:
        """Return the content of the output without the working folder."""
        found = content(folder / self.output)
        return {path: digest for path, digest in found.items() if Path(path).parts[0] != self.working}


def subjects(inputs: Path) -> list[Subject]:
    """Return all subjects; ``inputs`` gets what some of them read, when it is not there."""
    if not inputs.exists():
        _make_inputs(inputs)
    return [*_benchmarks(inputs), *_resized(inputs), *_trained(inputs), *_evaluated(inputs)]


def _make_inputs(inputs: Path) -> None:
    make_pictures(inputs / "pictures")
    finish(["wordnet-splits", "build", "digits", "--out", str(inputs / "built")], inputs)
    root = write_dtd(inputs / "dtd")
    few = group("few", "far", "dtd", '{ listed = ["banded"] }', '{ test = { from = "all", total = 12 } }')
    recipe = write_recipe(inputs, KNOWN, few + 'view = "fix"\n')
    finish(["wordnet-splits", "build", str(recipe), "--root", f"dtd={root}", "--out", str(inputs)], inputs)
    drawn = _drawn(inputs / "mine")
    (root / "images" / f"{drawn[3]}.jpg").unlink()
    cut = root / "images" / f"{drawn[7]}.jpg"
    cut.write_bytes(cut.read_bytes()[:-200])
    finish([*TRAIN, "--threads", "1", "--out", str(inputs / "models")], inputs)


def _drawn(manifest: Path) -> list[str]:
    from wordnet_splits.benchmark.resolve import load_manifest

    return sorted(load_manifest(manifest).images("test", "few")["image_id"].to_pylist())


def _benchmarks(inputs: Path) -> list[Subject]:
    frozen = ["wordnet-splits", "freeze", "digits", "--built", str(inputs / "built"), "--manifests"]
    return [
        Subject(
            "wordnet-splits build",
            lambda out: ["wordnet-splits", "build", "digits", "--out", str(out)],
            lambda out: ["wordnet-splits", "verify", str(out / "digits")],
            "digits",
            free=("provenance",),
        ),
        Subject(
            "wordnet-splits freeze",
            lambda out: [*frozen, str(out / "manifests")],
            lambda out: ["wordnet-splits", "verify", "digits", "--manifests", str(out / "manifests")],
            "manifests",
            free=("provenance",),
            most=200,  # the same files as of a build, of which all is altered
        ),
        Subject(
            "wordnet-splits pack",
            lambda out: ["wordnet-splits", "pack", "digits", "--out", str(out / "store")],
            lambda out: ["wordnet-splits", "pack", "digits", "--check", "--out", str(out / "store")],
            "store",
        ),
    ]


def _resized(inputs: Path) -> list[Subject]:
    """Return a build that takes its time, to be disturbed, and one with something in each of its tables."""

    def subject(file_format: str, fault: str) -> Subject:
        words = ["fix-resize", "build", "--format", file_format, "--backend", "pillow"]
        if fault == "disturbed":
            words += ["folder", "--root", str(inputs / "pictures"), "--shard-size", "20", "--workers", "2"]
        else:
            words += ["from-manifest", str(inputs / "mine"), "--root", f"dtd={inputs / 'dtd'}"]
            words += ["--shard-size", "4", "--allow-missing"]
        return Subject(
            f"fix-resize build ({file_format})",
            lambda out: [*words, "--out", str(out / "set")],
            lambda out: ["fix-resize", "verify", str(out / "set")],
            "set",
            code=0 if fault == "disturbed" else 3,
            working=".shards",
            faults=(fault,),
        )

    return [subject(f, fault) for f in ("png", "parquet") for fault in ("disturbed", "altered")]


def _trained(inputs: Path) -> list[Subject]:
    def train(out: Path) -> Words:
        return [*TRAIN, "--threads", "1", "--out", str(out / "models")]

    def interrupted(out: Path) -> Words:
        return ["train-an-epoch", *train(out)[1:]]

    def evaluate(out: Path) -> Words:
        words = ["unknown-eval", "run", *DIGITS, "--detectors", "msp"]
        words += ["--model", f"trained:{out}/models/digits"]
        return [*words, "--store", str(out / "store"), "--out", str(out / "checked"), "--overwrite"]

    return [
        Subject("unknown-eval train", train, evaluate, "models"),
        Subject(
            "unknown-eval train (unfinished)",
            interrupted,
            evaluate,
            "models",
            code=130,
            working="models",
            again=train,
            faults=("altered",),
        ),
    ]


def _evaluated(inputs: Path) -> list[Subject]:
    def evaluate(out: Path, *more: str) -> Words:
        words = ["unknown-eval", "run", *DIGITS, "--model", f"trained:{inputs}/models/digits"]
        words += ["--detectors", "msp,energy,knn", "--store", str(out / "store")]
        return [*words, "--out", str(out / "results"), *more]

    def check(out: Path) -> Words:
        return ["unknown-eval", "check-results", str(out / "results")]

    return [
        Subject("unknown-eval run", evaluate, check, "results"),
        Subject(
            "unknown-eval run (activations)",
            evaluate,
            check,
            "results",
            altered="store",
            working="store",
            most=400,  # three groups of the same files
            again=lambda out: evaluate(out, "--overwrite"),
            faults=("altered",),
        ),
    ]


def make_pictures(folder: Path) -> Path:
    """Write small pictures, the same at every call, in folders of their own."""
    rng = np.random.default_rng(0)
    for number in range(PICTURES):
        path = folder / f"class-{number % 7}" / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (48, 40 + number % 9, 3), np.uint8)).save(path)
    return folder


def arguments(words: Sequence[str]) -> list[str]:
    """Return the command line of a program of ours in this interpreter, begun as its script begins it."""
    package = PROGRAMS[words[0]].removesuffix(".main")
    return [sys.executable, "-c", f"from {package} import program; program()", *words[1:]]


def environment() -> dict[str, str]:
    """Return this process's environment, importing this checkout, on one thread."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def once(words: Sequence[str], folder: Path) -> Ended:
    """Run one command."""
    zygote = Zygote([words[0]])
    try:
        return zygote.run(words, folder)
    finally:
        zygote.close()


def finish(words: Sequence[str], folder: Path) -> None:
    """Run one command that nothing is to happen to."""
    ended = once(words, folder)
    assert ended.code == 0, (words, ended.said)


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


def unfinished(folder: Path) -> list[str]:
    """Return what a killed writer left and nobody cleared."""
    return [str(p.relative_to(folder)) for p in folder.rglob("*") if p.name.endswith((".part", ".old"))]


def linked(whole: Path, to: Path) -> None:
    """Put a copy of a folder at ``to`` whose files are hard links: to be replaced, never written to."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(whole, to, copy_function=os.link)
