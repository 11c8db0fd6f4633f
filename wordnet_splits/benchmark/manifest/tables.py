"""The class table and the image tables of a manifest: Arrow schemas and row order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.manifest.metadata import GroupRow

ROLES = ("id", "near", "far", "external", "csid", "excluded")
SPLITS = ("train", "val", "test")
CUT_ORDER = ("val", "test", "train")
"""Order in which splits take a class's images, so that a later count does not change an earlier split."""

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


def class_table(rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Return class rows as a sorted table."""
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
    """Return the sorted image table of a (split, group).

    Parameters
    ----------
    labels : label of every class (the group's classes are its keys).
    images : image ids by class id.
    digests : known 32-byte digests by image id.
    """
    classes = sorted(c for c in images if images[c])
    counts = [len(images[c]) for c in classes]
    ids = [i for c in classes for i in sorted(images[c])]
    repeat = [n for n, count in enumerate(counts) for _ in range(count)]
    take = pa.array(repeat, pa.int32())
    digest_by_id = digests or {}
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
            pa.array([digest_by_id.get(i) for i in ids], pa.binary(32)),
        ],
        schema=IMAGE_SCHEMA,
    )


def check_classes(table: pa.Table, where: str) -> pa.Table:
    """Return a class table with exactly the columns of `CLASS_SCHEMA`, filled where required."""
    return _check(table, CLASS_SCHEMA, ("source", "class_id", "name", "role", "group", "label"), where)


def check_images(table: pa.Table, row: GroupRow, where: str) -> pa.Table:
    """Return the image table of a (split, group) if it agrees with ``row``. Raises ManifestError."""
    table = _check(table, IMAGE_SCHEMA, [name for name in IMAGE_SCHEMA.names if name != "digest"], where)
    for name in ("source", "role", "group", "split", "view"):
        values = table[name].unique().to_pylist()
        if values not in ([], [getattr(row, name)]):
            stray = next(value for value in values if value != getattr(row, name))
            raise _rebuild(f"column {name!r} holds {stray!r}, not {getattr(row, name)!r}", where)
    return table


def _check(table: pa.Table, schema: pa.Schema, filled: Sequence[str], where: str) -> pa.Table:
    for name in dict.fromkeys([*schema.names, *table.column_names]):
        if name not in table.column_names:
            raise _rebuild(f"column {name!r} is missing", where)
        if name not in schema.names or table.column_names.count(name) > 1:
            raise _rebuild(f"column {name!r} is unexpected", where)
        actual, expected = table.schema.field(name).type, schema.field(name).type
        if not actual.equals(expected):
            raise _rebuild(f"column {name!r} is {actual}, not {expected}", where)
        if name in filled and table[name].null_count:
            raise _rebuild(f"column {name!r} has empty cells", where)
    return table.select(schema.names).cast(schema)


def _rebuild(reason: str, where: str) -> ManifestError:
    return ManifestError(reason, where=where, hint="rebuild the manifest")
