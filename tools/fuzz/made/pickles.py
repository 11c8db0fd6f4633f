"""Pickles that take, nest or run more than they seem to."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Mapping
from typing import Any

from tools.fuzz.made.making import LONG, Made, in_bytes


def _shared() -> bytes:
    lists: list[Any] = []
    for _ in range(28):
        lists = [lists, lists]
    return pickle.dumps({"data": lists, "fine_labels": lists, "filenames": lists}, protocol=2)


class Program:
    """What runs a program of its own as soon as it is unpickled by a reader that lets it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("open('ran', 'w')",)


PICKLED: Mapping[str, Callable[[], bytes]] = {
    "lists shared 28 deep": _shared,
    "a string of exabytes": lambda: b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"x.",
    "bytes of 2 GiB": lambda: b"\x80\x03B" + struct.pack("<I", (1 << 31) - 1) + b"x.",
    "a bytearray of exabytes": lambda: b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b"x.",
    "a memo of 2**31": lambda: b"\x80\x02]r" + struct.pack("<I", (1 << 31) - 1) + b".",
    "lists nested 100,000 deep": lambda: b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "tuples nested 100,000 deep": lambda: b"\x80\x02)" + b"\x85" * 100_000 + b".",
    "a number of a million digits": lambda: b"L" + b"9" * 1_000_000 + b"L\n.",
    "a number of 20 MB": lambda: b"\x80\x02\x8b" + struct.pack("<i", LONG) + b"\x7f" * LONG + b".",
    "a number of minus 5 bytes": lambda: b"\x80\x02\x8b" + struct.pack("<i", -5) + b".",
    "20 million copies": lambda: b"\x80\x02]" + b"2" * LONG + b".",
    "20 million marks": lambda: b"(" * LONG + b".",
    "a text copied a million times": lambda: (
        b"\x80\x02X"
        + struct.pack("<I", 1_000_000)
        + b"x" * 1_000_000
        + b"q\x00"
        + b"h\x00" * 1_000_000
        + b"."
    ),
    "a program": lambda: pickle.dumps({"data": Program()}, protocol=2),
    "a dictionary of tuples": lambda: pickle.dumps({("x",) * 9: 1}, protocol=2),
    "labels that are lists": lambda: pickle.dumps(
        {"data": [], "fine_labels": [[]], "filenames": [[]]}, protocol=2
    ),
    "labels of 10**30": lambda: pickle.dumps(
        {"data": [], "fine_labels": [10**30], "filenames": ["a.png"]}, protocol=2
    ),
}
PICKLES: Made = {what: ("train", in_bytes(content)) for what, content in PICKLED.items()}
