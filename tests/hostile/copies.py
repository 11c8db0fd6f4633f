"""Fresh copies of a sound example, and whether an altered file still says the same."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.parquet import read_table


def _object(path: Path) -> Any:
    value = json.loads(path.read_text("utf-8"))
    if isinstance(value, dict):  # who made it, with what: in no fingerprint, relied on by nobody
        value = {k: v for k, v in value.items() if k not in ("provenance", "versions")}
    return value


def _lines(path: Path) -> list[str]:
    return sorted(filter(None, map(str.strip, path.read_text("utf-8").splitlines())))


def _rows(path: Path) -> list[list[str]]:
    return sorted([cell.strip() for cell in row] for row in csv.reader(path.read_text("utf-8").splitlines()))


def _objects(path: Path) -> list[tuple[str, bytes]]:
    """The objects of a shard: its pictures are not read."""
    with tarfile.open(path) as archive:
        named = [(info.name, archive.extractfile(info)) for info in archive if info.name.endswith(".json")]
        return [(name, file.read() if file else b"") for name, file in named]


SAID: Mapping[str, Callable[[Path], object]] = {
    ".json": _object,
    ".txt": _lines,
    ".csv": _rows,
    ".tar": _objects,
}
"""What a file says to whom it matters, by its suffix: in lists, lines in another order say the same."""


OF_LISTS = (tarfile.TarError, csv.Error)


def same(one: Path, other: Path) -> bool:
    """Return whether an altered file says what it said before: padding, the order of keys, provenance."""
    if other.is_symlink() or not other.is_file() or other.stat().st_size > 1 << 30:
        return False
    if one.read_bytes() == other.read_bytes():
        return True
    try:
        if said := SAID.get(one.suffix):
            return bool(said(one) == said(other))
        if one.suffix == ".parquet":
            # bounded as our readers are: kilobytes that expand to 30 GB would do so in the fuzzer itself
            rows = pq.read_metadata(one).num_rows
            return pq.read_metadata(other).num_rows == rows and bool(
                read_table(one).equals(read_table(other, max_rows=rows), check_metadata=True)
            )
    except (ValueError, OSError, RecursionError, SplitsError, pa.ArrowException, *OF_LISTS):
        pass
    return False


def copied(whole: Path, to: Path) -> None:
    """Put a fresh copy of a folder at ``to``."""
    remove(to)
    shutil.copytree(whole, to, symlinks=True)


def remove(folder: Path) -> None:
    """Remove a folder, however deep."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # it goes down by calling itself
        subprocess.run(["rm", "-rf", folder], check=True)
