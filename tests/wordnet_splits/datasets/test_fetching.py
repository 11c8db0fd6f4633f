"""Fetching from a publisher on this machine: resumed, checked, unpacked, refused."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import wordnet_splits as ws
from tests.raising import raises
from tests.wordnet_splits.command import environment
from wordnet_splits.base.errors import OutputError, SourceError, SplitsError, UnknownNameError
from wordnet_splits.datasets import fetching
from wordnet_splits.datasets.sources import SourceInfo, source_info
from wordnet_splits.datasets.sources.source import Download


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


ARCHIVE = "dtd-r1.0.1.tar.gz"
PICTURES = ("dtd/images/banded/banded_0002.jpg", "dtd/images/dotted/dotted_0001.jpg")


def picture(shade: int) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((64, 64), shade).convert("RGB").save(out, "JPEG")
    return out.getvalue()


def packed(members: dict[str, bytes | tarfile.TarInfo], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
            else:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


@pytest.fixture(scope="module")
def pictures() -> dict[str, bytes]:
    return {name: picture(40 + number) for number, name in enumerate(PICTURES)}


@pytest.fixture(scope="module")
def archive(pictures: dict[str, bytes]) -> bytes:
    return packed(dict(pictures))


@pytest.fixture
def publisher(archive: bytes) -> Iterator[Publisher]:
    with serving(Publisher({ARCHIVE: archive})) as found:
        yield found


def info_of(publisher: Publisher, *, content: bytes | None = None, **changes: Any) -> SourceInfo:
    """What is known of DTD, its archive being the one served."""
    body = publisher.files[ARCHIVE] if content is None else content
    url = f"{publisher.address}/{ARCHIVE}"
    file = Download(ARCHIVE, md5=hashlib.md5(body).hexdigest(), url=url, unpack=True)
    return dataclasses.replace(source_info("dtd"), files=(dataclasses.replace(file, **changes),))


@pytest.fixture
def known(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> Publisher:
    monkeypatch.setattr(fetching, "source_info", lambda name: info_of(publisher))
    return publisher


def test_a_dataset_is_fetched_once_and_can_be_read(
    known: Publisher, pictures: dict[str, bytes], tmp_path: Path
) -> None:
    found = ws.fetch_source("dtd", tmp_path / "dtd")
    assert [(file.file, file.received) for file in found.files] == [(ARCHIVE, True)]
    source = ws.open_source("dtd", found.root)
    assert source.read(["banded/banded_0002", "dotted/dotted_0001"]) == list(pictures.values())
    again = ws.fetch_source("dtd", tmp_path / "dtd")
    assert [file.received for file in again.files] == [False]
    assert known.asked == [(f"/{ARCHIVE}", None)]
    assert found.to_table().to_pylist() == [
        {"file": ARCHIVE, "size": len(known.files[ARCHIVE]), "received": True}
    ]


@pytest.mark.parametrize("ranges", [True, False])
def test_what_breaks_off_goes_on_where_it_stopped(known: Publisher, tmp_path: Path, ranges: bool) -> None:
    known.breaks, known.ranges = 1000, ranges
    whole = len(known.files[ARCHIVE])
    with raises(SourceError, naming=(f"{whole:,}", "1,000")):
        ws.fetch_source("dtd", tmp_path)
    assert not (tmp_path / ARCHIVE).exists()
    known.breaks = None
    ws.fetch_source("dtd", tmp_path)
    assert [asked for _, asked in known.asked] == [None, "bytes=1000-"]
    assert (tmp_path / ARCHIVE).read_bytes() == known.files[ARCHIVE]


def test_a_part_that_is_whole_is_not_received_again(known: Publisher, tmp_path: Path) -> None:
    (tmp_path / f".{ARCHIVE}.part").write_bytes(known.files[ARCHIVE])
    ws.fetch_source("dtd", tmp_path)
    assert (tmp_path / ARCHIVE).read_bytes() == known.files[ARCHIVE]


FETCHING = """
import dataclasses, sys
from wordnet_splits.cli.main import app, run
from wordnet_splits.datasets import fetching
from wordnet_splits.datasets.sources import source_info
from wordnet_splits.datasets.sources.source import Download

name, md5, url = sys.argv[1:4]
info = dataclasses.replace(source_info("dtd"), files=(Download(name, md5=md5, url=url, unpack=True),))
fetching.source_info = lambda _: info
sys.exit(run(app, sys.argv[4:], "wordnet-splits"))
"""


def test_ctrl_c_keeps_what_was_received(publisher: Publisher, tmp_path: Path) -> None:
    publisher.breaks, publisher.holds = 1 << 20, True
    large = os.urandom(3 << 20)  # more than one piece, which a buffer does not keep back
    publisher.files[ARCHIVE] = packed(dict.fromkeys(PICTURES, large), "w")
    md5 = hashlib.md5(publisher.files[ARCHIVE]).hexdigest()
    source = [ARCHIVE, md5, f"{publisher.address}/{ARCHIVE}"]
    words = [*source, "sources", "fetch", "dtd", "--out", str(tmp_path)]
    part = tmp_path / f".{ARCHIVE}.part"
    with subprocess.Popen(
        [sys.executable, "-c", FETCHING, *words],
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        publisher.sent.wait()
        while not part.exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130, errors
    held = part.stat().st_size
    publisher.breaks, publisher.holds = None, False
    done = subprocess.run(
        [sys.executable, "-c", FETCHING, *words],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert publisher.asked[-1][1] == (f"bytes={held}-" if held else None)
    assert (tmp_path / PICTURES[0]).read_bytes() == large


def test_another_checksum_is_refused_and_nothing_is_left(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "source_info", lambda name: info_of(publisher, content=b"another"))
    with pytest.raises(SourceError):
        ws.fetch_source("dtd", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_another_file_of_that_name_stays(known: Publisher, tmp_path: Path) -> None:
    (tmp_path / ARCHIVE).write_bytes(b"mine")
    with raises(OutputError, where="dtd-r1.0.1.tar.gz"):
        ws.fetch_source("dtd", tmp_path)
    assert (tmp_path / ARCHIVE).read_bytes() == b"mine"
    assert known.asked == []


def test_a_disk_without_room_is_said_before_anything_is_written(
    known: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1))
    with raises(OutputError, where=tmp_path, naming=("0.0", "--out")):
        ws.fetch_source("dtd", tmp_path)


def member(name: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    "members",
    [
        {"../out.jpg": b"x"},
        {"/tmp/out.jpg": b"x"},
        {"dtd/link": member("dtd/link", tarfile.SYMTYPE)},
        {"dtd/hard": member("dtd/hard", tarfile.LNKTYPE)},
        {"dtd/pipe": member("dtd/pipe", tarfile.FIFOTYPE)},
        {"dtd/zeros": bytes(64 << 20)},
    ],
)
def test_a_hostile_archive_leaves_nothing(
    publisher: Publisher,
    members: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher.files[ARCHIVE] = packed(members)
    monkeypatch.setattr(fetching, "source_info", lambda name: info_of(publisher))
    with raises(SplitsError, where="dtd-r1.0.1.tar.gz"):
        ws.fetch_source("dtd", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {ARCHIVE}


@pytest.mark.parametrize("cut", [-200, 3])
def test_a_damaged_archive_is_one_line(
    publisher: Publisher, cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.files[ARCHIVE] = publisher.files[ARCHIVE][:cut]
    monkeypatch.setattr(fetching, "source_info", lambda name: info_of(publisher))
    with raises(SourceError, where="dtd-r1.0.1.tar.gz"):
        ws.fetch_source("dtd", tmp_path)


def test_what_came_is_another_dataset(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.files[ARCHIVE] = packed({"read.me": b"no picture"})
    monkeypatch.setattr(fetching, "source_info", lambda name: info_of(publisher))
    with raises(SourceError, where=tmp_path, naming="dtd"):
        ws.fetch_source("dtd", tmp_path)


@pytest.mark.parametrize(
    ("source", "options", "named"),
    [
        (
            "imagenet1k",
            {},
            ("ILSVRC2012_img_train", "--hub"),
        ),
        ("lsun", {}, "lsun"),
        ("digits", {}, "digits"),
        ("dtd", {"hub": True}, ()),
        ("dtd", {"mirror": "http://127.0.0.1:1"}, "--mirror"),
        ("dtd", {"mirror": "gopher://x"}, ()),
        ("dtd", {"mirror": "file:///etc"}, ()),
    ],
)
def test_what_cannot_be_fetched_says_why_and_how(
    source: str, options: dict[str, Any], named: object, tmp_path: Path
) -> None:
    with raises(SourceError, naming=named):
        ws.fetch_source(source, tmp_path, **options)


def test_names_that_are_unknown(tmp_path: Path) -> None:
    with raises(UnknownNameError, near="cifar100"):
        ws.fetch_source("cifar1000", tmp_path)
    with raises(UnknownNameError, where="svhn", naming="extra_32x32", near="extra_32x32.mat"):
        ws.fetch_source("svhn", tmp_path, files=["extra_32.mat"])


def test_a_mirror_holds_the_publishers_bytes_or_nothing(publisher: Publisher, tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        ws.fetch_source("dtd", tmp_path, mirror=publisher.address)
    with raises(SourceError, naming="404"):
        ws.fetch_source("dtd", tmp_path, mirror=f"{publisher.address}/elsewhere")
