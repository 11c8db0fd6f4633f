"""The class table and the image tables of a manifest: Arrow schemas, row order, checks, fingerprints.

A fingerprint is the SHA-256 over the rows of a table, independent of Parquet, pyarrow and file order. A row
is ``json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)`` plus a newline, digests in
lower-case hex, rows in table order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.manifest.metadata import GroupRow

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

CLASS_IDENTITY = ("source", "class_id", "role", "group", "label")
IMAGE_IDENTITY = ("source", "image_id", "class_id", "role", "label", "view")
PIXEL_IDENTITY = (*IMAGE_IDENTITY, "digest")
EXPLANATION = [name for name in CLASS_SCHEMA.names if name not in ("role", "group", "label")]
EVALUATED = ("group", "split", "role", "source", "view")
FLOAT_DIGITS = 9
BATCH_ROWS = 65536
_ESCAPED = np.isin(np.arange(256), [*range(32), ord('"'), ord("\\")])
"""Bytes that JSON escapes."""
_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint16)


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


def row_line(row: Mapping[str, Any]) -> str:
    """Return a row as the text that is hashed."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def rows_fingerprint(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the fingerprint of rows given as mappings."""
    state = hashlib.sha256()
    for row in rows:
        state.update(row_line(row).encode())
    return state.hexdigest()


def classes_fingerprint(table: pa.Table) -> str:
    """Return the fingerprint of the columns of a class table that identify classes and roles."""
    names = sorted(CLASS_IDENTITY)
    line = "{" + ",".join(f'"{name}":%s' for name in names) + "}\n"
    columns = (map(_json_cell, table[name].to_pylist()) for name in names)
    return hashlib.sha256("".join(line % cells for cells in zip(*columns, strict=True)).encode()).hexdigest()


def _json_cell(value: str | int | None) -> str:
    """Return the JSON text of a cell, as `row_line` writes it."""
    if isinstance(value, str):
        return encode_basestring(value)
    return "null" if value is None else str(value)


def explanation_fingerprint(table: pa.Table) -> str:
    """Return the fingerprint of a class table's evidence and distances, floats rounded to 9 digits."""
    return rows_fingerprint(_rounded(row) for row in table.select(EXPLANATION).to_pylist())


def evaluation_fingerprint(recipe: Mapping[str, Any], groups: Iterable[Mapping[str, Any]]) -> str:
    """Return the fingerprint of the inputs of an evaluation that are not in the tables.

    Parameters
    ----------
    recipe : the recipe in ``manifest.json``; its keys ``transforms`` and ``normalise`` are used.
    groups : the rows ``groups`` of ``manifest.json``, in order; the columns `EVALUATED` are used.
    """
    channels = recipe.get("normalise") or {}
    settings = {
        "transforms": recipe.get("transforms") or {},
        "normalise": {name: [float(value) for value in values] for name, values in channels.items()},
    }
    return rows_fingerprint([settings, *({name: row[name] for name in EVALUATED} for row in groups)])


@dataclass(frozen=True)
class ImagePrints:
    """Fingerprints of image rows; ``pixels`` is None if a digest is unknown."""

    rows: int
    images: str
    pixels: str | None


def images_fingerprint(tables: Iterable[pa.Table]) -> ImagePrints:
    """Return the fingerprints of image tables in sequence."""
    return part_fingerprints(tables)[1]


def part_fingerprints(tables: Iterable[pa.Table]) -> tuple[list[ImagePrints], ImagePrints]:
    """Return the fingerprints of each image table, and of all in sequence, in one pass."""
    whole, parts = _State(), []
    for table in tables:
        part = _State()
        for batch in table.select(list(PIXEL_IDENTITY)).to_batches(max_chunksize=BATCH_ROWS):
            images, pixels = _lines(batch)
            for state in (part, whole):
                state.add(batch.num_rows, images, pixels)
        parts.append(part.prints())
    return parts, whole.prints()


class _State:
    def __init__(self) -> None:
        self._rows, self._digested = 0, True
        self._images, self._pixels = hashlib.sha256(), hashlib.sha256()

    def add(self, rows: int, images: memoryview, pixels: memoryview | None) -> None:
        self._rows += rows
        self._images.update(images)
        if pixels is None:
            self._digested = False
        else:
            self._pixels.update(pixels)

    def prints(self) -> ImagePrints:
        pixels = self._pixels.hexdigest() if self._digested else None
        return ImagePrints(self._rows, self._images.hexdigest(), pixels)


def _lines(batch: pa.RecordBatch) -> tuple[memoryview, memoryview | None]:
    """Return the rows of a batch as the hashed text, in UTF-8: without and with their digests.

    Arrow writes it, since json.dumps takes a minute on a million rows; a test compares the two on every
    character.
    """
    if not batch.num_rows:
        return memoryview(b""), memoryview(b"")
    digested = not batch.column("digest").null_count
    columns = {n: _as_json(batch.column(n)) for n in (PIXEL_IDENTITY if digested else IMAGE_IDENTITY)}
    return _joined(columns, IMAGE_IDENTITY), _joined(columns, PIXEL_IDENTITY) if digested else None


def _joined(columns: Mapping[str, pa.Array], names: Sequence[str]) -> memoryview:
    pieces: list[Any] = []
    for n, name in enumerate(sorted(names)):
        pieces += [("," if n else "{") + f'"{name}":', columns[name]]
    return memoryview(pc.binary_join_element_wise(*pieces, "}\n", "").buffers()[2])


def _as_json(column: pa.Array) -> pa.Array:
    """Return a column's values as JSON, as strings."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    if pa.types.is_fixed_size_binary(column.type):
        raw = np.frombuffer(b"".join(column.to_pylist()), np.uint8)
        offsets = np.arange(len(column) + 1, dtype=np.int32) * (2 * column.type.byte_width)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.take(_HEX, raw))]
        column = pa.Array.from_buffers(pa.string(), len(column), buffers)
    elif _ESCAPED[_utf8(column)].any():
        return pa.array([encode_basestring(text) for text in column.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', column, '"', "")


def _utf8(column: pa.StringArray) -> npt.NDArray[np.uint8]:
    """Return the bytes of a string column's values; a slice shares a larger buffer."""
    _, offsets, text = column.buffers()
    ends = np.frombuffer(offsets, np.int32)
    return np.frombuffer(text or b"", np.uint8)[ends[column.offset] : ends[column.offset + len(column)]]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, FLOAT_DIGITS) + 0.0
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return value
