"""Rows of an image table as objects of text and numbers, and back, for formats that carry all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.exchange.entries import ImportTask, ListEntry
from wordnet_splits.manifest.tables import SPLITS

TEXTS: Final = ("source", "image_id", "class_id", "role", "group", "split", "view", "digest")


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its digest in hex, "" where it is not known."""
    digest = row["digest"]
    return {**row, "digest": digest.hex() if digest else ""}


def entry_of(row: object, reading: ImportTask, where: str) -> ListEntry:
    """Return the entry that a row of `plain_row` says; only source and image_id must be there.

    Raises
    ------
    DataError : a cell that cannot be.
    """
    if not isinstance(row, dict):
        raise DataError("is no object", where=where)
    texts = {name: row.get(name) or "" for name in TEXTS}
    label = row.get("label")
    for name, value in texts.items():
        if not isinstance(value, str) or (not value and name in ("source", "image_id")):
            raise DataError(f"has no {name}", where=where, hint="each image needs its source and image_id")
    if label is not None and (isinstance(label, bool) or not isinstance(label, int) or abs(label) > 10**9):
        raise DataError(f"{printable(label)!r} is no label", where=where, hint="a label is a whole number")
    split = texts["split"] or reading.split
    if split not in SPLITS:
        raise DataError(f"{printable(split)!r} is no split", where=where, hint=f"it is {', '.join(SPLITS)}")
    return ListEntry(
        split,
        texts["group"] or texts["source"],
        label=label,
        source=texts["source"],
        class_id=texts["class_id"] or None,
        image_id=texts["image_id"],
        role=texts["role"] or None,
        view=texts["view"] or None,
        digest=_digest(texts["digest"], where),
    )


def _digest(text: str, where: str) -> bytes | None:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b"?"
    if len(data) not in (0, 32):
        raise DataError(f"{printable(text)!r} is no digest", where=where, hint="64 hex digits, or nothing")
    return data or None
