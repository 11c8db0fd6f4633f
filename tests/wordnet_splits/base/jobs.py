"""Jobs of the tests of the pool: a worker that starts imports this file, and not what the tests need."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from wordnet_splits.base.errors import SplitsError


def squared(number: int) -> int:
    return number * number


def deadly_at_three(job: tuple[int, str]) -> int:
    if job[0] == 3:
        with Path(job[1]).open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return job[0]


def failing(number: int) -> int:
    raise SplitsError("no such thing", where=str(number))
