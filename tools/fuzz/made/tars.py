"""Tar archives whose headers lie."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from random import Random

from tools.fuzz.made.making import Made, Make, in_bytes


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
    "headers upon headers": (_T, in_bytes(lambda: _member("long", b"L", 0) * 200_000)),
    "a name that is no UTF-8": (_T, _headed(_member("\udcff\udcfe.JPEG"), 0)),
    "a name that leaves the folder": (_T, _headed(_member("../../x.JPEG"), 0)),
    "control characters in a name": (_T, _headed(_member("\x1b]0;x\x07\n.JPEG"), 0)),
    "a link to /dev/zero": (_T, _headed(_member("ILSVRC2012_val_00000001.JPEG", b"2", link="/dev/zero"), 0)),
    "a device": (_T, _headed(_member("ILSVRC2012_val_00000001.JPEG", b"3"), 0)),
    "a sparse member": (_T, _headed(_member("ILSVRC2012_val_00000001.JPEG", b"S", 1 << 20), 1 << 20)),
    "a picture of 6 GiB": (_T, _headed(_member("ILSVRC2012_val_00000293.JPEG", size=6 << 30), 6 << 30)),
    "a size beyond the end": (_T, in_bytes(lambda: _member("ILSVRC2012_val_00000293.JPEG", size=1 << 40))),
    "200,000 members": (_T, in_bytes(lambda: b"".join(_member(f"{n}.JPEG") for n in range(200_000)))),
}
