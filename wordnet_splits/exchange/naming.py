"""Names that any file system, list and reader takes: a class or image id, percent-encoded, and back.

The tree of an export is ``<split>/<group>/<class>/<image>``; what is not a letter of ASCII, a digit or one of
``_.-~`` is written as in a URL, so that no id can leave its folder and every id comes back whole.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote

from wordnet_splits.errors import DataError
from wordnet_splits.exchange.entries import slug
from wordnet_splits.manifest.tables import SPLITS
from wordnet_splits.untrusted import printable

LONGEST = 255
"""Bytes of a file's name."""


def encoded(text: str, *, dots: bool = True) -> str:
    """Return an id as one file name, without extension.

    Parameters
    ----------
    dots : keep them, but for the first letter.

    >>> encoded("apple_pie/1005649"), encoded(".."), encoded("001.ak47", dots=False)
    ('apple_pie%2F1005649', '%2E.', '001%2Eak47')
    """
    name = quote(text, safe="")
    if not dots:
        return name.replace(".", "%2E")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def decoded(name: str) -> str | None:
    """Return the id of a file name without extension; None where no id is written so."""
    try:
        text = unquote(name, errors="strict")
    except UnicodeDecodeError:
        return None
    return text if name in (encoded(text), encoded(text, dots=False)) and text else None


def tree_path(split: str, group: str, class_id: str, image_id: str, extension: str) -> str:
    """Return where the tree of an export has an image.

    Raises
    ------
    DataError : a name that no file system takes.
    """
    folder, file = encoded(class_id), f"{encoded(image_id)}{extension}"
    for name in (folder, file):
        if len(name) > LONGEST or not name:
            what = f"{printable(name)!r} is too long for a file's name" if name else "an id is empty"
            raise DataError(what, where=f"{group} {split}", hint="export as csv, hub or webdataset")
    return f"{split}/{group}/{folder}/{file}"


class OwnPath(NamedTuple):
    """What a path of the tree says; split and group are "" where it begins with the class."""

    split: str
    group: str
    class_id: str
    image_id: str


def from_tree(path: str) -> OwnPath | None:
    """Return what a path says whose last two names are those of `tree_path`, else None."""
    parts = PurePosixPath(path).parts
    if len(parts) < 2:
        return None
    stem, dot, _ = parts[-1].rpartition(".")
    class_id, image_id = decoded(parts[-2]), decoded(stem if dot else parts[-1])
    if class_id is None or image_id is None:
        return None
    split, group = parts[:2] if len(parts) == 4 and parts[0] in SPLITS else ("", "")
    return OwnPath(split, slug(group) if group else "", class_id, image_id)
