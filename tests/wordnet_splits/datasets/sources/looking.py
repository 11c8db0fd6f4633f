"""What a user of a root sees: everything that is in it, or the one line that refuses it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.datasets.sources import Source, open_source


def look(name: str, root: Path) -> tuple[Source, list[str]]:
    """Scan a root, read and decode all of its pictures; return the source and the ids."""
    source = open_source(name, root)
    ids = [i for batch in source.scan() for i in batch.column("image_id").to_pylist()]
    for image_id, raw in zip(ids, source.read(ids), strict=True):
        source.decode(raw, image_id)
    assert len(set(ids)) == len(ids), "an id is listed twice"
    return source, ids


def refused(name: str, root: Path) -> str:
    """The line with which a root is refused, on opening, scanning, reading or decoding; exit code 2."""
    with pytest.raises(SplitsError) as caught:
        look(name, root)
    return checked(caught.value, root)


def checked(error: SplitsError, root: Path) -> str:
    """What an error says: one line of letters that a terminal shows, with the root in it."""
    message = str(error)
    assert error.exit_code == 2
    assert message.isprintable(), message
    assert str(root) in message
    return message


def said_or_held(name: str, root: Path) -> tuple[str, list[str]]:
    """The line with which a root is refused, or what may be frozen of it."""
    try:
        source, ids = look(name, root)
    except SplitsError as error:
        return checked(error, root), []
    return "", ids if source.order == "published" else []


def files(folder: Path) -> list[Path]:
    """All files below a folder, sorted."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    """Every name below a folder, with its size and time: what must be the same after something hostile."""
    found = {}
    for above, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(above, name)
            about = path.lstat()
            found[os.path.relpath(path, folder)] = (about.st_size, about.st_mtime_ns)
    return found
