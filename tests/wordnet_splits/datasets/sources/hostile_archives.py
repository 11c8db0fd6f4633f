"""Archives that lie, each made of a sound one so that its reader meets the lie, by the kind of archive."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.io import savemat

from tests.wordnet_splits.datasets.sources.trees import tar_bytes

EVIL = "evil.JPEG"
GiB = 1 << 30


class Ends(Enum):
    """What is right."""

    REFUSED = "one line, exit code 2"
    NAMED = "all as it was, and the odd name counted as unexpected"
    SAME = "all as it was: the lie is about something that is not read"


Lie = tuple[Callable[[bytes], bytes], Ends]
Lies = Mapping[str, Lie]


def no(change: Callable[[bytes], bytes]) -> Lie:
    return change, Ends.REFUSED


# -- tar -----------------------------------------------------------------------------------------------------


def _header(name: bytes, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> bytes:
    info = tarfile.TarInfo(name.decode("latin-1"))
    info.type, info.size, info.linkname = kind, size, link
    return info.tobuf(tarfile.GNU_FORMAT, "latin-1")


def _members(data: bytes) -> list[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return [(info.name, archive.extractfile(info).read()) for info in archive if info.isfile()]


def _first(name: str = EVIL, **fields: object) -> Lie:
    return no(lambda data: _header(name.encode(), **fields) + data)


def _once_more(data: bytes) -> bytes:
    """The first image, or archive of images, stands at the end again."""
    members = _members(data)
    again = next(member for member in members if member[0].lower().endswith((".jpg", ".jpeg", ".tar")))
    return tar_bytes([*members, again])


TAR: Lies = {
    "a name above the folder": _first(f"../{EVIL}"),
    "a name above the folder, inside": _first(f"a/../../{EVIL}"),
    "an absolute name": _first(f"/tmp/{EVIL}"),
    "a name with backslashes": _first(f"..\\{EVIL}"),
    "a link out of it": _first(kind=tarfile.SYMTYPE, link="/etc/hostname"),
    "a hard link out of it": _first(kind=tarfile.LNKTYPE, link="/etc/hostname"),
    "a device": _first(kind=tarfile.CHRTYPE),
    "a pipe": _first(kind=tarfile.FIFOTYPE),
    "holes": _first(kind=tarfile.GNUTYPE_SPARSE),
    "a size of a TiB": _first(size=1 << 40),
    "a negative size": no(lambda data: _header(EVIL.encode())[:124] + b"\xff" * 12 + bytes(376) + data),
    "a header of a GiB": _first(kind=tarfile.XHDTYPE, size=GiB),
    "a header of a GiB for all": _first(kind=tarfile.XGLTYPE, size=GiB),
    "a name of a GiB": _first(kind=tarfile.GNUTYPE_LONGNAME, size=GiB),
    "one member twice": no(_once_more),
    "a name that is no UTF-8": (lambda data: _header(b"caf\xe9.JPEG") + data, Ends.NAMED),
    "a name that rewrites the terminal": (lambda data: _header(b"\x1b[2J\x07.JPEG") + data, Ends.NAMED),
    **{f"cut by {n:,}": no(lambda data, n=n: data[: len(data.rstrip(b"\0")) - n]) for n in (1, 700, 4000)},
    "without its end": no(lambda data: data.rstrip(b"\0")),
    "packed by gzip": no(gzip.compress),
}


def inside(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """The same of every archive in an archive."""
    return lambda data: tar_bytes((name, change(inner)) for name, inner in _members(data))


INNER_TAR: Lies = {
    f"{how}, in an inner archive": (inside(change), ends)
    for how, (change, ends) in TAR.items()
    if not how.startswith(("cut", "without its end"))  # of so small an archive, its padding
}


# -- zip -----------------------------------------------------------------------------------------------------


def _with_entry(name: str = f"images_evaluation/{EVIL}", **fields: int) -> Lie:
    def change(data: bytes) -> bytes:
        buffer = io.BytesIO(data)
        info = zipfile.ZipInfo(name)
        info.filename = name  # which the constructor would mend
        for key, value in fields.items():
            setattr(info, key, value)
        with zipfile.ZipFile(buffer, "a") as archive:
            archive.writestr(info, b"x")
        return buffer.getvalue()

    return no(change)


def _pictures(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".png")}


def _zipped(entries: list[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


def _patched(
    central: dict[int, bytes], local: dict[int, bytes] | None = None, ends: Ends = Ends.REFUSED
) -> Lie:
    """Other bytes at some offsets of the headers of the first image."""

    def change(data: bytes) -> bytes:
        changed = bytearray(_zipped(list(_pictures(data).items())))
        for start, patches in ((changed.index(b"PK\1\2"), central), (0, local or {})):
            for offset, new in patches.items():
                changed[start + offset : start + offset + len(new)] = new
        return bytes(changed)

    return change, ends


OVERLAP = Ends.REFUSED if hasattr(zipfile.ZipInfo("a"), "_end_offset") else Ends.SAME
"""What comes of entries that reach into others: newer Pythons compare where they end."""


def _twice(data: bytes) -> bytes:
    pictures = list(_pictures(data).items())
    return _zipped([*pictures, (pictures[0][0], pictures[-1][1])])


def _bomb(data: bytes) -> bytes:
    pictures = _pictures(data)
    return _zipped([*list(pictures.items())[1:], (next(iter(pictures)), bytes(129 << 20))])


ZIP: Lies = {
    "a name above the folder": _with_entry(f"images_evaluation/../../{EVIL}"),
    "an absolute name": _with_entry(f"/tmp/{EVIL}"),
    "a name with backslashes": _with_entry(f"..\\{EVIL}"),
    "a link out of it": _with_entry(external_attr=(stat.S_IFLNK | 0o777) << 16),
    "a device": _with_entry(external_attr=(stat.S_IFCHR | 0o666) << 16),
    "a pipe": _with_entry(external_attr=(stat.S_IFIFO | 0o666) << 16),
    "a name of 2,000 letters": _with_entry("x" * 2000),
    "an image that expands to 129 MiB": no(_bomb),
    "a size of 4 GiB": _patched({24: struct.pack("<I", 0xFFFFFFFE)}),
    "a size of a byte": _patched({24: struct.pack("<I", 1)}),
    "a packed size of 4 GiB": _patched({20: struct.pack("<I", 0xFFFFFFFE)}, ends=OVERLAP),
    "another checksum": _patched({16: bytes(4)}),
    "one entry twice": no(_twice),
    "encrypted": _patched({8: struct.pack("<H", 1)}, {6: struct.pack("<H", 1)}),
    "encrypted, as its own header alone says": _patched({}, {6: struct.pack("<H", 1)}, Ends.SAME),
    "packed by LZMA": _with_entry(compress_type=zipfile.ZIP_LZMA),
    "packed in a way that nobody knows": _patched({10: struct.pack("<H", 77)}),
    "another name in its own header": _patched({}, {30: b"other"}),
    "an entry behind the end": _patched({42: struct.pack("<I", 0x7FFFFFFF)}),
    "a name that claims to be UTF-8": _patched({8: struct.pack("<H", 0x800), 46: b"\xff\xfe"}),
    "a name that is no UTF-8": (
        lambda data: _with_entry("images_evaluation/caf#.png")[0](data).replace(b"caf#", b"caf\xe9"),
        Ends.NAMED,
    ),
    "a name that rewrites the terminal": (_with_entry("images_evaluation/\x1b[2J.png")[0], Ends.NAMED),
    **{f"cut at {n}": no(lambda data, n=n: data[:n]) for n in (1, 100, -1, -22, -30)},
}


# -- idx -----------------------------------------------------------------------------------------------------


def _counted(count: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:4] + struct.pack(">I", count) + data[8:]


IDX: Lies = {
    "four thousand million entries": no(_counted(0xFFFFFFFF)),
    "an entry more than there is": no(_counted(6)),
    "an entry less than there is": no(_counted(4)),
    "sides of thousands of millions": no(lambda data: data[:8] + b"\xff" * 8 + data[16:]),
    "values of another type": no(lambda data: data[:2] + b"\x0d" + data[3:]),
    "another number of dimensions": no(lambda data: data[:3] + b"\xff" + data[4:]),
    "truncated": no(lambda data: data[:-1]),
    "a head alone": no(lambda data: data[:7]),
}


def _named(data: bytes) -> bytes:
    """A gzip stream whose header names a file to be written."""
    return data[:3] + b"\x08" + data[4:10] + b"../../evil\0" + data[10:]


GZIP: Lies = {
    f"{how}, packed": (lambda data, change=change: gzip.compress(change(gzip.decompress(data))), ends)
    for how, (change, ends) in IDX.items()
} | {
    "a hundred million zeros": no(lambda data: gzip.compress(gzip.decompress(data) + bytes(100_000_000))),
    "a second stream": no(lambda data: data + gzip.compress(bytes(1000))),
    "something behind it": no(lambda data: data + b"rubbish"),
    "another checksum": no(lambda data: data[:-8] + bytes(4) + data[-4:]),
    "truncated": no(lambda data: data[: len(data) // 2]),
    "without its end": no(lambda data: data[:-4]),
    "not packed": no(gzip.decompress),
    "a name above the folder": (_named, Ends.SAME),
}


# -- Parquet -------------------------------------------------------------------------------------------------


def _table(change: Callable[[pa.Table], pa.Table]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(change(pq.read_table(io.BytesIO(data))), buffer)
        return buffer.getvalue()

    return changed


def _rows(count: int) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        columns = [pa.nulls(count, column.type) for column in table.columns]
        return pa.table(columns, schema=table.schema)

    return change


def _no_pictures(table: pa.Table) -> pa.Table:
    return table.set_column(0, table.column_names[0], pa.array([1.5] * len(table)))


PARQUET: Lies = {
    "three million rows of nothing": no(_table(_rows(3_000_000))),
    "numbers for images": no(_table(_no_pictures)),
    "no columns but one": no(_table(lambda table: table.select([1]))),
    "truncated": no(lambda data: data[: len(data) // 2]),
    "cut near its end": no(lambda data: data[: int(0.99 * len(data))]),
    "without its end": no(lambda data: data[:-4]),
    "encrypted": no(lambda data: b"PARE" + data[4:-4] + b"PARE"),
    "a footer of 2 GiB": no(lambda data: data[:-8] + struct.pack("<I", 0x7FFFFFFF) + b"PAR1"),
}
NAMED_PARQUET: Lies = {
    "one row twice": no(_table(lambda table: pa.concat_tables([table, table.slice(0, 1)]))),
}


# -- MATLAB, pickles, LMDB -----------------------------------------------------------------------------------


def _mat(**arrays: object) -> Lie:
    buffer = io.BytesIO()
    savemat(buffer, arrays, do_compression=True)
    return no(lambda data: buffer.getvalue())


_X = np.zeros((32, 32, 3, 6), np.uint8)
_Y = np.ones((6, 1), np.uint8)
MAT: Lies = {
    "30,000 images of zeros in a few kilobytes": _mat(
        X=np.zeros((32, 32, 3, 30_000), np.uint8), y=np.ones((30_000, 1), np.uint8)
    ),
    "objects for images": _mat(X=np.array([{"a": 1}] * 6, object), y=_Y),
    "no labels": _mat(X=_X),
    "no images": _mat(Y=_X),
    "images of floats": _mat(X=_X.astype(np.float32), y=_Y),
    "images of other sides": _mat(X=_X[:28, :28], y=_Y),
    "images without channels": _mat(X=_X[:, :, 0], y=_Y),
    "labels of text": _mat(X=_X, y=np.array(list("123456"))[:, None]),
    "labels of half a digit": _mat(X=_X, y=_Y / 2),
    "labels that are no numbers": _mat(X=_X, y=_Y * np.nan),
    "fewer labels than images": _mat(X=_X, y=_Y[:5]),
    "MATLAB's own HDF5": no(lambda data: b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(512)),
    "truncated": no(lambda data: data[: len(data) // 2]),
    "a head alone": no(lambda data: data[:100]),
    "without its end": no(lambda data: data[:-20]),
}


class Call:
    """What runs a program where a pickle is read without restrictions."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch evil",)


def _batch(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    return lambda data: pickle.dumps(change(pickle.loads(data)), protocol=2)


def _label_keys(batch: dict[str, object]) -> list[str]:
    return [key for key in batch if key.endswith("labels")]


def _labelled(batch: dict[str, object], label: object) -> dict[str, object]:
    """The batch with another label for its first image."""
    return {**batch, **{key: [label, *batch[key][1:]] for key in _label_keys(batch)}}


def _again(batch: dict[str, object]) -> dict[str, object]:
    names = list(batch["filenames"])
    (labels,) = _label_keys(batch)
    of_first = [batch[labels][0]] * 2
    return {**batch, "filenames": [names[0]] * 2 + names[2:], labels: of_first + list(batch[labels])[2:]}


PICKLES: Lies = {
    "a call": no(_batch(lambda batch: {**batch, "data": Call()})),
    "a call beside what is read": no(_batch(lambda batch: {**batch, "more": Call()})),
    "fewer labels than images": no(_batch(lambda batch: {**batch, "data": batch["data"][:-1]})),
    "images that are numbers": no(_batch(lambda batch: {**batch, "data": 7})),
    "one name twice": no(_batch(_again)),
    "rows that are too short": no(_batch(lambda batch: {**batch, "data": batch["data"][:, :100]})),
    "pixels of four bytes": no(_batch(lambda batch: {**batch, "data": np.array(batch["data"], "i4")})),
    "a list": no(_batch(lambda batch: list(batch.values()))),
    "other keys": no(_batch(lambda batch: {key.upper(): value for key, value in batch.items()})),
    "labels that are text": no(_batch(lambda batch: _labelled(batch, "x"))),
    "labels that are a number": no(_batch(lambda batch: {**batch, **dict.fromkeys(_label_keys(batch), 1)})),
    "fewer names than images": no(_batch(lambda batch: {**batch, "filenames": batch["filenames"][:1]})),
    "truncated": no(lambda data: data[: len(data) // 2]),
    "without its end": no(lambda data: data[:-1]),
}

KINDS: Mapping[str, Lies] = {
    ".tar": TAR,
    ".zip": ZIP,
    ".gz": GZIP,
    "": IDX,
    ".parquet": PARQUET,
    ".mat": MAT,
    ".pickle": PICKLES,
    ".mdb": {
        **{f"cut at {n:,}": no(lambda data, n=n: data[:n]) for n in (100, 4096, 8192, 12_288, -4096, -1)},
        "rubbish": no(lambda data: np.random.default_rng(0).bytes(len(data))),
    },
}


def kind_of(path: Path) -> str:
    """The kind of archive that a file of a made tree is, "image" for what is none."""
    if path.name.endswith("-ubyte"):
        return ""
    if "batch" in path.name or path.name in ("train", "test"):
        return ".pickle"
    return path.suffix if path.suffix in KINDS and path.name != "digitStruct.mat" else "image"


def lies_of(path: Path) -> Lies:
    """The lies that a sound archive can be made to tell."""
    kind = kind_of(path)
    if kind == ".tar" and all(name.endswith(".tar") for name, _ in _members(path.read_bytes())):
        return {**TAR, **INNER_TAR}
    if kind == ".parquet":
        named = pq.read_table(path).column(0).combine_chunks().field("path").null_count == 0
        return {**PARQUET, **NAMED_PARQUET} if named else PARQUET
    return KINDS[kind]
