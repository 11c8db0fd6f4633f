"""The papers that detectors come from, read from ``papers.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final


@dataclass(frozen=True)
class Paper:
    """Where a method was published.

    Attributes
    ----------
    key : short name for citing, e.g. ``hendrycks2017``.
    title, authors, venue, year : as published. url : a lasting address.
    """

    key: str
    title: str
    authors: str
    venue: str
    year: int
    url: str

    def __str__(self) -> str:
        return f"{self.authors}. {self.title}. {self.venue}, {self.year}. {self.url}"


def _read() -> dict[str, Paper]:
    text = (files(str(__package__)) / "papers.toml").read_text(encoding="utf-8")
    return {key: Paper(key, **fields) for key, fields in tomllib.loads(text).items()}


PAPERS: Final[Mapping[str, Paper]] = _read()
"""Short name -> paper."""
