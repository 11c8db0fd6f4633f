"""Image lists of other projects that are no lists."""

from __future__ import annotations

import io
import json
import tarfile

from tools.fuzz.made.making import LONG, Made, in_bytes


def _shard(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


OPENOOD: Made = {
    "a path of 20 million letters": ("lists/*.txt", in_bytes(lambda: b"a" * LONG + b" 0\n")),
    "20 million spaces": ("lists/*.txt", in_bytes(lambda: b"a" + b" " * LONG + b"0\n")),
    "a path 10 million deep": ("lists/*.txt", in_bytes(lambda: b"a/" * (LONG // 2) + b"b.png 0\n")),
    "200,000 lines": (
        "lists/*.txt",
        in_bytes(lambda: b"".join(b"0/%d.png 0\n" % n for n in range(200_000))),
    ),
    "a label of 5,000 digits": ("lists/*.txt", in_bytes(lambda: b"0/0.png " + b"9" * 5000 + b"\n")),
    "control characters": ("lists/*.txt", in_bytes(lambda: b"\x1b[2J\x07/0.png 0\n")),
    "paths out of the folder": ("lists/*.txt", in_bytes(lambda: b"../../../etc/passwd 0\n/dev/zero 0\n")),
    "null bytes": ("lists/*.txt", in_bytes(lambda: b"0/\x00.png 0\n")),
    "a percent that is no letter": ("lists/*.txt", in_bytes(lambda: b"%ff%fe/%.png 0\n")),
}
SHARD: Made = {
    "an object nested 20,000 deep": (
        "lists/**/*.tar",
        in_bytes(lambda: _shard(("0.json", b"[" * 20_000 + b"]" * 20_000))),
    ),
    "an object of 20 MB": ("lists/**/*.tar", in_bytes(lambda: _shard(("0.json", b" " * LONG)))),
    "a number of 5,000 digits": ("lists/**/*.tar", in_bytes(lambda: _shard(("0.json", b"9" * 5000)))),
    "an object of other types": (
        "lists/**/*.tar",
        in_bytes(lambda: _shard(("0.json", json.dumps({"source": [], "image_id": {}}).encode()))),
    ),
    "control characters": (
        "lists/**/*.tar",
        in_bytes(lambda: _shard(("0.json", json.dumps({"source": "\x1b[2J", "image_id": "\x07"}).encode()))),
    ),
    "half a letter": ("lists/**/*.tar", in_bytes(lambda: _shard(("0.json", b'{"source": "\\ud800"}')))),
    "no object at all": ("lists/**/*.tar", in_bytes(lambda: _shard(("0.png", b"x")))),
    "a name out of the folder": ("lists/**/*.tar", in_bytes(lambda: _shard(("../../0.json", b"{}")))),
}


def csv(pattern: str) -> Made:
    """Tables that are none."""
    return {
        "a cell of 20 million letters": (pattern, in_bytes(lambda: b"a" * LONG + b",0\n")),
        "10 million cells": (pattern, in_bytes(lambda: b"," * (LONG // 2) + b"\n")),
        "a quote without end": (pattern, in_bytes(lambda: b'"' + b"a,\n" * 1_000_000)),
        "200,000 lines": (pattern, in_bytes(lambda: b"0/0.png,0\n" * 200_000)),
        "null bytes": (pattern, in_bytes(lambda: b"0/\x00.png,0\n")),
        "control characters": (pattern, in_bytes(lambda: b"\x1b[2J\x07/0.png,0\n")),
        "carriage returns alone": (pattern, in_bytes(lambda: b"0/0.png,0\r" * 1000)),
    }
