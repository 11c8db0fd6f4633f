"""Addresses of published benchmarks: on the Hub (``hf://datasets/ORG/NAME@v1/X``), and of folders."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import platformdirs

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.names import printable

SCHEME = "hf://datasets/"
MAIN = "main"
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"({_PART}/{_PART})(?:@({_PART}))?(?:/([a-z0-9][a-z0-9-]*))?")


@dataclass(frozen=True)
class Address:
    """A dataset repository at a revision, or a single benchmark in it.

    Attributes
    ----------
    repo : ``ORG/NAME``.
    revision : a tag, a branch or a commit.
    benchmark : None for all.
    """

    repo: str
    revision: str = MAIN
    benchmark: str | None = None

    def __str__(self) -> str:
        below = f"/{self.benchmark}" if self.benchmark else ""
        return f"{SCHEME}{self.repo}@{self.revision}{below}"

    @property
    def folder(self) -> Path:
        """The folder in the user's cache for benchmarks of this revision."""
        return pulled_folder() / f"{self.repo.replace('/', '--')}@{self.revision}"


@dataclass(frozen=True)
class FolderAddress:
    """A folder of published benchmarks with its ``SHA256SUMS``, or a single benchmark in it.

    Attributes
    ----------
    repo : the absolute path of the folder.
    benchmark : None for all.
    """

    repo: str
    benchmark: str | None = None
    revision: ClassVar[str] = ""

    def __str__(self) -> str:
        return f"{self.repo}/{self.benchmark}" if self.benchmark else self.repo

    @property
    def folder(self) -> Path:
        """Return where benchmarks of this folder are kept: in the user's cache."""
        return pulled_folder() / f"folder-{hashlib.sha256(self.repo.encode()).hexdigest()[:32]}"


def is_address(name: object) -> bool:
    """Return whether a benchmark is named by its address on the Hub."""
    return str(name).startswith(SCHEME)


def pulled_folder() -> Path:
    """Return the folder of all pulled benchmarks."""
    return Path(platformdirs.user_cache_dir("wordnet-splits")) / "hub"


def parse_address(text: str, *, where: str) -> Address:
    """Parse an address, with or without ``hf://datasets/``.

    Raises
    ------
    SplitsError : the text is not an address.
    """
    match = _ADDRESS.fullmatch(text.removeprefix(SCHEME).removesuffix("/"))
    if match is None or ".." in text or "--" in match[1]:
        raise SplitsError(
            f"{printable(text)!r} names no repository",
            where=where,
            hint="as in ORG/NAME, ORG/NAME@v1, hf://datasets/ORG/NAME@v1/unknown-cifar",
        )
    return Address(match[1], match[2] or MAIN, match[3])
