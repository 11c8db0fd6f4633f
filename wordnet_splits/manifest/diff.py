"""What differs between two manifests, class by class and image by image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from wordnet_splits.manifest.fingerprint import CLASS_IDENTITY, IMAGE_IDENTITY
from wordnet_splits.manifest.manifest import Manifest

Row = dict[str, Any]


def diff_manifests(a: Manifest, b: Manifest) -> dict[str, Any]:
    """Return ``{"same", "classes", "images"}``; each part has ``only_a``, ``only_b`` and ``changed`` rows.

    Rows are identified by (source, class_id), or (source, image_id, split); ``changed`` rows hold ``a`` and
    ``b``. Digests differ only where both are known.
    """
    classes = _compare(
        a.classes.select(list(CLASS_IDENTITY)),
        b.classes.select(list(CLASS_IDENTITY)),
        ("source", "class_id", "group"),
    )
    images: dict[str, list[Any]] = {"only_a": [], "only_b": [], "changed": []}
    for part in sorted(a.parts.keys() | b.parts.keys()):
        found = _compare(_identity(a, part), _identity(b, part), ("source", "image_id", "split"))
        for key, rows in found.items():
            images[key] += rows
    same = not any([*classes.values(), *images.values()])
    return {"same": same, "classes": classes, "images": images}


def _identity(manifest: Manifest, part: tuple[str, str]) -> pa.Table:
    columns = [*IMAGE_IDENTITY, "split", "group", "digest"]
    if part not in manifest.parts:
        return manifest.images("none").select(columns)
    return manifest.parts[part]().select(columns)


def _compare(a: pa.Table, b: pa.Table, key: Iterable[str]) -> dict[str, list[Any]]:
    if a.equals(b):
        return {"only_a": [], "only_b": [], "changed": []}
    names = tuple(key)
    rows_a = {tuple(r[k] for k in names): _readable(r) for r in a.to_pylist()}
    rows_b = {tuple(r[k] for k in names): _readable(r) for r in b.to_pylist()}
    return {
        "only_a": [rows_a[k] for k in sorted(rows_a.keys() - rows_b.keys())],
        "only_b": [rows_b[k] for k in sorted(rows_b.keys() - rows_a.keys())],
        "changed": [
            {"a": rows_a[k], "b": rows_b[k]}
            for k in sorted(rows_a.keys() & rows_b.keys())
            if not _equal(rows_a[k], rows_b[k])
        ],
    }


def _readable(row: Row) -> Row:
    digest = row.get("digest")
    return {**row, "digest": digest.hex()} if isinstance(digest, bytes) else row


def _equal(a: Row, b: Row) -> bool:
    if None in (a.get("digest"), b.get("digest")):
        a, b = {**a, "digest": None}, {**b, "digest": None}
    return a == b
