"""Two processes that find each other as those of torchrun do, without torchrun's own process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.wordnet_splits.command import REPOSITORY


def run_two_ranks(words: Sequence[str], folder: Path) -> list[tuple[int, str, str]]:
    """Return the exit code, standard output and standard error of each rank of ``python WORDS``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **common, "RANK": n, "LOCAL_RANK": n, "PYTHONPATH": str(REPOSITORY)},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in "01"
    ]
    outputs = [rank.communicate(timeout=300) for rank in ranks]
    return [(rank.returncode, *output) for rank, output in zip(ranks, outputs, strict=True)]
