"""The class table and the image tables of a manifest: Arrow schemas, row order, nearness to ID."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import itemgetter
from statistics import median
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.manifest.metadata import GroupRow
from wordnet_splits.wordnet.taxonomy import Taxonomy

ROLES = ("id", "near", "far", "external", "csid", "excluded")
SPLITS = ("train", "val", "test")
CUT_ORDER = ("val", "test", "train")
"""Order of the splits that take a class's images: a later count does not change an earlier split."""

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


def class_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return class rows as a sorted table; each ``via`` is a tuple of the values of `VIA`."""
    ordered = sorted(rows, key=itemgetter(*CLASS_ORDER))
    columns: dict[str, Any] = {name: list(map(itemgetter(name), ordered)) for name in CLASS_SCHEMA.names}
    ends = pa.array(accumulate(map(len, columns["via"]), initial=0), pa.int32())
    values = list(zip(*chain.from_iterable(columns["via"]), strict=True)) or [()] * VIA.num_fields
    arrays = [pa.array(column, field.type) for column, field in zip(values, VIA, strict=True)]
    vias = pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays(arrays, fields=list(VIA)))
    return pa.table({**columns, "via": vias}, schema=CLASS_SCHEMA)


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


OOD_ROLES = ("near", "far")
"""Roles of the classes among which the nearness of a class is ranked."""

TableRow = Mapping[str, Any]
NEARNESS = "mean"
"""Column of the class table that determines the nearest ID class; greater is nearer."""


def nearer_ood_classes(rows: Sequence[TableRow]) -> tuple[list[int | None], int]:
    """Return the number of OOD classes nearer to ID for each row of a class table, and of all OOD classes.

    Nearness is the column ``mean``; a class without it has None, and never counts as nearer.
    """
    scores = sorted(r[NEARNESS] for r in rows if r["role"] in OOD_ROLES and r[NEARNESS] is not None)
    nearer = [None if r[NEARNESS] is None else len(scores) - bisect_right(scores, r[NEARNESS]) for r in rows]
    return nearer, sum(r["role"] in OOD_ROLES for r in rows)


def nearness_clauses(rows: Sequence[TableRow], taxonomy: Taxonomy) -> list[str]:
    """Return a clause for each row: its nearest ID class, and the share of OOD classes that are farther.

    The share, rounded down, is of the other OOD classes that have a distance.
    """
    names = {r["class_id"]: str(r["name"]).replace("_", " ") for r in rows if r["role"] == "id"}
    ood = sorted(r[NEARNESS] for r in rows if r["role"] in OOD_ROLES and r[NEARNESS] is not None)
    clauses = []
    for row in rows:
        if row[NEARNESS] is None:
            lacking = "no other ID class has a synset" if row["wnids"] else "no synset"
            clauses.append(f"{lacking}, so no distance to ID")
            continue
        clause = (
            f"nearest {'other ' if row['role'] == 'id' else ''}ID class {names[row['nearest_id']]} "
            f"({counted(row['distance'], 'edge')}, via {taxonomy.name(row['lcs'])})"
        )
        if others := len(ood) - (row["role"] in OOD_ROLES):
            farther = 100 * bisect_left(ood, row[NEARNESS]) // others
            clause += f", nearer than {farther}% of OOD classes"
        clauses.append(clause)
    return clauses


@dataclass(frozen=True)
class Inversion:
    """A far group with classes nearer to ID than the median class of a near group of the same source.

    Attributes
    ----------
    far, near : the groups.
    nearer : number of classes of the far group that are nearer.
    classes : number of its classes that have a distance.
    median : nearness of the near group's median class, in 0..1.
    nearest, value : the far group's nearest class, and its nearness.
    """

    far: str
    near: str
    nearer: int
    classes: int
    median: float
    nearest: str
    value: float

    def sentence(self) -> str:
        """Return the inversion in words, with the far group as subject."""
        verb = "is" if self.nearer == 1 else "are"
        return (
            f"{self.nearer:,} of {self.classes:,} classes {verb} nearer to ID than the median of the near "
            f"group {self.near} ({NEARNESS} {self.median:.3f}), the nearest {self.nearest} ({self.value:.3f})"
        )


def inversions(rows: Iterable[TableRow]) -> list[Inversion]:
    """Return the inversions among the rows of a class table, in the order of groups' names.

    Classes without a distance count on neither side.
    """
    near: dict[tuple[str, str], list[float]] = defaultdict(list)
    far: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        group = str(row["source"]), str(row["group"])
        if row[NEARNESS] is not None and row["role"] == "near":
            near[group].append(row[NEARNESS])
        elif row[NEARNESS] is not None and row["role"] == "far":
            far[group].append((row[NEARNESS], str(row["class_id"])))
    inverted = []
    for (source, far_group), classes in sorted(far.items()):
        for (near_source, near_group), values in sorted(near.items()):
            middle = median(values)
            nearer = sum(value > middle for value, _ in classes)
            if near_source == source and nearer:
                value, class_id = max(classes)
                inverted.append(
                    Inversion(far_group, near_group, nearer, len(classes), middle, class_id, value)
                )
    return inverted
