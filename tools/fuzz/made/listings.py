"""Tables and lists in text: roots, catalogs, class maps."""

from __future__ import annotations

import json

from tools.fuzz.made.making import LONG, Made, Make, in_bytes, in_text

ROOTS: Made = {
    "a path that is an integer": ("roots.toml", in_bytes(lambda: b"imagenet1k = 7\n")),
    "a path that is a list": ("roots.toml", in_bytes(lambda: b'imagenet1k = ["/data"]\n')),
    "a path with a null byte": ("roots.toml", in_bytes(lambda: b'imagenet1k = "a\\u0000b"\n')),
    "a home of nobody": ("roots.toml", in_bytes(lambda: b'imagenet1k = "~nobody-at-all/x"\n')),
    "a dotted key 50,000 deep": ("roots.toml", in_bytes(lambda: b"a." * 50_000 + b'b = "x"\n')),
    "nested 500 deep": ("roots.toml", in_bytes(lambda: b"a = " + b"[" * 500 + b"]" * 500)),
}


def _cell(column: int, value: str) -> Make:
    def change(text: str) -> str:
        lines = text.split("\n")
        number = next(n for n, line in enumerate(lines) if n and not line.startswith("#"))
        cells = lines[number].split("\t")
        cells[min(column, len(cells) - 1)] = value
        lines[number] = "\t".join(cells)
        return "\n".join(lines)

    return in_text(change)


CATALOG: Made = {
    f"{what} in column {column}": ("svhn.tsv", _cell(column, value))
    for column in range(5)
    for what, value in (
        ("20 million letters", "A" * LONG),
        ("5,000 digits", "9" * 5000),
        ("controls", "\x1b]0;x\x07"),
    )
} | {
    "3 million lines": ("svhn.tsv", in_text(lambda text: text + "x\t1\ty\n" * 3_000_000)),
    "a row of a million cells": ("svhn.tsv", in_text(lambda text: text + "\t" * 1_000_000)),
}

CLASS_LISTS: Made = {
    "a million lines": ("known.tsv", in_text(lambda text: text + "n02084071\tdog\n" * 1_000_000)),
    "a row of a million cells": ("known.tsv", in_text(lambda text: text + "\t" * 1_000_000)),
    "a cell of 131,073 letters": ("known.tsv", in_text(lambda text: text + "A" * 131_073 + "\tx\n")),
    "a name of 20 million letters": ("mine.txt", in_bytes(lambda: b"A" * LONG)),
    "names of control characters": ("mine.txt", in_bytes(lambda: "\x1b[2J\x07\u2028x\n".encode() * 6)),
    "an index of 5,000 digits": ("mine.txt", in_bytes(lambda: b"9" * 5000)),
    "200,000 unknown names": ("mine.txt", in_bytes(lambda: b"".join(b"zz%d\n" % n for n in range(200_000)))),
}

CLASS_LIST_JSON: Made = {
    "nested 500 deep": ("mine.json", in_bytes(lambda: b"[" * 500 + b"]" * 500)),
    "indices beyond 64 bits": ("mine.json", in_bytes(lambda: json.dumps([10**30] * 6).encode())),
    "not a number": ("mine.json", in_bytes(lambda: b"[NaN, Infinity]")),
    "objects that differ in keys": ("mine.json", in_bytes(lambda: b'[{"wnid": "n02084071"}, {"x": 1}, {}]')),
    "an object of lists": ("mine.json", in_bytes(lambda: json.dumps({"a": [], "b": {}, "c": [[]]}).encode())),
    "a million entries": ("mine.json", in_bytes(lambda: json.dumps(["dog"] * 1_000_000).encode())),
    "a name of controls": ("mine.json", in_bytes(lambda: json.dumps(["\x1b[2J\x07"]).encode())),
    "a half of a pair": ("mine.json", in_bytes(lambda: b'["\\ud800"]')),
}

CLASS_MAP: Made = {
    "columns beyond 64 bits": ("map.json", in_bytes(lambda: json.dumps([10**30] * 6).encode())),
    "columns that are fractions": ("map.json", in_bytes(lambda: json.dumps([0.5] * 6).encode())),
    "columns that are lists": ("map.json", in_bytes(lambda: json.dumps([[]] * 6).encode())),
    "negative columns": ("map.json", in_bytes(lambda: json.dumps([-1, -2, -3, -4, -5, -6]).encode())),
    "columns that are true": ("map.json", in_bytes(lambda: json.dumps([True] * 6).encode())),
    "an object of lists": ("map.json", in_bytes(lambda: json.dumps({"0": [], "1": {}}).encode())),
    "a million columns": ("map.json", in_bytes(lambda: json.dumps(list(range(1_000_000))).encode())),
    "a million names": ("classes.txt", in_bytes(lambda: b"a\n" * 1_000_000)),
    "a name of 20 million letters": ("classes.txt", in_bytes(lambda: b"A" * LONG)),
    "20 million spaces": ("classes.txt", in_bytes(lambda: b"a" + b" " * LONG + b"b\n")),
    "control characters": ("classes.txt", in_bytes(lambda: "\x1b[2J\x07\u2028\n".encode() * 6)),
    "nested 500 deep": ("map.json", in_bytes(lambda: b"[" * 500 + b"]" * 500)),
}
