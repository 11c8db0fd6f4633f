"""Names that any file system, list and reader takes: a class or image id, percent-encoded, and back.

The tree of an export is ``<split>/<group>/<class>/<image>``; what is not a letter of ASCII, a digit or one of
``_.-~`` is written as in a URL, so that no id can leave its folder and every id comes back whole. So are what
Windows keeps for itself (``CON``, a dot at the end), and the capitals of names that differ in nothing else:
`Dog` beside `dog` is ``%44og``.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.exchange.entries import slug
from wordnet_splits.manifest.tables import SPLITS

LONGEST = 255
"""Bytes of a file's name."""

DEVICES: Final = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10)))
)
"""Names that Windows keeps for devices, with any extension."""

_CAPITAL: Final = re.compile("%[0-9A-F]{2}|[A-Z]")


def encoded(text: str, *, dots: bool = True, capitals: bool = True) -> str:
    """Return an id as one file name, without extension.

    Parameters
    ----------
    dots : keep them, but for the first letter and the last.
    capitals : keep them.

    >>> encoded("apple_pie/1005649"), encoded(".."), encoded("001.ak47", dots=False)
    ('apple_pie%2F1005649', '%2E%2E', '001%2Eak47')
    >>> encoded("CON"), encoded("dog."), encoded("Dog", capitals=False)
    ('%43ON', 'dog%2E', '%44og')
    """
    name = quote(text, safe="")
    if not capitals:
        name = _CAPITAL.sub(lambda match: match[0] if len(match[0]) > 1 else _escape(match[0]), name)
    if not dots:
        name = name.replace(".", _escape("."))
    if name.startswith(".") or name.partition(".")[0].lower() in DEVICES:
        name = _escape(name[0]) + name[1:]
    return name[:-1] + _escape(".") if name.endswith(".") else name


def _escape(letter: str) -> str:
    return f"%{ord(letter):02X}"


def decoded(name: str) -> str | None:
    """Return the id of a file name without extension; None where no id is written so."""
    try:
        text = unquote(name, errors="strict")
    except UnicodeDecodeError:
        return None
    ways = (
        encoded(text, dots=dots, capitals=capitals) for dots, capitals in product((True, False), repeat=2)
    )
    # the last: devices and dots at the end, which were once written as they are
    return text if text and name in (*ways, quote(text, safe="")) else None


def alike(ids: pa.Array) -> frozenset[str]:
    """Return the ids that differ from another one in nothing but capitals."""
    distinct = pc.unique(ids)
    lower = pc.ascii_lower(distinct)
    counts = pc.value_counts(lower)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    return frozenset(distinct.filter(pc.is_in(lower, value_set=repeated)).to_pylist())


class Ambiguous(NamedTuple):
    """Classes and images of a part whose names only capitals tell apart.

    Attributes
    ----------
    images : of each, "<class_id>\\0<image_id>".
    """

    classes: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()

    @classmethod
    def of(cls, table: pa.Table) -> Ambiguous:
        """Return those of an image table."""
        classes, ids = (table[name].combine_chunks() for name in ("class_id", "image_id"))
        return cls(alike(classes), alike(pc.binary_join_element_wise(classes, ids, "\0")))


def tree_path(
    split: str,
    group: str,
    class_id: str,
    image_id: str,
    extension: str,
    ambiguous: Ambiguous = Ambiguous(),
) -> str:
    """Return where the tree of an export has an image.

    Parameters
    ----------
    ambiguous : of the image's part.

    Raises
    ------
    DataError : a name that no file system takes.
    """
    folder = encoded(class_id, capitals=class_id not in ambiguous.classes)
    stem = encoded(image_id, capitals=f"{class_id}\0{image_id}" not in ambiguous.images)
    file = f"{stem}{extension}"
    for name in (folder, file):
        if len(name) > LONGEST or not name:
            reason = f"{printable(name)!r} is too long for a file's name" if name else "an id is empty"
            raise DataError(reason, where=f"{group} {split}", hint="export as csv, hub or webdataset")
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
