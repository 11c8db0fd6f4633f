"""The whole pipeline (read, decode, resize, hash, write) against the bare Pillow loop, and its memory.

The command is run as a user runs it, so its seconds hold the start of the processes too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from PIL import Image

from tools.benchmarks.rows import Row, fastest, real_data

COPIES, ROUNDS = 20, 2
"""Copies of each of the 200 photographs, and rounds; our build and the peer's loop alternate."""

FEW, MANY = 1000, 10_000
LARGEST = 600
"""Largest memory in MiB of all processes together, shared pages counted once."""


def run() -> list[Row]:
    """Measure every row of this file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with real_data() as data:
            rows = [speed(data, folder)]
        return [*rows, memory(folder)]


def speed(data: Path, folder: Path) -> Row:
    """Measure FIX of real photographs on two cores, and Pillow's part of the work on one."""
    photographs = sorted((data / "imagenet" / "train").glob("*/*.JPEG"))
    root = folder / "photographs"
    for copy in range(COPIES):
        for path in photographs:
            target = root / f"{copy:02d}" / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(path, target)
    words = ("build", "folder", "--shard-size", "250", "--workers", "2", "--root")
    command(*words, str(root / "00"), "--out", str(folder / "warm"))  # numba compiles once per machine
    seconds = peer = float("inf")
    for n in range(ROUNDS):
        # a new folder each time: ext4 is slow to reuse blocks deleted just before
        build = (*words, str(root), "--out", str(folder / f"out-{n}"))
        seconds = min(seconds, fastest(partial(command, *build), 1) / (COPIES * len(photographs)))
        peer = min(peer, fastest(lambda: [bare(path) for path in photographs], 2) / len(photographs))
    return Row(
        f"fix of {COPIES * len(photographs):,} photographs, two processes",
        f"{1 / seconds:,.0f} images/s",
        f"bare Pillow loop {1 / peer:,.0f} images/s",
        peer / seconds,
        ">= 1.7 x",
        peer / seconds >= 1.7,
    )


def link_or_copy(path: Path, target: Path) -> None:
    """Link a file, or copy it if the disk has no links."""
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


def memory(folder: Path) -> Row:
    """Measure the peak memory of builds of few and of many images, which are small: it must not grow."""
    for number in range(MANY):
        subfolder = folder / "small" / f"{number // FEW:02d}"
        if number % FEW == 0:
            subfolder.mkdir(parents=True)
            Image.effect_noise((120, 90), 60).convert("RGB").save(subfolder / "000.jpg", quality=90)
        else:
            link_or_copy(subfolder / "000.jpg", subfolder / f"{number % FEW:03d}.jpg")
    few, many = peak(folder / "small" / "00", folder / "few"), peak(folder / "small", folder / "many")
    return Row(
        f"peak memory, {FEW:,} and {MANY:,} images, two processes",
        f"{few:,.0f} and {many:,.0f} MiB",
        "-",
        None,
        f"<= {LARGEST} MiB each",
        max(few, many) <= LARGEST,
    )


def peak(root: Path, out: Path) -> float:
    """Return the peak memory in MiB of a build and its processes together."""
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
    """Return a process and its descendants."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [pid, *(below for child in text.split() for below in family(int(child)))]


def proportional(pid: int) -> int:
    """Return the memory of a process in KiB, shared pages divided by the number of their users."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
