"""Every field of a file, altered one at a time: values of JSON, columns and cells of tables, bytes."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DELETED, BYTES, FIELDS, COLUMNS, CELLS = (
    "files deleted",
    "bytes of files",
    "fields of JSON",
    "columns and rows of tables",
    "cells of tables",
)
KINDS = (DELETED, BYTES, FIELDS, COLUMNS, CELLS)
FLIPPED = 4
"""Seeded places of each file at which a bit is flipped, beside its first and its last byte."""


@dataclass(frozen=True)
class Alteration:
    """What is done to a file.

    Attributes
    ----------
    kind : one of `KINDS`.
    what : words for it.
    alter : the path of a copy -> nothing; it may be gone afterwards.
    """

    kind: str
    what: str
    alter: Callable[[Path], object]


def alterations(path: Path, free: tuple[str, ...], rng: Random) -> Iterator[Alteration]:
    """Yield every alteration of a file, by what it holds, and those of any file."""
    yield Alteration(DELETED, "deleted", Path.unlink)
    data = path.read_bytes()
    if data:
        yield Alteration(BYTES, "emptied", lambda p: p.write_bytes(b""))
        yield Alteration(BYTES, "cut off", lambda p: p.write_bytes(data[:-1]))
        yield Alteration(BYTES, "cut in the middle", lambda p: p.write_bytes(data[: len(data) // 2]))
    yield Alteration(BYTES, "a byte appended", lambda p: p.write_bytes(data + b"\0"))
    offsets = {0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(FLIPPED))} if data else set()
    for offset in sorted(offsets):
        yield Alteration(BYTES, f"byte {offset} flipped", _flip(data, offset, 1 << rng.randrange(8)))
    if path.suffix == ".json":
        yield from _of_json(json.loads(data), free)
    if path.suffix == ".parquet":
        yield from _of_table(pq.read_table(path))


def reads_the_same(path: Path, altered: Path) -> bool:
    """Return whether both files have the same values, up to a last newline or a byte of padding."""
    try:
        if path.suffix == ".json":
            return bool(json.loads(path.read_bytes()) == json.loads(altered.read_bytes()))
        if path.suffix != ".parquet":
            return False
        return bool(pq.read_table(path).equals(pq.read_table(altered), check_metadata=True))
    except (OSError, ValueError, pa.ArrowException):
        return False


def _flip(data: bytes, offset: int, bit: int) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data[:offset] + bytes([data[offset] ^ bit]) + data[offset + 1 :])


def _of_json(value: Any, free: tuple[str, ...]) -> Iterator[Alteration]:
    def writing(changed: Any) -> Callable[[Path], object]:
        return lambda path: path.write_text(json.dumps(changed), "utf-8")

    for keys in _key_paths(value, free):
        *parents, last = keys
        for change in ("altered", "dropped"):
            changed = parent = copy.deepcopy(value)
            for key in parents:
                parent = parent[key]
            if change == "dropped":
                del parent[last]
            else:
                parent[last] = forged(parent[last])
            yield Alteration(FIELDS, f"{'.'.join(map(str, keys))} {change}", writing(changed))
    if isinstance(value, dict):
        yield Alteration(FIELDS, "a key added", writing({**value, "more": 1}))


def _key_paths(value: Any, free: tuple[str, ...], parents: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys that lead to every value of a JSON object; of a list, to its first and its last item."""
    if isinstance(value, dict):
        items = [(key, value[key]) for key in value if key not in free]
    elif isinstance(value, list):
        items = [(n, value[n]) for n in sorted({0, len(value) - 1}) if value]
    else:
        return
    for key, item in items:
        yield (*parents, key)
        yield from _key_paths(item, free, (*parents, key))


def forged(value: Any) -> Any:
    """Return another value of the same kind, as a careful forger would write."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1") if value else "x"
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    if isinstance(value, list):
        return value[:-1] if value else ["x"]
    if isinstance(value, dict):
        return dict(list(value.items())[:-1]) if value else {"x": 1}
    return 1


def _of_table(table: pa.Table) -> Iterator[Alteration]:
    metadata = table.schema.metadata

    def writing(changed: pa.Table) -> Callable[[Path], object]:
        return lambda path: pq.write_table(changed.replace_schema_metadata(metadata), path)

    wider = table.append_column("more", pa.array([1] * len(table)))
    yield Alteration(COLUMNS, "a column added", writing(wider))
    for number, field in enumerate(table.schema):
        yield Alteration(COLUMNS, f"column {field.name} dropped", writing(table.remove_column(number)))
    if not len(table):
        return
    yield Alteration(COLUMNS, "the last row dropped", writing(table.slice(0, len(table) - 1)))
    yield Alteration(COLUMNS, "the first row twice", writing(pa.concat_tables([table.slice(0, 1), table])))
    if len(table) > 1:
        turned = pa.concat_tables([table.slice(1), table.slice(0, 1)])
        yield Alteration(COLUMNS, "the first row last", writing(turned))
    for number, field in enumerate(table.schema):
        values = table[field.name].to_pylist()
        filled = [row for row, value in enumerate(values) if value is not None]
        for row in sorted({*filled[:1], *filled[-1:]} or {0}):
            for change, new in (("altered", forged(values[row])), ("emptied", None)):
                if new == values[row]:
                    continue
                with contextlib.suppress(pa.ArrowException, TypeError, OverflowError):
                    column = pa.array([*values[:row], new, *values[row + 1 :]], field.type)
                    nullable = pa.field(field.name, field.type, True)
                    yield Alteration(
                        CELLS,
                        f"{field.name} of row {row} {change}",
                        writing(table.set_column(number, nullable, column)),
                    )
