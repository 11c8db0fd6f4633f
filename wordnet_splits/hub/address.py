"""Addresses of published benchmarks: on the Hub (``hf://datasets/ORG/NAME@v1/X``), and of folders."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import platformdirs

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.names import printable

SCHEME = "hf://datasets/"
WEB_SCHEMES = ("https://", "http://")
MAIN = "main"
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_BENCHMARK = re.compile(r"[a-z0-9][a-z0-9-]*")
_ZIP = re.compile(r"(.*\.zip(?:\?[^/]*)?)(?:/([a-z0-9][a-z0-9-]*))?", re.IGNORECASE)
_ADDRESS = re.compile(rf"({_PART}/{_PART})(?:@({_PART}))?(?:/([a-z0-9][a-z0-9-]*))?")


@dataclass(frozen=True)
class Address:
    """A dataset repository at a revision, or one benchmark of it.

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
    """A folder of published benchmarks with its ``SHA256SUMS``, and perhaps one benchmark of it.

    Attributes
    ----------
    repo : the absolute path of the folder, or of a zip archive of it; or its https address.
    benchmark : None for all.
    """

    repo: str
    benchmark: str | None = None
    revision: ClassVar[str] = ""

    def __str__(self) -> str:
        return f"{self.repo}/{self.benchmark}" if self.benchmark else self.repo

    @property
    def is_remote(self) -> bool:
        """Say whether it is an address of a server."""
        return self.repo.startswith(WEB_SCHEMES)

    @property
    def is_zip(self) -> bool:
        """Say whether it is a zip archive."""
        return zip_address(self.repo) is not None

    @property
    def folder(self) -> Path:
        """Return where benchmarks of this folder are kept: in the user's cache."""
        return pulled_folder() / f"folder-{hashlib.sha256(self.repo.encode()).hexdigest()[:32]}"


def is_address(name: object) -> bool:
    """Say whether a benchmark is named by an address that is pulled: of the Hub, or of a server."""
    return str(name).startswith((SCHEME, *WEB_SCHEMES))


def zip_address(text: str) -> FolderAddress | None:
    """Return the archive, and perhaps the benchmark, that ``X.zip`` or ``X.zip/BENCHMARK`` names.

    A query may follow ``.zip``, as in addresses of Zenodo: ``X.zip?download=1``.
    """
    match = _ZIP.fullmatch(text)
    return None if match is None else FolderAddress(match[1], match[2])


def web_address(text: str, *, where: str) -> FolderAddress:
    """Return the folder and the benchmark that an https address names, as ``https://HOST/FOLDER/BENCHMARK``.

    Without a name that a benchmark may have at its end, it is the address of a whole folder.

    Raises
    ------
    SplitsError : not of that form; or http, except of this machine.
    """
    parts = urlsplit(text.rstrip("/"))
    path, _, benchmark = parts.path.rpartition("/")
    archive = zip_address(parts.geturl())
    query = parts.query if archive is None else ""
    plain = not (query or parts.fragment or parts.username) and ".." not in parts.path.split("/")
    if not (parts.hostname and plain):
        hint = "as in https://example.org/benchmarks/mine"
        raise SplitsError(f"{printable(text)!r} names no published folder", where=where, hint=hint)
    if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        hint = f"give https://{text.partition('://')[2]}"
        raise SplitsError("data sent over http can be altered on the way", where=where, hint=hint)
    if archive is not None:
        return archive
    if not _BENCHMARK.fullmatch(benchmark):
        return FolderAddress(parts.geturl())
    return FolderAddress(parts._replace(path=path).geturl(), benchmark)


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
