"""Download one file of a publisher: resumed after a break, in place only once its checksum is right."""

from __future__ import annotations

import hashlib
import re
import shutil
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from wordnet_splits.base.errors import OutputError, SourceError
from wordnet_splits.base.files import PART, locked, replacing, writing
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import open_untrusted
from wordnet_splits.datasets.sources.info import Download

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
        _check_room(part, (total or start) - start)
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
    _check_complete(size, total, url)


def _check_complete(size: int, total: int | None, url: str) -> None:
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


def _check_room(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        message = f"{needed / 1e9:,.1f} GB are needed, {free / 1e9:,.1f} GB are free"
        raise OutputError(message, where=str(part.parent), hint="fetch into another folder (--out)")


def _piece(response: HTTPResponse, url: str, size: int) -> bytes:
    try:
        return response.read(_PIECE)
    except (HTTPException, OSError) as error:
        message = f"the connection broke after {size:,} bytes: {printable(error)}"
        raise SourceError(message, where=url, hint=_AGAIN) from None
