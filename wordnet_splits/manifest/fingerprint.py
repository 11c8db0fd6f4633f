"""Fingerprints: SHA-256 over the rows of a table, independent of Parquet, pyarrow and file order.

A row is ``json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)`` plus a newline,
digests in lower-case hex, rows in table order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

from wordnet_splits.manifest.tables import CLASS_SCHEMA

CLASS_IDENTITY = ("source", "class_id", "role", "group", "label")
IMAGE_IDENTITY = ("source", "image_id", "class_id", "role", "label", "view")
PIXEL_IDENTITY = (*IMAGE_IDENTITY, "digest")
EXPLANATION = [name for name in CLASS_SCHEMA.names if name not in ("role", "group", "label")]
FLOAT_DIGITS = 9
BATCH_ROWS = 65536


def row_line(row: Mapping[str, Any]) -> str:
    """Return one row as the text that is hashed."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def of_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the fingerprint of rows given as mappings."""
    state = hashlib.sha256()
    for row in rows:
        state.update(row_line(row).encode())
    return state.hexdigest()


def of_classes(table: pa.Table) -> str:
    """Return the fingerprint of a class table: what decides membership, not why."""
    return of_rows(table.select(list(CLASS_IDENTITY)).to_pylist())


def of_explanation(table: pa.Table) -> str:
    """Return the fingerprint of a class table's evidence and distances, floats rounded to 9 digits."""
    return of_rows(_rounded(row) for row in table.select(EXPLANATION).to_pylist())


def of_images(tables: Iterable[pa.Table], *, pixels: bool = False) -> str | None:
    """Return the fingerprint of image tables in sequence.

    With ``pixels`` the digests count too, and the result is None when one is unknown.
    """
    state = hashlib.sha256()
    for table in tables:
        if pixels and table.column("digest").null_count:
            return None
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            state.update(_image_lines(batch, pixels).encode())
    return state.hexdigest()


def _image_lines(batch: pa.RecordBatch, pixels: bool) -> str:
    """Return the lines of one batch.

    Written out rather than through json.dumps, which takes a minute on a million rows; a test holds the
    two equal on every character.
    """
    columns = [_encoded(batch.column(c)) for c in ("class_id", "image_id", "role", "source", "view")]
    labels = batch.column("label").to_pylist()
    if not pixels:
        return "".join(
            f'{{"class_id":{c},"image_id":{i},"label":{n},"role":{r},"source":{s},"view":{v}}}\n'
            for (c, i, r, s, v), n in zip(zip(*columns, strict=True), labels, strict=True)
        )
    digests = [d.hex() for d in batch.column("digest").to_pylist()]
    return "".join(
        f'{{"class_id":{c},"digest":"{d}","image_id":{i},"label":{n},"role":{r},"source":{s},"view":{v}}}\n'
        for (c, i, r, s, v), n, d in zip(zip(*columns, strict=True), labels, digests, strict=True)
    )


def _encoded(column: pa.Array) -> list[str]:
    """Return a string column as JSON strings, each distinct value encoded once."""
    coded = column.dictionary_encode()
    words = [encode_basestring(w) for w in coded.dictionary.to_pylist()]
    return [words[k] for k in coded.indices.to_pylist()]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, FLOAT_DIGITS) + 0.0
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return value
