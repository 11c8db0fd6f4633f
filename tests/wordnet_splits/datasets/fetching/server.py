"""A publisher on this machine: serves bytes with or without ranges, and breaks off where it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Publisher:
    """What is served, how, and what was asked for.

    Parameters
    ----------
    breaks : how many bytes of a body are sent before the connection is closed; all by default.
    holds : the connection is kept open after these bytes until the client goes away.
    """

    files: dict[str, bytes]
    ranges: bool = True
    breaks: int | None = None
    holds: bool = False
    address: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    sent: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(publisher: Publisher) -> Iterator[Publisher]:
    """Serve on a free port of the loopback device."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            publisher.asked.append((self.path, asked))
            body = publisher.files.get(self.path.lstrip("/"))
            if body is None:
                self.send_error(404)
                return
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and publisher.ranges else 0
            if start >= len(body) > 0:
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body) - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            self.end_headers()
            self.wfile.write(body[start:][: publisher.breaks])
            self.wfile.flush()
            publisher.sent.set()
            if publisher.holds:
                self.rfile.read(1)  # ends when the client closes its side

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    publisher.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield publisher
    finally:
        server.shutdown()
        server.server_close()
