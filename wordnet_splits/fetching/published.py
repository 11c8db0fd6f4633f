"""Folders of published benchmarks with their ``SHA256SUMS``: of this machine or a server, plain or zipped."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from wordnet_splits.base.errors import DataError, ManifestError, SourceError, SplitsError
from wordnet_splits.base.files import replacing, write_bytes
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import LARGEST_TEXT, MiB, path_below, read_chunks, read_text, sha256_of
from wordnet_splits.fetching.download import download, download_bytes, download_text
from wordnet_splits.hub.address import (
    WEB_SCHEMES,
    Address,
    FolderAddress,
    parse_address,
    web_address,
    zip_address,
)
from wordnet_splits.hub.pulling import Pulled, Verify, pull
from wordnet_splits.hub.repository import LARGEST
from wordnet_splits.sources.info import Download
from wordnet_splits.sources.layouts.archives import check_entry, damaged_archive, open_zip

SUMS: Final = "SHA256SUMS"
"""The list of checksums of a published folder, as ``sha256sum -c`` reads it."""
LARGEST_ZIP: Final = 256 * MiB
"""Largest archive of a published folder, in bytes; its index is held in memory."""
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
    """The files that the ``SHA256SUMS`` of a folder lists; a `wordnet_splits.hub.pulling.Store`.

    Raises
    ------
    ManifestError : there is no ``SHA256SUMS``, or it is malformed.
    SourceError : the server cannot be reached, or refuses.
    """

    def __init__(self, address: FolderAddress) -> None:
        self._address = address
        text = self._sums()
        self._commit = hashlib.sha256(text.encode()).hexdigest()[:40]
        sums = parse_sums(text, self.where(SUMS))
        self._files = {path: ListedFile(path, digest) for path, digest in sums.items()}

    def _sums(self) -> str:
        where = self.where(SUMS)
        if self._address.is_remote:
            return download_text(where, largest=LARGEST_TEXT)
        if not Path(where).is_file():
            hint = "give a folder written by `hub publish --to`; a manifest's folder is read as it is"
            raise ManifestError(f"no {SUMS} here", where=self._address.repo, hint=hint)
        return read_text(Path(where), error=ManifestError)

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
        """Return a file below ``folder``, copied or downloaded unless it is there already.

        Raises
        ------
        ManifestError : it is absent, larger than ``largest`` bytes, or not the file that is listed.
        SourceError : the same of a server.
        """
        path = path_below(folder, file.path)
        if file.is_at(path):
            return path
        path.unlink(missing_ok=True)
        self._receive(file, path, largest)
        return path

    def _receive(self, file: ListedFile, path: Path, largest: int) -> None:
        """Put a file to ``path`` if its checksum is the listed one."""
        if self._address.is_remote:
            url = self.where(quote(file.path))
            listed = Download(path.name, sha256=file.sha256)
            try:
                download(listed, path.parent, url=url, progress=Silent(), largest=largest)
            except SourceError as error:
                raise SourceError(error.what, where=error.where, hint=_TELL) from None
            return
        original = path_below(Path(self._address.repo), file.path)
        digest = sha256_of(original, largest=largest, error=ManifestError)
        if digest != file.sha256:
            message = f"its SHA-256 is {digest}, {SUMS} says {file.sha256}"
            raise ManifestError(message, where=str(original), hint=_TELL)
        with replacing(path) as part:
            shutil.copyfile(original, part)


class PublishedZip(PublishedFolder):
    """A zip archive of a published folder, read in place: only listed files are taken out of it.

    Raises
    ------
    ManifestError : there is no ``SHA256SUMS`` at its top or in a folder at its top, or in several.
    SourceError, UnsafeDataError : the archive is damaged or too large, or an entry would leave its folder.
    """

    def _sums(self) -> str:
        self._open()
        return self._read(SUMS, LARGEST_TEXT).decode("utf-8", errors="replace")

    def _open(self) -> None:
        """Open the archive, and index its entries by their path below the folder of ``SHA256SUMS``."""
        where = self._address.repo
        if self._address.is_remote:
            content = io.BytesIO(download_bytes(where, largest=LARGEST_ZIP))
            with damaged_archive(Path(where)):
                self._archive = zipfile.ZipFile(content)
        else:
            self._archive = open_zip(Path(where), largest=LARGEST_ZIP)
        entries = {}
        for number, entry in enumerate(self._archive.infolist()):
            check_entry(entry, number, where)
            entries[entry.filename] = entry
        tops = [name.removesuffix(SUMS) for name in entries if name.rpartition("/")[2] == SUMS]
        top = min(tops, key=lambda name: name.count("/"), default="a/b/")
        if sum(name.count("/") == top.count("/") for name in tops) > 1:
            hint = "unpack it, and give one of its folders"
            raise ManifestError("holds several published folders", where=where, hint=hint)
        if top.count("/") > 1:
            hint = "give an archive of a folder written by `hub publish --to`"
            raise ManifestError(f"no {SUMS} at the top of the archive", where=where, hint=hint)
        self._entries = {n.removeprefix(top): e for n, e in entries.items() if n.startswith(top)}

    def _read(self, path: str, largest: int) -> bytes:
        entry = self._entries.get(path)
        if entry is None:
            raise ManifestError("is not in the archive", where=self.where(path), hint=_TELL)
        with damaged_archive(Path(self._address.repo)), self._archive.open(entry) as content:
            read = b"".join(read_chunks(content, largest + 1))
        if len(read) > largest:
            raise ManifestError(f"has more than {largest:,} bytes", where=self.where(path), hint=_TELL)
        return read

    def _receive(self, file: ListedFile, path: Path, largest: int) -> None:
        content = self._read(file.path, min(largest, LARGEST_ZIP))
        digest = hashlib.sha256(content).hexdigest()
        if digest != file.sha256:
            problem = f"its SHA-256 is {digest}, {SUMS} says {file.sha256}"
            raise ManifestError(problem, where=self.where(file.path), hint=_TELL)
        write_bytes(path, content)


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
    """Return the address of what is to be pulled: of the Hub, a server, or a folder of this machine.

    A text is a folder, or a zip archive of one, where it begins with ``/``, ``./``, ``../`` or ``~``;
    ``ORG/NAME`` is a repository.

    Raises
    ------
    SplitsError : of no such form; or a repository and a published folder here have this name.
    ManifestError, SourceError : as of `PublishedFolder`.
    """
    if isinstance(text, Path) or text.startswith(("/", "./", "../", "~")) or text in (".", ".."):
        return _folder_address(Path(text).expanduser())
    if text.startswith(WEB_SCHEMES):
        return _web_folder(text.rstrip("/"), where)
    if (Path(text) / SUMS).is_file() or Path(text).is_file():
        message = f"{text!r} is a folder or archive here, and a name on the Hub is written the same way"
        hint = f"give ./{text} for it, or hf://datasets/ORG/NAME"
        raise SplitsError(message, where=where, hint=hint)
    return parse_address(text, where=where)


def _folder_address(path: Path) -> FolderAddress:
    folder = path.resolve()
    if (archive := zip_address(str(folder))) and Path(archive.repo).is_file():
        return archive
    if not path.is_dir():
        raise ManifestError("no such folder or zip archive", where=str(path))
    if not (folder / SUMS).is_file() and (folder.parent / SUMS).is_file():
        return FolderAddress(str(folder.parent), folder.name)
    return FolderAddress(str(folder))


def _web_folder(text: str, where: str) -> FolderAddress:
    benchmark = web_address(text, where=where)
    whole = replace(benchmark, repo=text, benchmark=None)
    if benchmark.is_zip:
        return benchmark
    if benchmark.benchmark is None:
        return whole
    try:
        PublishedFolder(whole)
    except (SourceError, ManifestError) as error:
        try:
            PublishedFolder(benchmark)
        except (SourceError, ManifestError):
            raise error from None
        return benchmark
    return whole


def pull_published(
    address: Address | FolderAddress,
    *,
    verify: Verify,
    out: Path | None = None,
    progress: Progress | None = None,
) -> Pulled:
    """Pull benchmarks from the Hub or from a folder, as `wordnet_splits.hub.pulling.pull`."""
    store: PublishedFolder | None = None
    if isinstance(address, FolderAddress):
        store = PublishedZip(address) if address.is_zip else PublishedFolder(address)
    return pull(address, verify=verify, store=store, out=out, progress=progress)
