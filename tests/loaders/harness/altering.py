"""Every way to alter a JSON file by one value: for tests that nothing of it can be altered unnoticed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.text_formats import CHECKSUM


def alterations(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Yield (what, path, new value) of every leaf changed, mistyped or emptied, and every key removed."""
    if isinstance(value, dict):
        for key in value:
            yield f"without {key}", (*path, key), REMOVED
            yield from alterations(value[key], (*path, key))
        yield "with a stray key", (*path, "stray"), 1
    elif isinstance(value, list):
        yield "reversed", path, value[::-1] if value[::-1] != value else [*value, *value, 0]
        yield "emptied", path, [] if value else [0]
        for number, item in enumerate(value[:2]):
            yield from alterations(item, (*path, number))
    else:
        yield "of another type", path, {"of": "another type"}
        yield "changed", path, changed(value)
        if value is not None:
            yield "null", path, None


REMOVED = object()


def changed(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if value is None:
        return "something"
    return f"{value[:-1]}{'1' if value[-1:] == '0' else '0'}"


def altered(document: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a document with one value replaced, or removed."""
    copied = copy.deepcopy(document)
    place = copied
    for key in path[:-1]:
        place = place[key]
    if new is REMOVED:
        del place[path[-1]]
    else:
        place[path[-1]] = new
    return copied


def assert_no_alteration_passes(file: Path, read: Callable[[], object]) -> int:
    """Alter every field of a sealed JSON file, one at a time; each must be refused in one line naming it."""
    text = file.read_text()
    document = json.loads(text)
    read()
    count = 0
    for what, path, new in alterations(document):
        count += 1
        file.write_text(json.dumps(altered(document, path, new)))
        line = refusal(read)
        assert line is not None, f"{file.name}: {path} {what} was accepted"
        assert file.name in line, (what, path, line)
        assert line.isprintable(), line
    file.write_text(text)
    read()
    return count


def refusal(read: Callable[[], object]) -> str | None:
    """Return the one line that reading ends in, None where it ends well."""
    try:
        read()
    except SplitsError as error:
        return str(error)
    return None


def reseal(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Alter a sealed file as who knows how the checksum is made."""
    document = json.loads(file.read_text())
    document.pop(CHECKSUM)
    change(document)
    file.write_text(json.dumps({**document, CHECKSUM: digest_json(document)}))


def first(column: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """Return a change of the first row of a table."""

    def change(table: pa.Table) -> pa.Table:
        field = table.schema.field(column)
        values = pa.array([value, *table[column].to_pylist()[1:]], field.type)
        return table.set_column(table.schema.names.index(column), field, values)

    return change
