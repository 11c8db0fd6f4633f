"""How a hostile file takes the place of a sound one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

Make = Callable[[Path, Random], None]
Made = Mapping[str, tuple[str, Make]]
"""What each is called, the file whose place it takes (a pattern), and what makes it."""

LONG = 20_000_000
"""Letters of a text that nobody means."""


def in_bytes(content: Callable[[], bytes]) -> Make:
    """Put other content in the place of a file."""
    return lambda path, rng: _ignore(path.write_bytes(content()))


def in_text(change: Callable[[str], str]) -> Make:
    """Alter the text of a file."""
    return lambda path, rng: _ignore(path.write_text(change(path.read_text("utf-8")), "utf-8"))


def _ignore(_: object) -> None:
    return None


def beside(make: Callable[[Path], object]) -> Make:
    """Make something else in the folder of a file, which stays as it is."""
    return lambda path, rng: _ignore(make(path.parent))
