"""What a format lists: one entry an image, with as much of its identity as the format carries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import MiB
from wordnet_splits.exchange.sidecar import Sidecar
from wordnet_splits.manifest.tables import SPLITS

MOST_ENTRIES = 20_000_000
"""Of one import; ImageNet-21K has 14 million images."""
LARGEST = 1024 * MiB
"""Bytes of a list; that of all of ImageNet-1K has 60 MB."""


class ListEntry(NamedTuple):
    """An image as a format lists it; what the format does not say is None, or ``path`` says it.

    Attributes
    ----------
    path : where the other project keeps the image, below its data folder.
    image_id : "" for a class of which no image is named (then split is "", too).
    label : the class of the other project's classifier; negative for what is not ID.
    """

    split: str
    group: str
    path: str = ""
    label: int | None = None
    source: str | None = None
    class_id: str | None = None
    image_id: str | None = None
    role: str | None = None
    view: str | None = None
    digest: bytes | None = None


@dataclass(frozen=True)
class ImportTask:
    """What is to be read.

    Attributes
    ----------
    path : the file or folder.
    notes : what our export wrote beside it, None where somebody else made it.
    split : the split of a file whose name does not say it.
    roles : role of groups, by name; it wins over what the format says.
    """

    path: Path
    notes: Sidecar | None = None
    split: str = "test"
    roles: Mapping[str, str] = field(default_factory=dict)


_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def slug(text: str) -> str:
    """Return a text as a name of ours, at least one letter long.

    >>> slug("Textures_Labelled v2")
    'textures-labelled-v2'
    """
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")[:64].strip("-") or "unnamed"


def split_and_group(stem: str, default: str) -> tuple[str, str]:
    """Return split and group of a file called ``<split>_<group>``, or ``<group>`` alone.

    >>> split_and_group("test_near-200", "val")
    ('test', 'near-200')
    """
    prefix, _, rest = stem.partition("_")
    return (prefix, slug(rest)) if prefix in SPLITS and rest else (default, slug(stem))


def files_of(path: Path, suffix: str) -> list[Path]:
    """Return the file given, or the files of a folder that end in ``suffix``, sorted.

    Raises
    ------
    DataError : there is none.
    """
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if f.name.endswith(suffix) and not f.name.startswith("."))
    else:
        files = [path] if path.exists() else []
    if not files:
        reason = f"no file *{suffix} here" if path.is_dir() else "no such file or folder"
        raise DataError(reason, where=printable(path), hint=f"give a folder of *{suffix}, or one such file")
    return files


def label_of(text: str, where: str) -> int:
    """Return a label; DataError where it is no whole number of at most nine digits."""
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise DataError(f"{printable(text)!r} is no label", where=where, hint="a label is a whole number")
    return int(text)
