"""The two tables of a manifest, as Arrow schemas and in their one order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from wordnet_splits.errors import ManifestError

ROLES = ("id", "near", "far", "external", "csid", "excluded")
SPLITS = ("train", "val", "test")
CUT_ORDER = ("val", "test", "train")
"""A class's order is cut in this sequence, so that a later count never moves an earlier split."""

VIA = pa.struct(
    [
        ("relation", pa.string()),
        ("wnid", pa.string()),
        ("other_source", pa.string()),
        ("other_class", pa.string()),
        ("value", pa.float64()),
    ]
)

CLASS_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("class_id", pa.string()),
        ("name", pa.string()),
        ("wnids", pa.list_(pa.string())),
        ("role", pa.string()),
        ("group", pa.string()),
        ("label", pa.int32()),
        ("rule", pa.string()),
        ("via", pa.list_(VIA)),
        ("evidence", pa.string()),
        ("own_wnid", pa.string()),
        ("nearest_wnid", pa.string()),
        ("nearest_id", pa.string()),
        ("lcs", pa.string()),
        ("distance", pa.int16()),
        ("path", pa.float64()),
        ("wup", pa.float64()),
        ("lch", pa.float64()),
        ("mean", pa.float64()),
    ]
)
CLASS_ORDER = ("role", "group", "source", "class_id")

IMAGE_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("image_id", pa.string()),
        ("class_id", pa.string()),
        ("role", pa.string()),
        ("group", pa.string()),
        ("split", pa.string()),
        ("label", pa.int32()),
        ("view", pa.string()),
        ("digest", pa.binary(32)),
    ]
)
IMAGE_ORDER = ("split", "role", "group", "source", "class_id", "image_id")


def class_table(rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Return class rows as a table in its order."""
    ordered = sorted(rows, key=lambda r: tuple(str(r[c]) for c in CLASS_ORDER))
    return pa.Table.from_pylist(ordered, schema=CLASS_SCHEMA)


def image_table(
    *,
    source: str,
    role: str,
    group: str,
    split: str,
    view: str,
    labels: Mapping[str, int],
    images: Mapping[str, Sequence[str]],
    digests: Mapping[str, bytes] | None = None,
) -> pa.Table:
    """Return the images of one (split, group) in table order.

    Parameters
    ----------
    labels : label of every class (the group's classes are its keys).
    images : image ids by class id.
    digests : 32-byte digest by image id, where known.
    """
    classes = sorted(c for c in images if images[c])
    counts = [len(images[c]) for c in classes]
    ids = [i for c in classes for i in sorted(images[c])]
    repeat = [n for n, count in enumerate(counts) for _ in range(count)]
    take = pa.array(repeat, pa.int32())
    known = digests or {}
    n = len(ids)
    return pa.Table.from_arrays(
        [
            pa.repeat(pa.scalar(source), n),
            pa.array(ids, pa.string()),
            pa.array(classes, pa.string()).take(take),
            pa.repeat(pa.scalar(role), n),
            pa.repeat(pa.scalar(group), n),
            pa.repeat(pa.scalar(split), n),
            pa.array([labels[c] for c in classes], pa.int32()).take(take),
            pa.repeat(pa.scalar(view), n),
            pa.array([known.get(i) for i in ids], pa.binary(32)),
        ],
        schema=IMAGE_SCHEMA,
    )


def check_schema(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    """Return ``table`` with exactly ``schema``, or raise ManifestError naming the first bad column."""
    for field in schema:
        if field.name not in table.column_names:
            raise ManifestError(f"column {field.name!r} is missing", where=where, hint="rebuild the manifest")
        if not table.schema.field(field.name).type.equals(field.type):
            raise ManifestError(
                f"column {field.name!r} is {table.schema.field(field.name).type}, not {field.type}",
                where=where,
                hint="rebuild the manifest",
            )
    return table.select(schema.names).cast(schema)
