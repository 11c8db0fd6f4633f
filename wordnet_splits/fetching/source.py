"""Fetching a dataset, where its publisher lets anybody do so; else saying where it is and how to get it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import SourceError, unknown
from wordnet_splits.base.files import write_text
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.fetching.download import download
from wordnet_splits.fetching.hub_copy import fetch_from_hub
from wordnet_splits.fetching.unpacking import unpack
from wordnet_splits.sources import source_class
from wordnet_splits.sources.info import Download, SourceInfo, source_info


@dataclass(frozen=True)
class FetchedFile:
    """One file: its name, its size, and whether it was received now or there already."""

    file: str
    size: int
    received: bool


@dataclass(frozen=True)
class Fetched(Tabular):
    """A dataset that was fetched: its files, and the root under which it is read.

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

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {**vars(self), "root": str(self.root), "files": list(self.rows())}


def offered(
    source: str, *, files: Collection[str] = (), mirror: str | None = None
) -> tuple[tuple[Download, str], ...]:
    """Return the publisher's files that `fetch` would fetch, each with its address.

    Parameters and errors as of `fetch`.
    """
    info = source_info(source)
    if not source_class(source).rooted:
        raise SourceError(f"{source} is built in", hint=info.how)
    return tuple(_chosen(info, files, mirror))


def fetch(
    source: str,
    out: Path | str | None = None,
    *,
    files: Collection[str] = (),
    mirror: str | None = None,
    hub: bool = False,
    progress: Progress | None = None,
) -> Fetched:
    """Fetch a dataset from its publisher, or its copy on the Hub, compare checksums, and unpack it.

    What was received stays: a second call goes on where the first one stopped, and receives nothing where
    all is there. Archives are kept beside what was unpacked.

    Parameters
    ----------
    source : a source's name.
    out : the folder that becomes its root; ``data/<source>`` by default.
    files : names of the publisher's files; by default those that the benchmarks need.
    mirror : an address below which the publisher's files lie under their names; checksums hold there, too.
    hub : take the copy on the Hugging Face Hub (``pip install 'wordnet-splits[hub]'``).

    Raises
    ------
    UnknownNameError : no such source, or no such file of it.
    SourceError : it has no open download, with how to get it; the server fails; a checksum is wrong;
        or what came is not the dataset.
    OutputError : the folder cannot be written, has too little space, or holds another file of that name.
    """
    info = source_info(source)
    wanted = () if hub else offered(source, files=files, mirror=mirror)
    folder = Path(out) if out is not None else Path("data") / source
    progress = progress or Silent()
    if hub:
        origin, sizes = fetch_from_hub(info, folder, progress=progress)
        found = tuple(FetchedFile(name, size, received) for name, (size, received) in sizes.items())
    else:
        origin = mirror or info.url
        found = tuple(_fetched(file, url, folder, progress) for file, url in wanted)
    layout = source_class(source).detect(folder.resolve())
    if layout is None:
        raise SourceError(f"what was fetched is not {source}", where=str(folder), hint=info.how)
    return Fetched(source, folder, layout, origin, found)


def _chosen(info: SourceInfo, names: Collection[str], mirror: str | None) -> list[tuple[Download, str]]:
    """Return the files to fetch, each with its address."""
    offered = {file.file: file for file in info.files}
    for name in names:
        if name not in offered:
            raise unknown("file", name, offered, where=info.name)
    chosen = []
    for file in info.files:
        if file.file in names or (not names and file.wanted):
            url = f"{mirror.rstrip('/')}/{file.file}" if mirror else file.url
            if url is None or not (file.md5 or file.sha256):
                raise _by_hand(info, file.file)
            chosen.append((file, url))
    if not chosen:
        raise _by_hand(info, None)
    return chosen


def _by_hand(info: SourceInfo, file: str | None) -> SourceError:
    what = f"{file} has no open download" if file else "has no open download"
    command = f"wordnet-splits sources fetch {info.name} --hub"
    other = f"; or `{command}`, with access to {info.hub.repo}" if info.hub else ""
    hint = f"{info.how}{other}; {info.url}; licence: {info.licence}"
    return SourceError(what, where=info.name, hint=hint)


def _fetched(file: Download, url: str, folder: Path, progress: Progress) -> FetchedFile:
    path = folder / file.file
    received = download(file, folder, url=url, progress=progress)
    if file.unpack:
        done = folder / f".{file.file}.unpacked"
        checksum = f"{file.sha256 or file.md5}\n"
        if not (done.is_file() and done.read_text("utf-8", "replace") == checksum):
            unpack(path, folder, progress=progress)
            write_text(done, checksum)
    return FetchedFile(file.file, path.stat().st_size, received)
