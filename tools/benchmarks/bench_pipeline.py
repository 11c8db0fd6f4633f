"""The whole pipeline (read, decode, resize, hash, write) against the bare Pillow loop, and its memory.

The command is run as a user runs it, so its seconds hold the start of the processes too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from tools.benchmarks.rows import Row, fastest

COPIES, ROUNDS = 100, 2
"""Of each of the 200 photographs; and how often ours and the peer's loop are run, in turn."""

FEW, MANY = 1000, 50_000
LARGEST = 600
"""MiB, of all processes together, pages that they share counted once."""

SHARED = Path(os.environ.get("WORDNET_SPLITS_SHARED", Path(__file__).resolve().parents[3] / "shared"))


def run() -> list[Row]:
    """Measure every row of this file."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with real_data(place) as data:
            rows = [speed(data, place)]
        return [*rows, memory(place)]


@contextlib.contextmanager
def real_data(place: Path) -> Iterator[Path]:
    """Yield the folder of the real datasets."""
    given = os.environ.get("WORDNET_SPLITS_TEST_DATA")
    if given:
        yield Path(given)
        return
    unpack = SHARED / "data" / "unpack"
    if not unpack.is_file():
        raise ImportError(f"real photographs are not at {unpack.parent} (set WORDNET_SPLITS_TEST_DATA)")
    subprocess.run([sys.executable, str(unpack), str(place / "data")], check=True, stdout=subprocess.DEVNULL)
    yield place / "data"


def speed(data: Path, place: Path) -> Row:
    """FIX of real photographs on two cores, and Pillow's part of the work on one."""
    photographs = sorted((data / "imagenet" / "train").glob("*/*.JPEG"))
    root = place / "photographs"
    for copy in range(COPIES):
        for path in photographs:
            target = root / f"{copy:02d}" / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(path, target)
    words = ("build", "folder", "--shard-size", "250", "--workers", "2", "--root")
    command(*words, str(root / "00"), "--out", str(place / "warm"))  # numba compiles once a machine
    ours = peer = float("inf")
    for n in range(ROUNDS):
        # into a new folder each time: ext4 is slow to reuse what was deleted a moment ago
        build = (*words, str(root), "--out", str(place / f"out-{n}"))
        ours = min(ours, fastest(lambda build=build: command(*build), 1) / (COPIES * len(photographs)))
        peer = min(peer, fastest(lambda: [bare(path) for path in photographs], 2) / len(photographs))
    return Row(
        f"fix of {COPIES * len(photographs):,} photographs, two processes",
        f"{1 / ours:,.0f} images/s",
        f"bare Pillow loop {1 / peer:,.0f} images/s",
        peer / ours,
        ">= 1.7 x",
        peer / ours >= 1.7,
    )


def link_or_copy(path: Path, target: Path) -> None:
    """Give a file a second name, or a copy where the disk has none for it."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copy(path, target)


def bare(path: Path) -> Image.Image:
    """Decode and resize, by Pillow and nothing else."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    scale = 256 / min(image.size)
    width, height = (256 if side == min(image.size) else int(side * scale) for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - 256) / 2), round((height - 256) / 2)
    return image.crop((left, top, left + 256, top + 256)).resize((32, 32), Image.Resampling.BILINEAR)


def command(*words: str) -> None:
    """Run ``fix-resize`` to its end."""
    subprocess.run([sys.executable, "-m", "fix_resize.cli.main", *words], check=True, capture_output=True)


def memory(place: Path) -> Row:
    """Peak memory of a build of 1,000 and one of 50,000 images: small ones, for what counts is how many."""
    for number in range(MANY):
        folder = place / "small" / f"{number // FEW:02d}"
        if number % FEW == 0:
            folder.mkdir(parents=True)
            Image.effect_noise((120, 90), 60).convert("RGB").save(folder / "000.jpg", quality=90)
        else:
            link_or_copy(folder / "000.jpg", folder / f"{number % FEW:03d}.jpg")
    few, many = peak(place / "small" / "00", place / "few"), peak(place / "small", place / "many")
    return Row(
        f"peak memory, {FEW:,} and {MANY:,} images, two processes",
        f"{few:,.0f} and {many:,.0f} MiB",
        "-",
        None,
        f"<= {LARGEST} MiB each",
        max(few, many) <= LARGEST,
    )


def peak(root: Path, out: Path) -> float:
    """Return the largest memory in MiB that a build and its processes take together."""
    words = ["build", "folder", "--root", str(root), "--out", str(out), "--shard-size", "250"]
    words += ["--format", "parquet", "--workers", "2"]
    command_line = [sys.executable, "-m", "fix_resize.cli.main", *words]
    process = subprocess.Popen(command_line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    largest = 0
    while process.poll() is None:
        largest = max(largest, sum(map(proportional, family(process.pid))))
        time.sleep(0.05)
    if process.returncode != 0:
        raise RuntimeError(f"the build of {root} ended with {process.returncode}")
    return largest / 1024


def family(pid: int) -> list[int]:
    """Return a process and what it has started."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [pid, *(below for child in text.split() for below in family(int(child)))]


def proportional(pid: int) -> int:
    """Return the memory of a process in KiB, shared pages divided among those that share them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
