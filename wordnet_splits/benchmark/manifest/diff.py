"""Comparison of two manifests: rows that differ, and frozen values that changed under one version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.manifest.fingerprint import CLASS_IDENTITY, IMAGE_IDENTITY
from wordnet_splits.benchmark.manifest.metadata import ManifestData
from wordnet_splits.benchmark.manifest.parts import Manifest

TableRow = dict[str, Any]
EVALUATION = "the transforms, normalisation, roles or views of its evaluation"
_IN_ALL = ("all images", "all pixels")


@dataclass(frozen=True)
class RowChanges:
    """Rows that only one of two tables has, and pairs of rows with other values, as ``a`` and ``b``."""

    only_a: list[TableRow] = field(default_factory=list)
    only_b: list[TableRow] = field(default_factory=list)
    changed: list[TableRow] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Return the number of rows that differ."""
        return len(self.only_a) + len(self.only_b) + len(self.changed)


@dataclass(frozen=True)
class ManifestDiff(Tabular):
    """Differences between the classes and between the images of two manifests."""

    classes: RowChanges
    images: RowChanges

    @property
    def same(self) -> bool:
        """Whether the manifests agree."""
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


def changed_values(before: ManifestData, after: ManifestData) -> list[str]:
    """Return the frozen values of ``before`` that ``after`` changes under the same version.

    Nulls may be filled.
    """
    if before.version != after.version:
        return []
    new = dict(_frozen(after))
    return [subject for subject, value in _frozen(before) if value is not None and new.get(subject) != value]


def contradictions(before: ManifestData, after: ManifestData) -> list[str]:
    """Return the `changed_values` that ``after`` has another value for.

    Unknown and missing images are skipped. Another draw (``NAME@seed=N``, ``NAME@local``) has other classes
    and images: only the other inputs of an evaluation are compared.
    """
    values = dict(_frozen(after))
    changed = [subject for subject in changed_values(before, after) if values.get(subject) is not None]
    if after.name != before.name:
        return [subject for subject in changed if subject == EVALUATION]
    if after.missing:
        short = {(row.split, row.group) for row in after.groups if row.status.startswith("missing")}
        passed = {subject for part in short for subject in _of_part(*part)} | set(_IN_ALL)
        return [subject for subject in changed if subject not in passed]
    return changed


def _of_part(split: str, group: str) -> tuple[str, str]:
    return f"the images of {split}/{group}", f"the pixels of {split}/{group}"


def _frozen(data: ManifestData) -> Iterator[tuple[str, str | None]]:
    stored = data.fingerprints
    yield "its classes", stored.classes
    yield EVALUATION, stored.evaluation
    for row in stored.images:
        yield from zip(_of_part(row.split, row.group), (row.images, row.pixels), strict=True)
    yield from zip(_IN_ALL, (stored.images_in_all, stored.pixels_in_all), strict=True)
    for source in stored.sources:
        yield f"the declaration of {source.name}", source.declaration
        yield f"the catalog of {source.name}", source.catalog
        yield f"the inventory of {source.name}", source.inventory
    for table in stored.pair_tables:
        yield f"the table {table.name}", table.sha256
