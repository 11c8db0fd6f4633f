"""Unpack a publisher's tar archive: regular files only, all of them below the folder."""

from __future__ import annotations

import shutil
import tarfile
import zlib
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.base.files import PART, writing
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.untrusted import open_untrusted, path_below

LARGEST: Final = 1 << 41
"""Largest size of an archive in bytes; ImageNet's training set has 138 GB."""
MOST_MEMBERS: Final = 5_000_000
MOST_TIMES: Final = 20
"""Largest ratio of unpacked to packed size; archives of pictures hardly expand."""

_MIB: Final = 1 << 20
# TypeError: raised by tarfile for a truncated gzip header
_DAMAGED: Final = (tarfile.TarError, EOFError, TypeError, ValueError, zlib.error)


def unpack(archive: Path, folder: Path, *, progress: Progress) -> None:
    """Unpack a tar archive, compressed or not, into ``folder``, which gets its files only at the end.

    Raises
    ------
    DataError : a member lies outside the folder. UnsafeDataError : a member is not a file or folder, or
        there are too many members or bytes. SourceError : the archive is damaged. OutputError : ``folder``
        cannot be written.
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
        message = f"member {printable(member.name)!r} is neither file nor folder"
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
