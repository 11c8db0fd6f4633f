"""Files that no alteration of a sound one comes upon: each hostile by design, made in the place of one."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.digests import digest_json
from wordnet_splits.sealed import CHECKSUM

Make = Callable[[Path, Random], None]
Made = Mapping[str, tuple[str, Make]]
"""What each is called, the file whose place it takes (a pattern), and what makes it."""

LONG = 20_000_000


def _bytes(content: Callable[[], bytes]) -> Make:
    return lambda path, rng: _ignore(path.write_bytes(content()))


def _text(change: Callable[[str], str]) -> Make:
    return lambda path, rng: _ignore(path.write_text(change(path.read_text("utf-8")), "utf-8"))


def _ignore(_: object) -> None:
    return None


def _beside(make: Callable[[Path], object]) -> Make:
    return lambda path, rng: _ignore(make(path.parent))


# -- recipes, roots, tables of text ------------------------------------------------------------------------


def _group(name: str, rest: str) -> str:
    lines = ("[[group]]", f'name = "{name}"', 'role = "far"', 'source = "gaussian"', rest, "")
    return "\n".join(lines)


def _appended(text: str) -> Make:
    return _text(lambda old: f"{old}\n{text}\n")


def _rule(rule: str) -> Make:
    return _text(lambda old: old.replace('{ shares_parent_with = "group:digits-0-5" }', rule))


_LEAK = '[[known_leak]]\nkind = "class"\na = "group:uniform"\nb = "group:gaussian"\ncount = 1\nreason = "x"\n'
_NOISE = "noise = { shape = [4096, 4096, 3], seed = 0 }\nclasses = { rest = true }\n"
RECIPE: Made = {
    "nested 500 deep": ("digits.toml", _appended("x = " + "[" * 500 + "]" * 500)),
    "tables nested 500 deep": ("digits.toml", _appended("x = " + "{ a = " * 500 + "1" + " }" * 500)),
    "a rule nested 60 deep": ("digits.toml", _rule("{ not = " * 59 + "{ rest = true }" + " }" * 59)),
    "an integer of 5,000 digits": (
        "digits.toml",
        _text(lambda t: t.replace("version = 1", f"version = {'9' * 5000}")),
    ),
    "an integer of 39 digits": (
        "digits.toml",
        _text(lambda t: t.replace("per_class = 20", f"per_class = {'9' * 39}")),
    ),
    "a seed of 39 digits": (
        "digits.toml",
        _text(lambda t: t.replace("version = 1", f"version = 1\nseed = {'9' * 39}")),
    ),
    "a dotted key 50,000 deep": ("digits.toml", _text(lambda t: "a." * 50_000 + f"b = 1\n{t}")),
    "a dotted table 50,000 deep": ("digits.toml", _appended("[" + "a." * 50_000 + "b]")),
    "a quoted dotted key 50,000 deep": ("digits.toml", _text(lambda t: '"a".' * 50_000 + f"b = 1\n{t}")),
    "3,000 groups": (
        "digits.toml",
        _appended("".join(_group(f"g{n}", "classes = { rest = true }") for n in range(3000))),
    ),
    "3,000 groups of one name": ("digits.toml", _appended("[[group]]\n" * 3000)),
    "20,000 known leaks": ("digits.toml", _appended(_LEAK * 20_000)),
    "a rule of 20,000 alternatives": (
        "digits.toml",
        _rule("{ any = [" + ", ".join(['{ listed = ["6"] }'] * 20_000) + "] }"),
    ),
    "200,000 classes listed": (
        "digits.toml",
        _rule("{ listed = [" + ", ".join(f'"{n}"' for n in range(200_000)) + "] }"),
    ),
    "a class of 4 million letters": ("digits.toml", _rule(f'{{ listed = ["{"A" * 4_000_000}"] }}')),
    "a class of 20 million letters": ("digits.toml", _rule(f'{{ listed = ["{"A" * LONG}"] }}')),
    "a slice of every 10**18th": (
        "digits.toml",
        _rule('{ slice = { of = ["entity.n.01"], every = 1000000000000000000, at = [0] } }'),
    ),
    "100,000 noise images of 4096 x 4096": (
        "digits.toml",
        _appended(_group("big", _NOISE + "images = { test = { generate = 100000 } }")),
    ),
    "a date for a name": ("digits.toml", _text(lambda t: t.replace('name = "digits"', "name = 1979-05-27"))),
    "50 MB of comment": ("digits.toml", _appended("# " + "x" * 50_000_000)),
    "a million keys": ("digits.toml", _appended("\n".join(f"k{n} = 1" for n in range(1_000_000)))),
}


def _base(value: str) -> Make:
    return _text(lambda text: text.replace('extends = "digits.toml"', f"extends = {value}"))


VARIANT: Made = {
    f"extends {value[:20]}": ("variant.toml", _base(value))
    for value in (
        "5",
        "[]",
        "{ a = 1 }",
        '""',
        '"nowhere"',
        '"../../etc/passwd"',
        '"/dev/zero"',
        '"folder.toml"',
    )
} | {
    "extends itself": ("variant.toml", _base('"variant.toml"')),
    "extends a name of 20 million letters": ("variant.toml", _base(f'"{"A" * LONG}.toml"')),
    "extends a name with a null byte": ("variant.toml", _base('"a\\u0000.toml"')),
    "a base whose groups are numbers": ("digits.toml", _bytes(lambda: b'name = "x"\ngroup = [1, 2]\n')),
    "a base whose group is a table": ("digits.toml", _bytes(lambda: b'name = "x"\n[group]\nname = "y"\n')),
    "a base whose names are lists": ("digits.toml", _bytes(lambda: b"name = []\n[[group]]\nname = [[1]]\n")),
    "a base nested 500 deep": ("digits.toml", _appended("x = " + "[" * 500 + "]" * 500)),
    "a base whose leaks are text": ("digits.toml", _text(lambda text: 'known_leak = "all"\n' + text)),
    "a base that is a variant": ("digits.toml", _text(lambda text: f'extends = "variant.toml"\n{text}')),
    "drops 200,000 groups": (
        "variant.toml",
        _text(lambda t: t.replace("schema", f"drop = [{', '.join(['[]'] * 200_000)}]\nschema", 1)),
    ),
}

ROOTS: Made = {
    "a path that is an integer": ("roots.toml", _bytes(lambda: b"imagenet1k = 7\n")),
    "a path that is a list": ("roots.toml", _bytes(lambda: b'imagenet1k = ["/data"]\n')),
    "a path with a null byte": ("roots.toml", _bytes(lambda: b'imagenet1k = "a\\u0000b"\n')),
    "a home of nobody": ("roots.toml", _bytes(lambda: b'imagenet1k = "~nobody-at-all/x"\n')),
    "a dotted key 50,000 deep": ("roots.toml", _bytes(lambda: b"a." * 50_000 + b'b = "x"\n')),
    "nested 500 deep": ("roots.toml", _bytes(lambda: b"a = " + b"[" * 500 + b"]" * 500)),
}


def _cell(column: int, value: str) -> Make:
    def change(text: str) -> str:
        lines = text.split("\n")
        number = next(n for n, line in enumerate(lines) if n and not line.startswith("#"))
        cells = lines[number].split("\t")
        cells[min(column, len(cells) - 1)] = value
        lines[number] = "\t".join(cells)
        return "\n".join(lines)

    return _text(change)


CATALOG: Made = {
    f"{what} in column {column}": ("svhn.tsv", _cell(column, value))
    for column in range(5)
    for what, value in (
        ("20 million letters", "A" * LONG),
        ("5,000 digits", "9" * 5000),
        ("controls", "\x1b]0;x\x07"),
    )
} | {
    "3 million lines": ("svhn.tsv", _text(lambda text: text + "x\t1\ty\n" * 3_000_000)),
    "a row of a million cells": ("svhn.tsv", _text(lambda text: text + "\t" * 1_000_000)),
}

CLASS_MAP: Made = {
    "columns beyond 64 bits": ("map.json", _bytes(lambda: json.dumps([10**30] * 6).encode())),
    "columns that are fractions": ("map.json", _bytes(lambda: json.dumps([0.5] * 6).encode())),
    "columns that are lists": ("map.json", _bytes(lambda: json.dumps([[]] * 6).encode())),
    "negative columns": ("map.json", _bytes(lambda: json.dumps([-1, -2, -3, -4, -5, -6]).encode())),
    "columns that are true": ("map.json", _bytes(lambda: json.dumps([True] * 6).encode())),
    "an object of lists": ("map.json", _bytes(lambda: json.dumps({"0": [], "1": {}}).encode())),
    "a million columns": ("map.json", _bytes(lambda: json.dumps(list(range(1_000_000))).encode())),
    "a million names": ("classes.txt", _bytes(lambda: b"a\n" * 1_000_000)),
    "a name of 20 million letters": ("classes.txt", _bytes(lambda: b"A" * LONG)),
    "20 million spaces": ("classes.txt", _bytes(lambda: b"a" + b" " * LONG + b"b\n")),
    "control characters": ("classes.txt", _bytes(lambda: "\x1b[2J\x07\u2028\n".encode() * 6)),
    "nested 500 deep": ("map.json", _bytes(lambda: b"[" * 500 + b"]" * 500)),
}


# -- JSON that bears its own checksum ----------------------------------------------------------------------


def resealed(change: Callable[[Any], None]) -> Make:
    """Alter a JSON file and give it the checksum that fits, as who means to deceive does."""

    def make(path: Path, rng: Random) -> None:
        content = json.loads(path.read_text("utf-8"))
        change(content)
        content.pop(CHECKSUM, None)
        path.write_text(json.dumps({**content, CHECKSUM: digest_json(content)}), "utf-8")

    return make


def _set(*way: Any, to: Any) -> Make:
    def change(content: Any) -> None:
        *steps, last = way
        for step in steps:
            content = content[step]
        content[last] = to

    return resealed(change)


def _network(key: str, value: Any) -> tuple[str, Make]:
    return "**/model.json", _set("network", key, to=value)


MODEL: Made = {
    "resealed: a million outputs": _network("outputs", 100_000),
    "resealed: 10**18 outputs": _network("outputs", 10**18),
    "resealed: minus five outputs": _network("outputs", -5),
    "resealed: no outputs": _network("outputs", 0),
    "resealed: outputs of text": _network("outputs", "6"),
    "resealed: pictures of 10**9": _network("size", [10**9, 10**9]),
    "resealed: pictures of 1,024": _network("size", [1024, 1024]),
    "resealed: pictures of minus one": _network("size", [-1, 8]),
    "resealed: 10**9 channels": _network("channels", 10**9),
    "resealed: a network that is none": _network("name", "os.system"),
    "resealed: layers": _network("layers", [10**9] * 100),
    "resealed: deviations of zero": ("**/model.json", _set("input", "std", to=[0.0] * 3)),
    "resealed: a mean that is text": ("**/model.json", _set("input", "mean", to="zero")),
    "resealed: classes of another order": (
        "**/model.json",
        resealed(lambda content: content["classes"].reverse()),
    ),
    "resealed: weights elsewhere": ("**/model.json", _set("weights", "file", to="/dev/zero")),
    "resealed: another benchmark": ("**/model.json", _set("benchmark", "name", to="../unknown-cifar")),
}

PACKED: Made = {
    f"resealed: {key} {value!r:.30}": ("**/packed.json", _set("parts", 0, key, to=value))
    for key, value in (
        *(("rows", 10**15), ("rows", -1), ("rows", 1 << 40), ("missing", -1), ("missing", 10**12)),
        *(("shape", [3, 4, 16]), ("shape", [3, 65_535, 65_535]), ("shape", [-3, 8, 8]), ("shape", [])),
        *(("bytes", 1 << 60), ("layout", "files"), ("layout", "../x"), ("view", "fix"), ("spec", 7)),
        *(
            ("group", "../../x"),
            ("group", "gaussian"),
            ("split", ".."),
            ("split", "train"),
            ("source", "lsun"),
        ),
    )
} | {
    "resealed: another benchmark": ("**/packed.json", _set("benchmark", to="unknown-cifar")),
    "resealed: no parts": ("**/packed.json", _set("parts", to=[])),
    "resealed: parts twice": ("**/packed.json", resealed(lambda c: c["parts"].extend(c["parts"]))),
}


def _npy(header: str) -> bytes:
    body = header.encode("latin-1")
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(body)) + body


def _array(shape: str, descr: str = "'<f4'") -> Make:
    return _bytes(
        lambda: _npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n") + bytes(64)
    )


STORE: Made = {
    "resealed: a huge n": ("**/list.json", _set("n", to=10**15)),
    "resealed: a negative n": ("**/list.json", _set("n", to=-1)),
    "resealed: a key of a path": ("**/list.json", _set("model_key", to="../../x")),
    "resealed: rows of a shard": ("**/00000.json", _set("rows", to=10**15)),
    "an array of 10**18 rows": ("**/logits/*.npy", _array("(1000000000000000000, 6)")),
    "an array of 2**62 columns": ("**/logits/*.npy", _array("(1, 4611686018427387904)")),
    "an array of minus one row": ("**/logits/*.npy", _array("(-1, 6)")),
    "an array of objects": ("**/logits/*.npy", _array("(6,)", "'|O'")),
    "an array of 1,000 axes": ("**/logits/*.npy", _array("(" + "1, " * 1000 + ")")),
    "a header nested 3,000 deep": ("**/logits/*.npy", _bytes(lambda: _npy("(" * 3000 + ")" * 3000))),
    "a header of a gigabyte": (
        "**/logits/*.npy",
        _bytes(lambda: b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30) + b"{" * 100),
    ),
}


# -- pickles -------------------------------------------------------------------------------------------------


def _shared() -> bytes:
    lists: list[Any] = []
    for _ in range(28):
        lists = [lists, lists]
    return pickle.dumps({"data": lists, "fine_labels": lists, "filenames": lists}, protocol=2)


class _Program:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("open('ran', 'w')",)


_P: Mapping[str, Callable[[], bytes]] = {
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
    "a program": lambda: pickle.dumps({"data": _Program()}, protocol=2),
    "a dictionary of tuples": lambda: pickle.dumps({("x",) * 9: 1}, protocol=2),
    "labels that are lists": lambda: pickle.dumps(
        {"data": [], "fine_labels": [[]], "filenames": [[]]}, protocol=2
    ),
    "labels of 10**30": lambda: pickle.dumps(
        {"data": [], "fine_labels": [10**30], "filenames": ["a.png"]}, protocol=2
    ),
}
PICKLES: Made = {what: ("train", _bytes(content)) for what, content in _P.items()}


# -- archives ------------------------------------------------------------------------------------------------


def _member(name: str = "x.JPEG", kind: bytes = b"0", size: int = 0, link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape")


def _headed(header: bytes, size: int, content: bytes = b"") -> Make:
    """Make an archive whose first member has ``size`` bytes, sparse but for ``content``."""

    def make(path: Path, rng: Random) -> None:
        with path.open("wb") as file:
            file.write(header + content)
            file.truncate(512 + -(-size // 512) * 512)
            file.seek(0, io.SEEK_END)
            file.write(_member("n01440764_18.JPEG") + bytes(1024))

    return make


def _pax(record: bytes, size: int) -> Make:
    return _headed(_member("pax", b"x", size), size, record)


_T = "ILSVRC2012_img_val.tar"
_HUNDRED = 100_000_000
TARS: Made = {
    "a name of 100 MB": (_T, _headed(_member("long", b"L", _HUNDRED), _HUNDRED, b"A" * _HUNDRED)),
    "a name of 6 GiB": (_T, _headed(_member("long", b"L", 6 << 30), 6 << 30, b"A" * 999)),
    "a link of 100 MB": (_T, _headed(_member("long", b"K", _HUNDRED), _HUNDRED, b"A" * _HUNDRED)),
    "a pax header of 100 MB": (_T, _pax(b"100000000 path=" + b"A" * (_HUNDRED - 16) + b"\n", _HUNDRED)),
    "a pax header of 6 GiB": (_T, _pax(b"6442450944 path=A", 6 << 30)),
    "a pax header without end": (_T, _pax(b"9" * 5000 + b" path=x\n", 6000)),
    "a pax header of no length": (_T, _pax(b"0 path=x\n", 9)),
    "a pax header of many records": (_T, _pax(b"6 a=b\n" * 1_000_000, 6_000_000)),
    "a pax size of 10**30": (_T, _pax(b"38 size=1000000000000000000000000000000\n", 40)),
    "a pax header for all": (_T, _headed(_member("pax", b"g", _HUNDRED), _HUNDRED, b"100000000 comment=")),
    "headers upon headers": (_T, _bytes(lambda: _member("long", b"L", 0) * 200_000)),
    "a name that is no UTF-8": (_T, _headed(_member("\udcff\udcfe.JPEG"), 0)),
    "a name that leaves the folder": (_T, _headed(_member("../../x.JPEG"), 0)),
    "control characters in a name": (_T, _headed(_member("\x1b]0;x\x07\n.JPEG"), 0)),
    "a link to /dev/zero": (_T, _headed(_member("ILSVRC2012_val_00000001.JPEG", b"2", link="/dev/zero"), 0)),
    "a device": (_T, _headed(_member("ILSVRC2012_val_00000001.JPEG", b"3"), 0)),
    "a sparse member": (_T, _headed(_member("ILSVRC2012_val_00000001.JPEG", b"S", 1 << 20), 1 << 20)),
    "a picture of 6 GiB": (_T, _headed(_member("ILSVRC2012_val_00000293.JPEG", size=6 << 30), 6 << 30)),
    "a size beyond the end": (_T, _bytes(lambda: _member("ILSVRC2012_val_00000293.JPEG", size=1 << 40))),
    "200,000 members": (_T, _bytes(lambda: b"".join(_member(f"{n}.JPEG") for n in range(200_000)))),
}


# -- tables --------------------------------------------------------------------------------------------------


def _hub(paths: Callable[[], pa.Array], pictures: Callable[[], pa.Array], **options: Any) -> tuple[str, Make]:
    def make(path: Path, rng: Random) -> None:
        image = pa.StructArray.from_arrays([pictures(), paths()], ["bytes", "path"])
        table = pa.table({"image": image, "label": pa.array([0] * len(image), pa.int64())})
        pq.write_table(table, path, **options)

    return "**/*.parquet", make


def _no_utf8() -> pa.Array:
    texts = pa.array([b"\xff\xfe.JPEG"] * 3, pa.binary())
    return pa.Array.from_buffers(pa.string(), 3, texts.buffers())


_SMALL = lambda: pa.array([b"x"] * 3)  # noqa: E731 - three pictures of a byte
_NAMES = lambda: pa.array(["a.JPEG", "b.JPEG", "c.JPEG"])  # noqa: E731
_ZEROS = {"use_dictionary": False, "compression": "zstd"}
HUB: Made = {
    "names that are no UTF-8": _hub(_no_utf8, _SMALL),
    "a name of 20 MB": _hub(lambda: pa.array(["A" * LONG, "b", "c"]), _SMALL),
    "100 names of 20 MB": _hub(lambda: pa.array(["A" * LONG] * 100), lambda: pa.array([b"x"] * 100)),
    "control characters in names": _hub(lambda: pa.array(["\x1b[2J\x07\n.JPEG"] * 3), _SMALL),
    "a picture of 200 MB of zeros": _hub(_NAMES, lambda: pa.array([bytes(200_000_000), b"", None]), **_ZEROS),
    "100 pictures of 20 MB of zeros": _hub(
        lambda: pa.array([f"n01440764_{n}.JPEG" for n in range(100)]),
        lambda: pa.array([bytes(LONG)] * 100),
    ),
    "three million pictures": _hub(
        lambda: pa.nulls(3_000_000, pa.string()), lambda: pa.nulls(3_000_000, pa.binary())
    ),
}

SEALED_TABLE: Made = {
    "files of /dev/zero": ("**/images.parquet", lambda path, rng: _devices(path)),
}


def _devices(path: Path) -> None:
    table = pq.read_table(path)
    files = pa.array(["/dev/zero"] * len(table), table.schema.field("file").type)
    pq.write_table(
        table.set_column(table.column_names.index("file"), table.schema.field("file"), files), path
    )


# -- pictures and folders ------------------------------------------------------------------------------------


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _png(width: int, height: int, *more: bytes, depth: int = 8, data: bytes = b"\x00") -> bytes:
    head = struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, 0)
    body = (*more, _chunk(b"IDAT", zlib.compress(data)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + b"".join(body)


def _tiff(width: int, height: int, following: int = 0) -> bytes:
    tags = (
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 8),
    )
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\x00" + struct.pack("<IH", 8, len(tags)) + entries + struct.pack("<I", following)


def _deep(folder: Path) -> None:
    """Make folders a thousand deep: one step at a time, as no path may be that long."""
    import os

    here = os.open(folder, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("deeper", dir_fd=here)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


FOLDERS: Made = {
    "folders 1,000 deep": ("**/*.*", _beside(_deep)),
    "a name with control characters": (
        "**/*.*",
        _beside(lambda folder: (folder / "\x1b[2J\x07\n.jpg").touch()),
    ),
    "a name that is no UTF-8": ("**/*.*", _beside(lambda folder: (folder / "\udcff\udcfe.jpg").touch())),
    "a folder with control characters": ("**/*.*", _beside(lambda folder: (folder / "\x1b[2J\n").mkdir())),
    "a link to the folder above": ("**/*.*", _beside(lambda folder: (folder / "up").symlink_to(".."))),
    "a link to /": ("**/*.*", _beside(lambda folder: (folder / "all").symlink_to("/"))),
}
PICTURES: Made = {
    "a PNG of 89,478,485 x 1": ("in/b.png", _bytes(lambda: _png(89_478_485, 1))),
    "a PNG of 2**31 x 2**31": ("in/b.png", _bytes(lambda: _png((1 << 31) - 1, (1 << 31) - 1))),
    "a PNG of 13,000 x 13,000 zeros": (
        "in/b.png",
        _bytes(lambda: _png(13_000, 13_000, data=bytes(13_000 * 39_001))),
    ),
    "a PNG of no pixels": ("in/b.png", _bytes(lambda: _png(0, 0))),
    "a PNG with a packed text of 1 GiB": (
        "in/b.png",
        _bytes(lambda: _png(1, 1, _chunk(b"zTXt", b"x\x00\x00" + zlib.compress(bytes(1 << 28), 9)))),
    ),
    "a PNG with a packed profile": (
        "in/b.png",
        _bytes(lambda: _png(1, 1, _chunk(b"iCCP", b"x\x00\x00" + zlib.compress(bytes(1 << 28), 9)))),
    ),
    "a GIF of 65,535 x 65,535": ("in/c.gif", _bytes(lambda: b"GIF89a\xff\xff\xff\xff\x00\x00\x00,")),
    "a BMP of 2**31": (
        "in/d.bmp",
        _bytes(
            lambda: b"BM" + bytes(8) + struct.pack("<IIiiHHI", 54, 40, 1 << 30, 1 << 30, 1, 24, 0) + bytes(60)
        ),
    ),
    "a TIFF of 2**31": ("in/f.tif", _bytes(lambda: _tiff((1 << 31) - 1, (1 << 31) - 1))),
    "a TIFF of 40,000 x 40,000": ("in/f.tif", _bytes(lambda: _tiff(40_000, 40_000))),
    "a TIFF whose pages go round": ("in/f.tif", _bytes(lambda: _tiff(8, 8, 8))),
    "a picture named as a folder": ("in/b.png", _beside(lambda folder: (folder / "a.png").mkdir())),
    **FOLDERS,
}


# -- weights -------------------------------------------------------------------------------------------------


def _tensors(header: object, data: bytes = bytes(64), length: int | None = None) -> tuple[str, Make]:
    def content() -> bytes:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + data

    return "*.safetensors", _bytes(content)


def _tensor(shape: list[Any], offsets: list[Any], dtype: Any = "F32") -> dict[str, Any]:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


def _saved(value: Callable[[], Any]) -> tuple[str, Make]:
    def make(path: Path, rng: Random) -> None:
        import torch

        torch.save(value(), path)

    return "*.pt", make


def _view() -> Any:
    import torch

    return {"x": torch.zeros(1).expand(1 << 40)}


WEIGHTS: Made = {
    "a header of exabytes": _tensors(b"{}", length=1 << 63),
    "a header longer than the file": _tensors(b"{}", length=1 << 30),
    "a header of 90 MB": _tensors(b'{"__metadata__": {"x": "' + b"A" * 90_000_000 + b'"}}'),
    "a header nested 500 deep": _tensors(b'{"x":' * 500 + b"1" + b"}" * 500),
    "a header nested 100,000 deep": _tensors(b"[" * 100_000),
    "a header that is a list": _tensors([1]),
    "a header of noise": _tensors(b"\xff\xfe{"),
    "a tensor of 2**60": _tensors(_tensor([1 << 60], [0, 64])),
    "a tensor of 2**64 and more": _tensors(_tensor([1 << 33, 1 << 33], [0, 64])),
    "a negative shape": _tensors(_tensor([-4, -4], [0, 64])),
    "offsets beyond the end": _tensors(_tensor([16], [1 << 50, (1 << 50) + 64])),
    "offsets in the wrong order": _tensors(_tensor([16], [64, 0])),
    "an unknown type": _tensors(_tensor([16], [0, 64], "O")),
    "a type that is a number": _tensors(_tensor([16], [0, 64], 7)),
    "tensors that overlap": _tensors({**_tensor([16], [0, 64]), "y": _tensor([16], [0, 64])["x"]}),
    "100,000 axes": _tensors(_tensor([1] * 100_000, [0, 4])),
    "integers for keys": _saved(lambda: {1: 2}),
    "a list for weights": _saved(lambda: [1, 2]),
    "a program for weights": _saved(lambda: {"x": _Program()}),
    "a view of 2**40 over one number": _saved(_view),
    "a pickle of exabytes": ("*.pt", _bytes(_P["a string of exabytes"])),
    "a pickle of 2**31 memos": ("*.pt", _bytes(_P["a memo of 2**31"])),
}
