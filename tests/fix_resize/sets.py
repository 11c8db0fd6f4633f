"""Sets of images to build from, and ways to build them, for the tests of the pipeline."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from fix_resize.cli.main import app
from wordnet_splits.base.terminal.runner import run as run_application

COMMAND = [sys.executable, "-m", "fix_resize.cli.main"]


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(*words: object, **options: Any) -> Ran:
    """Run ``fix-resize`` in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, check=False, **options
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def run_here(*words: object) -> Ran:
    """Run ``fix-resize`` in this process."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = run_application(app, list(map(str, words)), "fix-resize")
    return Ran(code, out.getvalue(), err.getvalue())


def jpeg(seed: int, width: int = 60, height: int = 40) -> bytes:
    """A small picture with some structure."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
    buffer = io.BytesIO()
    coarse.resize((width + seed % 7, height + seed % 5)).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def make_folder(root: Path, classes: int = 3, each: int = 5) -> Path:
    """Make a folder of small pictures in class folders."""
    for number in range(classes * each):
        path = root / f"class-{number % classes}" / f"picture {number:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(number))
    return root


def photographs(real_data: Path) -> list[Path]:
    """The 200 photographs of ImageNet, sorted."""
    found = sorted((real_data / "imagenet" / "train").glob("*/*.JPEG"))
    assert len(found) == 200
    return found


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and its bytes, what a build remembers of its shards included."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def finished_shards(out: Path) -> list[Path]:
    """The markers of the shards that are done."""
    return sorted(p for p in (out / ".shards").glob("*.json") if p.name != "build.json")
