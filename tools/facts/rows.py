"""The mechanical cells of a catalog, and how facts files are read for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.facts.published import Published


@dataclass
class Row:
    """The mechanical cells of a class; ``counts`` and ``groups`` are by split."""

    class_id: str
    name: str
    superclass: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    count_group: str = ""


@dataclass
class Table:
    """The mechanical part of a catalog."""

    splits: tuple[str, ...]
    rows: list[Row]
    origin: list[str]
    own_wnids: bool = False  # the class id is the publisher's synset
    like: str = ""  # the source whose classes these are, under its hand-made map


def body(path: Path) -> list[str]:
    return Published(path).lines()


def records(path: Path) -> Iterator[dict[str, str]]:
    return Published(path).records()


def sources(*paths: Path) -> list[str]:
    """Return the ``source:`` lines of facts files."""
    found = (origin for path in paths for origin in Published(path).origin.split("; "))
    return [f"source: {origin}" for origin in dict.fromkeys(found)]


def first_word(words: str) -> str:
    return words.split(",")[0].strip()
