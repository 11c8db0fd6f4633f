"""What differs between two manifests, class by class and image by image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from wordnet_splits.base.tabular import Tabular
from wordnet_splits.manifest.fingerprint import CLASS_IDENTITY, IMAGE_IDENTITY
from wordnet_splits.manifest.manifest import Manifest

TableRow = dict[str, Any]


@dataclass(frozen=True)
class RowChanges:
    """Rows that only one of two tables has, and rows that both have with other values, as ``a`` and ``b``."""

    only_a: list[TableRow] = field(default_factory=list)
    only_b: list[TableRow] = field(default_factory=list)
    changed: list[TableRow] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Return the number of rows that differ."""
        return len(self.only_a) + len(self.only_b) + len(self.changed)


@dataclass(frozen=True)
class ManifestDiff(Tabular):
    """What differs between the classes and between the images of two manifests."""

    classes: RowChanges
    images: RowChanges

    @property
    def same(self) -> bool:
        """Say whether nothing differs."""
        return not self.classes.count + self.images.count

    def rows(self) -> Sequence[TableRow]:
        """Return one row for each class and image that differs."""
        return [
            {"of": of, "change": change} | {k: row.get(k) for k in ("source", "class_id", "image_id")}
            for of, table in (("class", self.classes), ("image", self.images))
            for change, rows in vars(table).items()
            for row in (r["a"] if change == "changed" else r for r in rows)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as ``diff --json`` prints it."""
        return {"same": self.same, **asdict(self)}


def diff_manifests(a: Manifest, b: Manifest) -> ManifestDiff:
    """Compare two manifests.

    Rows are identified by (source, class_id, group), or (source, image_id, split). Digests differ only where
    both are known.
    """
    identity = list(CLASS_IDENTITY)
    classes = _compare(a.classes.select(identity), b.classes.select(identity), "source", "class_id", "group")
    images = RowChanges()
    for part in sorted(a.parts.keys() | b.parts.keys()):
        part_changes = _compare(_identity(a, part), _identity(b, part), "source", "image_id", "split")
        for change, rows in vars(part_changes).items():
            getattr(images, change).extend(rows)
    return ManifestDiff(classes, images)


def _identity(manifest: Manifest, part: tuple[str, str]) -> pa.Table:
    columns = [*IMAGE_IDENTITY, "split", "group", "digest"]
    if part not in manifest.parts:
        return manifest.images("none").select(columns)
    return manifest.parts[part]().select(columns)


def _compare(a: pa.Table, b: pa.Table, *key: str) -> RowChanges:
    if a.equals(b):
        return RowChanges()
    rows_a = {tuple(r[k] for k in key): _readable(r) for r in a.to_pylist()}
    rows_b = {tuple(r[k] for k in key): _readable(r) for r in b.to_pylist()}
    return RowChanges(
        [rows_a[k] for k in sorted(rows_a.keys() - rows_b.keys())],
        [rows_b[k] for k in sorted(rows_b.keys() - rows_a.keys())],
        [
            {"a": rows_a[k], "b": rows_b[k]}
            for k in sorted(rows_a.keys() & rows_b.keys())
            if not _equal(rows_a[k], rows_b[k])
        ],
    )


def _readable(row: TableRow) -> TableRow:
    digest = row.get("digest")
    return {**row, "digest": digest.hex()} if isinstance(digest, bytes) else row


def _equal(a: TableRow, b: TableRow) -> bool:
    if None in (a.get("digest"), b.get("digest")):
        a, b = {**a, "digest": None}, {**b, "digest": None}
    return a == b
