"""One file of a publisher: resumed where it broke off, and in its place only once its checksum is right."""

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
from wordnet_splits.fetching.unpacking import LARGEST
from wordnet_splits.sources.info import Download

TIMEOUT_SECONDS: Final = 60
_PIECE: Final = 1 << 20
_AGAIN: Final = "the same command continues from there"
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+)")


def download(file: Download, folder: Path, *, url: str, progress: Progress) -> bool:
    """Put a file into ``folder``, unless it is there; return whether anything was received.

    What a break or a kill leaves lies beside it under a hidden name, and the next call asks the server for
    the rest only.

    Parameters
    ----------
    file : its name and at least one checksum.
    url : where it is, http or https.

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
            raise SourceError(f"what was received is not the publisher's file: {wrong}", where=url, hint=hint)
        with replacing(path) as whole:
            part.rename(whole)
    return True


def wrong_checksum(file: Download, path: Path) -> str | None:
    """Return how the checksum of ``path`` differs from the publisher's; None where it does not."""
    kind, expected = ("sha256", file.sha256) if file.sha256 else ("md5", file.md5)
    with open_untrusted(path, largest=LARGEST) as content:
        found = hashlib.file_digest(content, kind).hexdigest()
    return None if found == expected else f"its {kind.upper()} is {found}, not {expected}"


def _receive(url: str, part: Path, name: str, progress: Progress) -> None:
    """Append to ``part`` what it lacks."""
    with writing(part):
        held = part.stat().st_size if part.exists() else 0
    response = _ask(url, held)
    if response is None:  # nothing lies behind what is held: the checksum tells whether that is all
        return
    with response:
        start, total = _stretch(response, held)
        _check_room(part, (total or start) - start)
        what = f"fetching {name}, in MiB"
        with writing(part), part.open("r+b" if start else "wb") as out:
            out.seek(start)
            known = progress if total else Silent()
            with known.task(what, -(-(total or 0) // _PIECE)) as task:
                task.advance(start // _PIECE)
                size = start
                while piece := _piece(response, url, size):
                    out.write(piece)
                    task.advance((size + len(piece)) // _PIECE - size // _PIECE)
                    size += len(piece)
            out.truncate()
    if total is not None and size < total:
        raise SourceError(f"the server broke off after {size:,} of {total:,} bytes", where=url, hint=_AGAIN)


def _ask(url: str, held: int) -> HTTPResponse | None:
    headers = {"User-Agent": "wordnet-splits", **({"Range": f"bytes={held}-"} if held else {})}
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=TIMEOUT_SECONDS)
    except HTTPError as error:
        with error:
            if held and error.code == 416:
                return None
        hint = "open the address in a browser; another one with the same files is named by --mirror"
        raise SourceError(
            f"the server refuses: {error.code} {printable(error.reason)}", where=url, hint=hint
        ) from None
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise SourceError(
            f"cannot be reached: {printable(reason)}",
            where=url,
            hint="is this machine online? another address with the same files is named by --mirror",
        ) from None
    return response


def _stretch(response: HTTPResponse, held: int) -> tuple[int, int | None]:
    """Return the position of what the server sends, and the size of the whole file if it says so."""
    found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status == 206 and found and int(found[1]) == held:
        return held, int(found[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isascii() and length.isdigit() else None


def _check_room(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise OutputError(
            f"{needed / 1e9:,.1f} GB are needed, {free / 1e9:,.1f} GB are free",
            where=str(part.parent),
            hint="fetch into another folder (--out)",
        )


def _piece(response: HTTPResponse, url: str, size: int) -> bytes:
    try:
        return response.read(_PIECE)
    except (HTTPException, OSError) as error:
        what = f"the connection broke after {size:,} bytes: {printable(error)}"
        raise SourceError(what, where=url, hint=_AGAIN) from None
