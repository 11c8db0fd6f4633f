"""Fetch a dataset from its publisher or from the Hub, or explain how to get it."""

from __future__ import annotations

import hashlib
import re
import shutil
import tarfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from wordnet_splits.base.errors import HubError, OutputError, SourceError, UnsafeDataError, unknown
from wordnet_splits.base.files import PART, locked, replacing, write_text, writing
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.untrusted import open_untrusted, path_below
from wordnet_splits.datasets.sources import SourceInfo, source_class, source_info
from wordnet_splits.datasets.sources.source import Download
from wordnet_splits.remote import MAIN, Repository

LARGEST: Final = 1 << 41
"""Largest size of a file in bytes; ImageNet's training set has 138 GB."""
TIMEOUT_SECONDS: Final = 60
_PIECE: Final = 1 << 20
_AGAIN: Final = "the same command continues from there"
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+)")


def download(file: Download, folder: Path, *, url: str, progress: Progress) -> bool:
    """Put a file into ``folder``, unless it is there; return whether anything was received.

    A partial file is kept under a hidden name, and the next call asks the server only for the rest.

    Parameters
    ----------
    file : its name and at least one checksum.
    url : its address, http or https.

    Raises
    ------
    SourceError : the server cannot be reached, refuses or breaks off; or the checksum is another.
    OutputError : another file of that name is there, the disk is too small, or another process fetches it.
    """
    path = folder / file.file
    with locked(path, busy="another process is fetching this file"):
        if path.exists():
            if wrong := wrong_checksum(file, path):
                hint = "move it away, or fetch into another folder"
                raise OutputError(f"is there already, and {wrong}", where=str(path), hint=hint)
            return False
        part = path.with_name(f".{path.name}{PART}")
        _receive(url, part, file.file, progress)
        if wrong := wrong_checksum(file, part):
            part.unlink()
            hint = "it was removed: try again, or another mirror (--mirror)"
            raise SourceError(f"the received file is not the publisher's: {wrong}", where=url, hint=hint)
        with replacing(path) as whole:
            part.rename(whole)
    return True


def wrong_checksum(file: Download, path: Path) -> str | None:
    """Return how the checksum of ``path`` differs from the publisher's; None where it does not."""
    kind, expected = ("sha256", file.sha256) if file.sha256 else ("md5", file.md5)
    with open_untrusted(path, largest=LARGEST) as content:
        actual = hashlib.file_digest(content, kind).hexdigest()
    return None if actual == expected else f"its {kind.upper()} is {actual}, not {expected}"


def _receive(url: str, part: Path, name: str, progress: Progress) -> None:
    """Append the rest of the file to ``part``."""
    with writing(part):
        received = part.stat().st_size if part.exists() else 0
    response = _request(url, received)
    if response is None:  # the server has no further bytes; the checksum shows whether the file is complete
        return
    with response:
        start, total = _range(response, received)
        needed, free = (total or start) - start, shutil.disk_usage(part.parent).free
        if needed > free:
            message = f"{needed / 1e9:,.1f} GB are needed, {free / 1e9:,.1f} GB are free"
            raise OutputError(message, where=str(part.parent), hint="fetch into another folder (--out)")
        label = f"fetching {name}, in MiB"
        with writing(part), part.open("r+b" if start else "wb") as out:
            out.seek(start)
            shown_progress = progress if total else Silent()
            with shown_progress.task(label, -(-(total or 0) // _PIECE)) as task:
                task.skip(start // _PIECE)
                size = start
                while piece := _piece(response, url, size):
                    out.write(piece)
                    task.advance((size + len(piece)) // _PIECE - size // _PIECE)
                    size += len(piece)
            out.truncate()
    if total is not None and size < total:
        raise SourceError(f"the server broke off after {size:,} of {total:,} bytes", where=url, hint=_AGAIN)


def _request(url: str, received: int) -> HTTPResponse | None:
    headers = {"User-Agent": "wordnet-splits", **({"Range": f"bytes={received}-"} if received else {})}
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=TIMEOUT_SECONDS)
    except HTTPError as error:
        with error:
            if received and error.code == 416:
                return None
        hint = "open the address in a browser; --mirror takes another one with the same files"
        message = f"the server refuses: {error.code} {printable(error.reason)}"
        raise SourceError(message, where=url, hint=hint) from None
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = printable(getattr(error, "reason", None) or error)
        hint = "is this machine online? --mirror takes another address with the same files"
        raise SourceError(f"cannot be reached: {reason}", where=url, hint=hint) from None
    return response


def _range(response: HTTPResponse, received: int) -> tuple[int, int | None]:
    """Return the offset of the bytes that the server sends, and the size of the whole file if it is known."""
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status == 206 and match and int(match[1]) == received:
        return received, int(match[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isascii() and length.isdigit() else None


def _piece(response: HTTPResponse, url: str, size: int) -> bytes:
    try:
        return response.read(_PIECE)
    except (HTTPException, OSError) as error:
        message = f"the connection broke after {size:,} bytes: {printable(error)}"
        raise SourceError(message, where=url, hint=_AGAIN) from None


@dataclass(frozen=True)
class FetchedFile:
    """One file: its name, its size in bytes, and whether it was received now or there already."""

    file: str
    size: int
    received: bool


@dataclass(frozen=True)
class FetchedDataset(Jsonable, Tabular):
    """A fetched dataset: its files and its root.

    Parameters
    ----------
    layout : the layout recognised under ``root``.
    origin : the publisher's address, a mirror's, or the Hub repository with its commit.
    """

    source: str
    root: Path
    layout: str
    origin: str
    files: tuple[FetchedFile, ...]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row a file."""
        return [vars(file) for file in self.files]


def downloads(
    source: str, *, files: Collection[str] = (), mirror: str | None = None
) -> tuple[tuple[Download, str], ...]:
    """Return the publisher's files that `fetch_source` fetches, each with its address.

    Parameters and errors as for `fetch_source`.
    """
    info = source_info(source)
    if not source_class(source).rooted:
        raise SourceError(f"{source} is built in", hint=info.how)
    by_name = {file.file: file for file in info.files}
    for name in files:
        if name not in by_name:
            raise unknown("file", name, by_name, where=info.name)
    selected = []
    for file in info.files:
        if file.file in files or (not files and file.wanted):
            url = f"{mirror.rstrip('/')}/{file.file}" if mirror else file.url
            if url is None or not (file.md5 or file.sha256):
                raise _by_hand(info, file.file)
            selected.append((file, url))
    if not selected:
        raise _by_hand(info, None)
    return tuple(selected)


def fetch_source(
    source: str,
    out: Path | str | None = None,
    *,
    files: Collection[str] = (),
    mirror: str | None = None,
    hub: bool = False,
    progress: Progress | None = None,
) -> FetchedDataset:
    """Fetch a dataset from its publisher, or its copy on the Hub, compare checksums, and unpack it.

    A second call continues where the first one stopped, and receives nothing if all files are there. Archives
    are kept next to the unpacked files.

    Parameters
    ----------
    source : a source's name.
    out : the folder that becomes its root; ``data/<source>`` by default.
    files : names of the publisher's files; by default those that the benchmarks need.
    mirror : an address with the publisher's files under their names; they must have the same checksums.
    hub : take the copy on the Hugging Face Hub (``pip install 'wordnet-splits[hub]'``).

    Raises
    ------
    UnknownNameError : the source or a file does not exist.
    SourceError : it has no open download, with how to get it; the server fails; a checksum is wrong;
        or the files are not the dataset.
    OutputError : the folder cannot be written, has too little space, or holds another file of that name.
    """
    info = source_info(source)
    selected = () if hub else downloads(source, files=files, mirror=mirror)
    folder = Path(out) if out is not None else Path("data") / source
    progress = progress or Silent()
    if hub:
        origin, fetched = _fetch_from_hub(info, folder, progress)
    else:
        origin = mirror or info.url
        fetched = tuple(_fetch_file(file, url, folder, progress) for file, url in selected)
    layout = source_class(source).detect(folder.resolve())
    if layout is None:
        raise SourceError(f"the fetched files are not {source}", where=str(folder), hint=info.how)
    return FetchedDataset(source, folder, layout, origin, fetched)


def _by_hand(info: SourceInfo, file: str | None) -> SourceError:
    message = f"{file} has no open download" if file else "has no open download"
    command = f"wordnet-splits sources fetch {info.name} --hub"
    from_hub = f"; or `{command}`, with access to {info.hub.repo}" if info.hub else ""
    hint = f"{info.how}{from_hub}; {info.url}; licence: {info.licence}"
    return SourceError(message, where=info.name, hint=hint)


def _fetch_file(file: Download, url: str, folder: Path, progress: Progress) -> FetchedFile:
    path = folder / file.file
    received = download(file, folder, url=url, progress=progress)
    if file.unpack:
        unpacked = folder / f".{file.file}.unpacked"
        checksum = f"{file.sha256 or file.md5}\n"
        if not (unpacked.is_file() and unpacked.read_text("utf-8", "replace") == checksum):
            unpack(path, folder, progress=progress)
            write_text(unpacked, checksum)
    return FetchedFile(file.file, path.stat().st_size, received)


def _fetch_from_hub(
    info: SourceInfo, folder: Path, progress: Progress
) -> tuple[str, tuple[FetchedFile, ...]]:
    """Fetch the files of a source's Hub copy; return the repository with its commit, and the files.

    Raises MissingPackageError without huggingface_hub, SourceError if the Hub has no copy, and HubError.
    """
    if info.hub is None:
        hint = f"leave --hub out, or: {info.how}"
        raise SourceError("no copy on the Hub is known that is read here", where=info.name, hint=hint)
    repository = Repository(info.hub.repo)
    commit = repository.resolve(MAIN)
    if commit is None:
        raise HubError("the Hub has no such dataset", where=repository.where(), hint=info.how)
    files = [f for path, f in sorted(repository.files(commit).items()) if fnmatch(path, info.hub.files)]
    if not files:
        raise HubError(f"holds no {info.hub.files}", where=repository.where(commit=commit))
    fetched = []
    with progress.task(f"fetching {repository.name}", len(files)) as task:
        for file in files:
            was_there = file.is_at(path_below(folder, file.path))
            repository.fetch(file, commit, folder)
            fetched.append(FetchedFile(file.path, file.size, not was_there))
            task.advance()
    return repository.where(commit=commit), tuple(fetched)


MOST_MEMBERS: Final = 5_000_000
MOST_TIMES: Final = 20
"""Largest ratio of unpacked to packed size; archives of images hardly expand."""

_MIB: Final = 1 << 20
# TypeError: raised by tarfile for a truncated gzip header
_DAMAGED: Final = (tarfile.TarError, EOFError, TypeError, ValueError, zlib.error)


def unpack(archive: Path, folder: Path, *, progress: Progress) -> None:
    """Unpack a tar archive, compressed or not, into ``folder``, which gets its files only at the end.

    Raises DataError for a member outside of the folder, UnsafeDataError for a member that is not a file or
    folder or for too many members or bytes, SourceError for a damaged archive, OutputError.
    """
    stage = folder / f".{archive.name}{PART}"
    shutil.rmtree(stage, ignore_errors=True)
    with writing(stage):
        stage.mkdir(parents=True)
    try:
        _extract(archive, stage, progress)
        with writing(folder):
            for entry in sorted(stage.iterdir()):
                _move(entry, folder / entry.name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _extract(archive: Path, stage: Path, progress: Progress) -> None:
    size = archive.stat().st_size
    left = MOST_TIMES * size + _MIB
    try:
        with (
            open_untrusted(archive, largest=LARGEST) as file,
            tarfile.open(fileobj=file, mode="r|*") as tar,
            progress.task(f"unpacking {archive.name}, in MiB", -(-size // _MIB)) as task,
        ):
            done = 0
            for number, member in enumerate(tar):
                left -= member.size
                if left < 0 or number >= MOST_MEMBERS:
                    raise UnsafeDataError("expands to more than such an archive holds", where=str(archive))
                _write(tar, member, stage, archive)
                task.advance(file.tell() // _MIB - done)
                done = file.tell() // _MIB
    except _DAMAGED as error:
        reason = f"is damaged: {printable(error)}"
        raise SourceError(reason, where=str(archive), hint="remove it and fetch it again") from None


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, stage: Path, archive: Path) -> None:
    if member.isdir():
        return
    content = tar.extractfile(member) if member.isfile() else None
    if content is None:
        message = f"member {printable(member.name)!r} must be a file or a folder"
        raise UnsafeDataError(message, where=str(archive))
    path = path_below(stage, member.name)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            shutil.copyfileobj(content, out, _MIB)


def _move(entry: Path, target: Path) -> None:
    """Move an unpacked file or folder; two archives may share a folder."""
    if entry.is_dir() and target.is_dir():
        for inner in sorted(entry.iterdir()):
            _move(inner, target / inner.name)
    else:
        entry.rename(target)
