"""Asking the Hub within bounds: a silent server, an endless answer and an endless wait all end.

Through the session of `huggingface_hub`, whatever HTTP client its version has, with its token and proxies.
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
"""Seconds without an answer, or without a byte of one, after which a server is given up."""
TRIES: Final = 4
LONGEST_WAIT: Final = 60.0
"""Seconds to wait at most before a request is made again; a server that asks for more is not asked again."""
AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
SLOWEST: Final = 1 << 14
"""Bytes a second below which a file is given up, after `PATIENCE` seconds."""
PATIENCE: Final = 600.0
PIECE: Final = 1 << 13
"""Bytes that `requests` waits for; httpx gives what has come."""
LARGEST_PAGE: Final = 1 << 26
MOST_PAGES: Final = 10_000
CLIENTS: Final = frozenset({"httpx", "httpcore", "httpx2", "httpcore2", "requests", "urllib3"})
"""Packages whose exceptions say that the network failed."""


class TooSlow(HubError):
    """An answer that is given up as too slow; what was received of a file stays."""


class Refusal(Exception):
    """An answer of the Hub that is none: its status, and its error's code and message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {message}".strip())
        self.status, self.code, self.message = status, code, message

    @property
    def not_found(self) -> bool:
        """Say whether there is no such repository or revision, or none that this user may see."""
        if self.code in ("RepoNotFound", "RevisionNotFound"):
            return True
        hidden = self.status == 401 and self.message != "Invalid credentials in Authorization header"
        return hidden and self.code != "GatedRepo"


@dataclass(frozen=True)
class Answer:
    """An answer that has begun: its headers, the next page, and pieces of its body as they come."""

    status: int
    headers: Mapping[str, str]
    next_page: str | None
    pieces: Iterator[bytes]


class Asker:
    """Requests to the Hub, each tried a few times.

    Parameters
    ----------
    utils : the module ``huggingface_hub.utils``.
    say : takes a sentence about each wait; by default it is printed on stderr.
    """

    def __init__(self, utils: Any, say: Callable[[str], object] | None = None) -> None:
        self._utils = utils
        self._reached = False
        self._say = say or (lambda text: sys.stderr.write(f"{text}\n"))

    def json(self, url: str) -> tuple[Any, str | None]:
        """Return what an address answers, and that of the next page.

        Raises
        ------
        Refusal : the Hub refuses, or does not come to itself.
        HubError : the answer is no JSON, or has more than `LARGEST_PAGE` bytes.
        """

        def read() -> tuple[bytes, str | None]:
            with self._answer(url, {}) as answer:
                body = b"".join(bounded(answer.pieces, LARGEST_PAGE, what="an answer", where=url))
                return body, answer.next_page

        body, next_page = self._tried(read)
        try:
            return json.loads(body), next_page
        except ValueError:
            raise HubError("the Hub's answer is no JSON", where=url, hint="try again later") from None

    def pages(self, url: str) -> Iterator[Any]:
        """Yield the items of a list, page by page; HubError where its pages do not end."""
        visited = {url}
        while True:
            items, following = self.json(url)
            if not isinstance(items, list):
                raise HubError("the Hub's answer is no list", where=url, hint="try again later")
            yield from items
            if following is None:
                return
            # A mirror may pass on the link of the Hub that it mirrors: only the cursor is taken from it.
            url = urlsplit(url)._replace(query=urlsplit(following).query).geturl()
            if not items or url in visited or len(visited) >= MOST_PAGES:
                hint = "nothing was taken: tell whoever runs this Hub"
                raise HubError("its list of files does not end", where=url, hint=hint)
            visited.add(url)

    def file(self, url: str, path: Path, size: int) -> None:
        """Receive a file of a listed size; what an earlier try received is gone on with.

        Raises
        ------
        Refusal : the Hub refuses, or does not come to itself.
        HubError : it sends more than it lists; what was received is removed.
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
                goes_on = received_before > 0 and answer.status == 206
                room = size - received_before if goes_on else size
                with writing(part):
                    file = part.open("ab" if goes_on else "wb")
                with file:
                    for piece in bounded(answer.pieces, room, what="the file", where=url):
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
        """Return what ``work`` does, tried again after a while where the network or the server failed."""
        cause: Exception
        wait: float | None
        for number in range(1, TRIES + 1):
            try:
                return work()
            except _Again as failure:
                cause, wait = failure.refusal, failure.wait
            except Exception as error:
                if not is_network(error) or not self._reached:  # without a network waiting is of no use
                    raise
                cause, wait = error, None
            wait = 2.0 ** (number - 1) if wait is None else wait
            if number == TRIES or wait > LONGEST_WAIT:
                raise cause
            self._say(f"the Hub: {printable(str(cause) or type(cause).__name__)}; again in {wait:.0f} s")
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
    """A failure of the server that may pass, and the seconds that it asks to wait."""

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
    """Say whether an exception is of the network: of an HTTP client, or of a socket."""
    clients = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(clients & CLIENTS) or isinstance(error, ConnectionError | TimeoutError)


def bounded(pieces: Iterator[bytes], most: int, *, what: str, where: str) -> Iterator[bytes]:
    """Yield the pieces of an answer; HubError for more than ``most`` bytes, TooSlow where they drip."""
    begun, received = time.monotonic(), 0
    for piece in pieces:
        received += len(piece)
        if received > most:
            hint = "nothing was taken: tell whoever published it"
            raise HubError(
                f"{what} is larger than the {most:,} bytes that it may have", where=where, hint=hint
            )
        spent = time.monotonic() - begun
        if spent > PATIENCE and received < SLOWEST * spent:
            slow = f"{what}: {received:,} bytes in {spent:,.0f} s are too slow to wait for"
            raise TooSlow(slow, where=where, hint="try again later: a file goes on where it stopped")
        yield piece
