"""The members of an archive: read, altered one at a time, and packed again."""

from __future__ import annotations

import io
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

Members = list[tuple[str, bytes]]


def of_tar(path: Path) -> Members:
    with tarfile.open(path) as archive:
        files = [(info.name, archive.extractfile(info)) for info in archive]
        return [(name, file.read()) for name, file in files if file is not None]


def write_tar(path: Path, members: Members) -> None:
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def of_zip(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist() if not info.is_dir()]


def write_zip(path: Path, members: Members) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)


def altered(members: Members, rng: Random, alter: Callable[[Path, Random], object]) -> Members:
    """Alter a member as if it were a file, with sound checksums around it."""
    n = rng.randrange(len(members))
    name, data = members[n]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, "member").with_suffix(Path(name).suffix)
        path.write_bytes(data)
        alter(path, rng)
        return [*members[:n], (name, path.read_bytes()), *members[n + 1 :]]


def renamed(members: Members, rng: Random) -> Members:
    n = rng.randrange(len(members))
    name, data = members[n]
    odd = (f"../{name}", f"/{name}", name[::-1], f"{name}\x1b[2J", name.replace("0", "1"), "a/" * 500 + name)
    return [*members[:n], (rng.choice(odd), data), *members[n + 1 :]]


def repeated(members: Members, rng: Random) -> Members:
    return [*members, *[rng.choice(members)] * rng.choice((1, 3000))]


def left_out(members: Members, rng: Random) -> Members:
    n = rng.randrange(len(members))
    return members[:n] + members[n + 1 :]
