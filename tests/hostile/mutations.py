"""What hostile hands do to a file: to its place in the file system, its bytes, its text, its values."""

from __future__ import annotations

import copy
import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile import members
from tests.hostile.members import Members

Mutation = Callable[[Path, Random], None]

LONG = "A" * 2_000_000
ODD_TEXTS = (
    "",
    "..",
    "../../etc/passwd",
    "/dev/zero",
    "\x1b[31mred\x07",
    "a\nb",
    "\ud800",
    "NaN",
    "é" * 300,
    LONG,
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1 << 31, 1 << 63, 10**30, -(10**30), 1e308, 0.5, [], {}, [[]], [None], {"": 0}),
    *ODD_TEXTS,
)
ODD_TOKENS = (
    *("-1", "0", "9" * 30, "9" * 5000),
    *["1e999", "nan", "true", '""', '".."', '"/dev/zero"', "[]", "{}", "[[]]"],
    *("[" * 500 + "]" * 500, '{ a = "b" }', "1979-05-27", '"\\u001b[31m"'),
    *('"' + LONG + '"', "a." * 50_000 + "b"),
)


# -- any file ------------------------------------------------------------------------------------------------


def _instead(make: Callable[[Path], object]) -> Mutation:
    def mutate(path: Path, rng: Random) -> None:
        path.unlink()
        make(path)

    return mutate


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(6 << 30)


PLACES: dict[str, Mutation] = {
    "deleted": _instead(lambda path: None),
    "emptied": _instead(Path.touch),
    "a pipe": _instead(os.mkfifo),
    "a folder": _instead(Path.mkdir),
    "a link to /dev/zero": _instead(lambda path: path.symlink_to("/dev/zero")),
    "a link to nowhere": _instead(lambda path: path.symlink_to("nowhere")),
    "a link to itself": _instead(lambda path: path.symlink_to(path.name)),
    "six sparse GiB": _instead(_sparse),
}


Content = TypeVar("Content")
Changes = Mapping[str, Callable[[Content, Random], Content]]


def _each(
    read: Callable[[Path], Content], write: Callable[[Path, Content], object], changes: Changes[Content]
) -> dict[str, Mutation]:
    """Return changes of what a file holds as mutations of the file."""

    def mutation(change: Callable[[Content, Random], Content]) -> Mutation:
        return lambda path, rng: _ignore(write(path, change(read(path), rng)))

    return {what: mutation(change) for what, change in changes.items()}


def _ignore(_: object) -> None:
    return None


def _at(data: bytearray, rng: Random) -> int:
    # headers and footers are where formats keep their sizes
    edge = min(len(data), 400)
    choice = rng.random()
    if choice < 0.35:
        return rng.randrange(edge + 1)
    return len(data) - rng.randrange(edge + 1) if choice < 0.6 else rng.randrange(len(data) + 1)


def _flip(data: bytearray, rng: Random) -> bytearray:
    for _ in range(rng.choice((1, 1, 4, 32)) if data else 0):
        data[min(_at(data, rng), len(data) - 1)] ^= 1 << rng.randrange(8)
    return data


def _claim(data: bytearray, rng: Random) -> bytearray:
    at, width = _at(data, rng), rng.choice((2, 4, 8))
    data[at : at + width] = rng.choice((b"\xff" * width, b"\x7f" + b"\xff" * (width - 1), bytes(width)))
    return data


def _splice(data: bytearray, rng: Random) -> bytearray:
    start, to, length = _at(data, rng), _at(data, rng), rng.choice((1, 16, 300, 5000))
    data[to:to] = data[start : start + length] * rng.choice((1, 1, 50))
    return data


def _cut(data: bytearray, rng: Random) -> bytearray:
    return data[: _at(data, rng)]


def _hole(data: bytearray, rng: Random) -> bytearray:
    at = _at(data, rng)
    del data[at : at + rng.choice((1, 7, 512))]
    return data


BYTES = _each(
    lambda path: bytearray(path.read_bytes()),
    Path.write_bytes,
    {
        "bits flipped": _flip,
        "a size claimed": _claim,
        "bytes repeated": _splice,
        "cut off": _cut,
        "bytes taken out": _hole,
        "noise": lambda data, rng: bytearray(rng.randbytes(len(data) or 100)),
    },
)


# -- text ----------------------------------------------------------------------------------------------------


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8", errors="replace").split("\n")


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines), "utf-8", errors="surrogatepass")


def _no_utf8(path: Path, rng: Random) -> None:
    path.write_bytes(path.read_bytes() + b"\xff\xfe\x80")


def _token(lines: list[str], rng: Random) -> list[str]:
    wanted = [n for n, line in enumerate(lines) if "=" in line or ":" in line or "\t" in line or line]
    n = rng.choice(wanted or [0])
    for mark in ("=", ":", "\t"):
        if mark in lines[n]:
            pieces = lines[n].split(mark)
            pieces[rng.randrange(1, len(pieces))] = f" {rng.choice(ODD_TOKENS)}"
            lines[n] = mark.join(pieces)
            return lines
    lines[n] = rng.choice(ODD_TOKENS)
    return lines


def _swapped(lines: list[str], rng: Random) -> list[str]:
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return lines


def _dropped(lines: list[str], rng: Random) -> list[str]:
    del lines[rng.randrange(len(lines))]
    return lines


def _many(lines: list[str], rng: Random) -> list[str]:
    n = rng.randrange(len(lines))
    return [*lines[:n], *[lines[n]] * rng.choice((2, 3000)), *lines[n:]]


def _word(lines: list[str], rng: Random) -> list[str]:
    n = rng.randrange(len(lines))
    at = rng.randrange(len(lines[n]) + 1)
    lines[n] = (
        lines[n][:at] + rng.choice(('"', "]", "}", "\x00", "\x1b[2J", "é", "=", ",", "\\")) + lines[n][at:]
    )
    return lines


TEXT = {
    **_each(
        _lines,
        _write_lines,
        {
            "another value": _token,
            "lines swapped": _swapped,
            "a line dropped": _dropped,
            "a line repeated": _many,
            "a letter put in": _word,
        },
    ),
    "no UTF-8": _no_utf8,
}


# -- JSON ----------------------------------------------------------------------------------------------------


def _places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*way, key), *_places(item, (*way, key)))]


def _on_json(change: Callable[[Any, Any, Random], None]) -> Mutation:
    """Alter one place; ``change`` gets what holds it and its key."""

    def mutate(path: Path, rng: Random) -> None:
        whole = json.loads(path.read_text("utf-8"))
        if places := _places(whole):
            *way, last = rng.choice(places)
            holder = whole
            for step in way:
                holder = holder[step]
            change(holder, last, rng)
        path.write_text(json.dumps(whole), "utf-8")

    return mutate


def _set(holder: Any, key: Any, rng: Random) -> None:
    holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))


def _near(holder: Any, key: Any, rng: Random) -> None:
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int | float):
        holder[key] = value + rng.choice((-1, 1, 1000))
    elif isinstance(value, str):
        holder[key] = value[::-1] if value[::-1] != value else value + "x"
    elif isinstance(value, list):
        holder[key] = value[::-1] if value[::-1] != value else [*value, *value, 1]
    else:
        holder[key] = {"other": value}


def _nested(path: Path, rng: Random) -> None:
    path.write_text(
        rng.choice(("[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "1" * 5000, '"\\ud800"')), "utf-8"
    )


JSON: dict[str, Mutation] = {
    "an odd value": _on_json(_set),
    "a value nearby": _on_json(_near),
    "a key dropped": _on_json(lambda holder, key, rng: holder.__delitem__(key)),
    "nested without end": _nested,
}


# -- Parquet -------------------------------------------------------------------------------------------------


def _cell(table: pa.Table, rng: Random) -> pa.Table:
    if not len(table):
        return table
    n, row = rng.randrange(table.num_columns), rng.randrange(len(table))
    values = table.column(n).to_pylist()
    options = [None, *ODD_VALUES[:12], *(t for t in ODD_TEXTS if t != "\ud800"), b"\x00" * 32]
    for odd in rng.sample(options, len(options)):
        try:
            column = pa.array([*values[:row], odd, *values[row + 1 :]], table.schema.types[n])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
        return table.set_column(n, pa.field(table.column_names[n], column.type), column)
    return table


def _column(table: pa.Table, rng: Random) -> pa.Table:
    n = rng.randrange(table.num_columns)
    match rng.randrange(4):
        case 0:
            return table.remove_column(n)
        case 1:
            return table.append_column("more", pa.nulls(len(table)))
        case 2:
            return table.set_column(n, table.column_names[n], pa.array(range(len(table)), pa.float64()))
        case _:
            return table.rename_columns(
                [f"{c}\x1b" if c == table.column_names[n] else c for c in table.column_names]
            )


def _rows(table: pa.Table, rng: Random) -> pa.Table:
    match rng.randrange(3):
        case 0:
            return table.slice(0, rng.randrange(len(table) + 1))
        case 1:
            return pa.concat_tables([table.slice(0, 1), table])
        case _:
            return table.take(pa.array(rng.sample(range(len(table)), len(table)), pa.int64()))


def _bomb(path: Path, rng: Random) -> None:
    """A few kilobytes that announce five million rows, or thousands of long names."""
    schema = pq.read_schema(path)
    count, groups, text = rng.choice(((500_000, 10, "x"), (3_000, 1, LONG)))
    columns = []
    for field in schema:
        empty = pa.nulls(count, field.type)
        if pa.types.is_string(field.type):
            indices = pa.array(bytes(count), pa.int8())
            empty = pa.DictionaryArray.from_arrays(indices, pa.array([text]))
        columns.append(empty)
    table = pa.table(columns, names=schema.names)
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        for _ in range(groups):
            writer.write_table(table, row_group_size=count)


PARQUET = {
    **_each(
        pq.read_table,
        lambda path, table: pq.write_table(table, path),
        {"a cell altered": _cell, "a column altered": _column, "rows altered": _rows},
    ),
    "a bomb": _bomb,
}


# -- archives ------------------------------------------------------------------------------------------------


def _inside(path: Path, rng: Random) -> None:
    mutations = rng.choice([*_OF_SUFFIX.get(path.suffix, ()), BYTES])
    mutations[rng.choice(sorted(mutations))](path, rng)


def _altered(held: Members, rng: Random) -> Members:
    return members.altered(held, rng, _inside)


_MEMBERS: Changes[Members] = {
    "a member altered": _altered,
    "a member renamed": members.renamed,
    "a member repeated": members.repeated,
    "a member left out": members.left_out,
}
TAR = _each(members.of_tar, members.write_tar, _MEMBERS)
ZIP = _each(members.of_zip, members.write_zip, _MEMBERS)
GZIP = _each(
    lambda path: [("", gzip.decompress(path.read_bytes()))],
    lambda path, held: path.write_bytes(gzip.compress(held[0][1])),
    {"what is packed altered": _altered},
)

_OF_SUFFIX = {
    ".json": (JSON, TEXT),
    ".parquet": (PARQUET,),
    ".toml": (TEXT,),
    ".tsv": (TEXT,),
    ".txt": (TEXT,),
    ".csv": (TEXT,),
    ".tar": (TAR,),
    ".zip": (ZIP,),
    ".gz": (GZIP,),
}


def mutate(path: Path, rng: Random) -> str:
    """Alter a file in one way that fits its kind; return in words how."""
    groups = (*_OF_SUFFIX.get(path.suffix, ()),) or (BYTES,)
    mutations = rng.choices((*groups, BYTES, PLACES), (*[6 / len(groups)] * len(groups), 2, 1))[0]
    what = rng.choice(sorted(mutations))
    mutations[what](path, rng)
    return what
