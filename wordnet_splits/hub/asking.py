"""Requests to the Hub, with limits on silence, size and waiting.

They use the session of `huggingface_hub`, with its HTTP client, token and proxies.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from wordnet_splits.base.errors import HubError
from wordnet_splits.base.files import writing
from wordnet_splits.base.names import printable

SILENCE: Final = 30.0
"""Seconds without a byte after which a request fails."""
TRIES: Final = 4
LONGEST_WAIT: Final = 60.0
"""Most seconds to wait before a request is tried again; if a server asks for more, it is not."""
AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
SLOWEST: Final = 1 << 14
"""Fewest bytes a second of an answer, after `PATIENCE` seconds."""
PATIENCE: Final = 600.0
PIECE: Final = 1 << 13
"""Bytes of a piece from `requests`; httpx returns pieces as they arrive."""
LARGEST_PAGE: Final = 1 << 26
MOST_PAGES: Final = 10_000
CLIENTS: Final = frozenset({"httpx", "httpcore", "httpx2", "httpcore2", "requests", "urllib3"})
"""Packages whose exceptions mean that the network failed."""


class TooSlow(HubError):
    """An answer that is too slow; the received part of a file stays."""


class Refusal(Exception):
    """An error of the Hub: status, code and message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {message}".strip())
        self.status, self.code, self.message = status, code, message

    @property
    def not_found(self) -> bool:
        """Whether the repository or revision does not exist, or is hidden from this user."""
        if self.code in ("RepoNotFound", "RevisionNotFound"):
            return True
        hidden = self.status == 401 and self.message != "Invalid credentials in Authorization header"
        return hidden and self.code != "GatedRepo"


@dataclass(frozen=True)
class Answer:
    """An answer: its headers, the address of the next page, and the pieces of its body as they arrive."""

    status: int
    headers: Mapping[str, str]
    next_page: str | None
    pieces: Iterator[bytes]


class Asker:
    """Requests to the Hub, each tried up to `TRIES` times.

    Parameters
    ----------
    utils : the module ``huggingface_hub.utils``.
    warn : called with a sentence about each wait; by default it is printed on stderr.
    """

    def __init__(self, utils: Any, warn: Callable[[str], object] | None = None) -> None:
        self._utils = utils
        self._reached = False
        self._warn = warn or (lambda text: sys.stderr.write(f"{text}\n"))

    def json(self, url: str) -> tuple[Any, str | None]:
        """Return the JSON at an address, and the address of the next page.

        Raises
        ------
        Refusal : the Hub refuses, or keeps failing.
        HubError : the answer is not JSON, or has more than `LARGEST_PAGE` bytes.
        """

        def read() -> tuple[bytes, str | None]:
            with self._answer(url, {}) as answer:
                body = b"".join(bounded(answer.pieces, LARGEST_PAGE, name="an answer", where=url))
                return body, answer.next_page

        body, next_page = self._tried(read)
        try:
            return json.loads(body), next_page
        except ValueError:
            raise HubError("the Hub's answer is not JSON", where=url, hint="try again later") from None

    def pages(self, url: str) -> Iterator[Any]:
        """Yield the items of a list, page by page. Raises HubError if the pages do not end."""
        visited = {url}
        while True:
            items, following = self.json(url)
            if not isinstance(items, list):
                raise HubError("the Hub's answer is not a list", where=url, hint="try again later")
            yield from items
            if following is None:
                return
            # A mirror may pass on the link of the Hub that it mirrors: only the cursor is taken from it.
            url = urlsplit(url)._replace(query=urlsplit(following).query).geturl()
            if not items or url in visited or len(visited) >= MOST_PAGES:
                hint = "no file was kept: report this to the operator of the Hub"
                raise HubError("its list of files does not end", where=url, hint=hint)
            visited.add(url)

    def file(self, url: str, path: Path, size: int) -> None:
        """Download a file of a listed size, continuing after the bytes of an earlier try.

        Raises
        ------
        Refusal : the Hub refuses, or keeps failing.
        HubError : it sends more than it lists; the received bytes are removed.
        TooSlow : it sends too slowly.
        """
        part = path.with_name(path.name + ".part")
        with writing(part):
            part.parent.mkdir(parents=True, exist_ok=True)

        def receive() -> None:
            received_before = part.stat().st_size if part.exists() else 0
            if received_before > size:
                part.unlink()
                received_before = 0
            if received_before == size and part.exists():
                return
            with self._answer(
                url, {"Range": f"bytes={received_before}-"} if received_before else {}
            ) as answer:
                continues = received_before > 0 and answer.status == 206
                room = size - received_before if continues else size
                with writing(part):
                    file = part.open("ab" if continues else "wb")
                with file:
                    for piece in bounded(answer.pieces, room, name="the file", where=url):
                        with writing(part):
                            file.write(piece)
            if (received := part.stat().st_size) < size:
                raise ConnectionError(f"the connection ended after {received:,} of {size:,} bytes")

        try:
            self._tried(receive)
        except TooSlow:
            raise
        except HubError:
            part.unlink(missing_ok=True)
            raise
        part.replace(path)

    def _tried(self, work: Callable[[], Any]) -> Any:
        """Call ``work``, again after a while if the network or the server failed, and return its result."""
        cause: Exception
        wait: float | None
        for number in range(1, TRIES + 1):
            try:
                return work()
            except _Again as failure:
                cause, wait = failure.refusal, failure.wait
            except Exception as error:
                if not is_network(error) or not self._reached:  # waiting does not help without a network
                    raise
                cause, wait = error, None
            wait = 2.0 ** (number - 1) if wait is None else wait
            if number == TRIES or wait > LONGEST_WAIT:
                raise cause
            self._warn(f"the Hub: {printable(str(cause) or type(cause).__name__)}; again in {wait:.0f} s")
            time.sleep(wait)
        raise AssertionError

    @contextmanager
    def _answer(self, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        sent = {**self._utils.build_hf_headers(), "Accept-Encoding": "identity", **headers}
        session = self._utils.get_session()
        if hasattr(session, "stream") and not isinstance(session.stream, bool):  # httpx: huggingface_hub >= 1
            opening = session.stream("GET", url, headers=sent, timeout=SILENCE, follow_redirects=True)
        else:
            opening = session.get(url, headers=sent, timeout=SILENCE, stream=True)
        with opening as response:
            self._reached = True
            pieces = (
                response.iter_bytes() if hasattr(response, "iter_bytes") else response.iter_content(PIECE)
            )
            if response.status_code >= 400:
                raise _refused(response.status_code, response.headers)
            following = response.links.get("next", {}).get("url")
            yield Answer(response.status_code, response.headers, following, pieces)


class _Again(Exception):
    """A temporary failure of the server, and the seconds that it asks to wait."""

    def __init__(self, refusal: Refusal, wait: float | None) -> None:
        super().__init__(str(refusal))
        self.refusal, self.wait = refusal, wait


def _refused(status: int, headers: Mapping[str, str]) -> Exception:
    message = printable(headers.get("X-Error-Message", ""))
    refusal = Refusal(status, headers.get("X-Error-Code", ""), message)
    if status not in AGAIN:
        return refusal
    retry_after = headers.get("Retry-After", "")
    return _Again(refusal, float(retry_after) if retry_after.isdecimal() else None)


def is_network(error: BaseException) -> bool:
    """Say whether an exception is one of an HTTP client or of a socket."""
    clients = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(clients & CLIENTS) or isinstance(error, ConnectionError | TimeoutError)


def bounded(pieces: Iterator[bytes], most: int, *, name: str, where: str) -> Iterator[bytes]:
    """Yield the pieces of an answer. Raises HubError for more than ``most`` bytes, TooSlow for slow ones."""
    start, received = time.monotonic(), 0
    for piece in pieces:
        received += len(piece)
        if received > most:
            hint = "no file was kept: report this to the publisher"
            raise HubError(
                f"{name} is larger than the {most:,} bytes that it may have", where=where, hint=hint
            )
        seconds = time.monotonic() - start
        if seconds > PATIENCE and received < SLOWEST * seconds:
            slow = f"{name}: {received:,} bytes in {seconds:,.0f} s are too slow to wait for"
            raise TooSlow(slow, where=where, hint="try again later: a file goes on where it stopped")
        yield piece
