"""Folders of published benchmarks, with their ``SHA256SUMS``."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import DataError, ManifestError, SplitsError
from wordnet_splits.base.files import replacing
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.untrusted import path_below, read_text, sha256_of
from wordnet_splits.benchmark.pulling import Pulled, Verify, pull
from wordnet_splits.remote.address import Address, FolderAddress, parse_address
from wordnet_splits.remote.repository import LARGEST

SUMS: Final = "SHA256SUMS"
"""The list of checksums of a published folder, as ``sha256sum -c`` reads it."""
_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *]([^\\\0]+)")
_TELL: Final = "fetch the folder again, or report this to the publisher"


@dataclass(frozen=True)
class ListedFile:
    """A file of a published folder: its path and the SHA-256 of its bytes."""

    path: str
    sha256: str

    def is_at(self, path: Path) -> bool:
        """Return whether the file at ``path`` is this one."""
        return path.is_file() and sha256_of(path, largest=LARGEST) == self.sha256


class PublishedFolder:
    """The files that the ``SHA256SUMS`` of a folder lists; a `wordnet_splits.benchmark.pulling.Store`.

    Raises
    ------
    ManifestError : ``SHA256SUMS`` is absent or malformed.
    """

    def __init__(self, address: FolderAddress) -> None:
        self._address = address
        file = Path(address.repo) / SUMS
        if not file.is_file():
            hint = "give a folder written by `hub publish --to`; a manifest's folder is read as it is"
            raise ManifestError(f"no {SUMS} here", where=address.repo, hint=hint)
        text = read_text(file, error=ManifestError)
        self._commit = hashlib.sha256(text.encode()).hexdigest()[:40]
        sums = parse_sums(text, self.where(SUMS))
        self._files = {path: ListedFile(path, digest) for path, digest in sums.items()}

    def where(self, path: str = "", *, commit: str = "") -> str:
        """Return a place in it as an error names it."""
        return f"{self._address.repo}/{path}".rstrip("/")

    def resolve(self, revision: str) -> str:
        """Return what identifies all files: the start of the SHA-256 of ``SHA256SUMS``."""
        return self._commit

    def tags(self) -> dict[str, str]:
        """Return nothing: a folder has no tags."""
        return {}

    def files(self, commit: str) -> Mapping[str, ListedFile]:
        """Return all listed files by path."""
        return self._files

    def fetch(self, file: ListedFile, commit: str, folder: Path, *, largest: int = LARGEST) -> Path:
        """Return a file below ``folder``, copied unless it is there already.

        Raises
        ------
        ManifestError : it is absent, larger than ``largest`` bytes, or not the file that is listed.
        """
        path = path_below(folder, file.path)
        if file.is_at(path):
            return path
        path.unlink(missing_ok=True)
        original = path_below(Path(self._address.repo), file.path)
        digest = sha256_of(original, largest=largest, error=ManifestError)
        if digest != file.sha256:
            message = f"its SHA-256 is {digest}, {SUMS} says {file.sha256}"
            raise ManifestError(message, where=str(original), hint=_TELL)
        with replacing(path) as part:
            shutil.copyfile(original, part)
        return path


def parse_sums(text: str, where: str) -> dict[str, str]:
    """Return the SHA-256 of each path that a ``SHA256SUMS`` lists.

    Raises ManifestError if a line is malformed, a path leaves the folder or is there twice.
    """

    def wrong_line(number: int, problem: str) -> ManifestError:
        return ManifestError(f"line {number}: {problem}", where=where, hint=_TELL)

    digests: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise wrong_line(number, "is not a SHA-256, two spaces and a path")
        digest, path = match.groups()
        try:
            path_below(Path("folder"), path)
        except DataError as error:
            raise wrong_line(number, error.what) from None
        if path in digests:
            raise wrong_line(number, f"lists {printable(path)!r} twice")
        digests[path] = digest
    return digests


def sums_of(files: Mapping[str, Path]) -> str:
    """Return the text of ``SHA256SUMS`` for files by their path in a folder.

    Raises DataError if a path holds a line break or a backslash.
    """
    for path in files:
        if not path.isprintable() or "\\" in path:
            raise DataError(f"{printable(path)!r} cannot be listed in {SUMS}", hint="rename the file")
    return "".join(f"{sha256_of(file, largest=LARGEST)}  {path}\n" for path, file in sorted(files.items()))


def published_address(text: str | Path, *, where: str) -> Address | FolderAddress:
    """Return the address of a repository of the Hub, or of a folder of published benchmarks.

    A text is a folder where it begins with ``/``, ``./``, ``../`` or ``~``; ``ORG/NAME`` is a repository.

    Raises
    ------
    SplitsError : another form; or a repository and a published folder here have this name.
    ManifestError : the folder does not exist.
    """
    if isinstance(text, Path) or text.startswith(("/", "./", "../", "~")) or text in (".", ".."):
        return _folder_address(Path(text).expanduser())
    if (Path(text) / SUMS).is_file():
        message = f"{text!r} is a folder here, and a name on the Hub is written the same way"
        hint = f"give ./{text} for it, or hf://datasets/ORG/NAME"
        raise SplitsError(message, where=where, hint=hint)
    return parse_address(text, where=where)


def _folder_address(path: Path) -> FolderAddress:
    folder = path.resolve()
    if not path.is_dir():
        raise ManifestError("no such folder", where=str(path))
    if not (folder / SUMS).is_file() and (folder.parent / SUMS).is_file():
        return FolderAddress(str(folder.parent), folder.name)
    return FolderAddress(str(folder))


def pull_published(
    address: Address | FolderAddress,
    *,
    verify: Verify,
    out: Path | None = None,
    progress: Progress | None = None,
) -> Pulled:
    """Pull benchmarks from the Hub or from a folder, as `wordnet_splits.benchmark.pulling.pull`."""
    store = PublishedFolder(address) if isinstance(address, FolderAddress) else None
    return pull(address, verify=verify, store=store, out=out, progress=progress)
