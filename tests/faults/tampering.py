"""Every field of every file that we write, altered one at a time: the check has to refuse each."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.disturbing import Trial
from tests.faults.subjects import PROGRAMS, Subject, content, run

Alteration = tuple[str, Callable[[Path], None]]
"""Words for it, and what does it to a file."""


def tamper(subject: Subject, folder: Path) -> Iterator[Trial]:
    """Alter everything that ``subject`` writes, one alteration at a time."""
    whole = folder / "whole"
    whole.mkdir(parents=True)
    finished = run(subject.make(whole))
    assert finished.returncode == 0, (subject.name, finished.stderr)
    accepted = check(subject.check(whole))
    assert accepted[0] == 0, (subject.name, accepted)
    out = folder / "altered"
    for path in sorted((whole / subject.output).rglob("*")):
        if not path.is_file() or path.suffix == ".lock":
            continue
        relative = path.relative_to(whole)
        for what, alter in alterations(path, subject.free):
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(whole, out)
            alter(out / relative)
            if _reads_the_same(path, out / relative):
                continue  # a byte of padding, a last newline: nobody who reads the file sees another value
            working = subject.working is not None and subject.working in relative.parts
            code, said = check(subject.make(out) if working else subject.check(out))
            wrong = "" if code in (1, 2, 3) else f"exit code {code}"
            if working and code == 0:
                wrong = "" if _finished(subject, out) == _finished(subject, whole) else "other bytes"
            if "Traceback" in said:
                wrong = f"a traceback: {said.strip().splitlines()[-1][:100]}"
            yield Trial(subject.name, "altered", wrong and f"{relative}: {what}: {wrong}")


def _finished(subject: Subject, folder: Path) -> dict[str, str]:
    """Return the content of the output without the working folder."""
    found = content(folder / subject.output)
    return {path: digest for path, digest in found.items() if Path(path).parts[0] != subject.working}


def _reads_the_same(one: Path, other: Path) -> bool:
    try:
        if one.suffix == ".json":
            return bool(json.loads(one.read_bytes()) == json.loads(other.read_bytes()))
        if one.suffix != ".parquet":
            return False
        return bool(pq.read_table(one).equals(pq.read_table(other), check_metadata=True))
    except (OSError, ValueError, pa.ArrowException):
        return False


def check(words: list[str]) -> tuple[int, str]:
    """Run a checking command in this process, which is quick, and return its exit code and words."""
    import importlib

    from wordnet_splits.cli.runner import run as run_here

    app = importlib.import_module(PROGRAMS[words[0]]).app
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = run_here(app, words[1:], words[0])
        except Exception as error:
            return 1, f"Traceback\n{type(error).__name__}: {error}"
    return code, said.getvalue()


def alterations(path: Path, free: tuple[str, ...]) -> Iterator[Alteration]:
    """Yield every alteration of a file, by its kind, and those of any file."""
    yield "deleted", Path.unlink
    yield "emptied", lambda p: p.write_bytes(b"")
    size = path.stat().st_size
    for place in sorted({0, size // 3, size // 2, size - 1}):
        if size:
            yield f"byte {place} flipped", _flip(place)
    if size:
        yield "cut off", lambda p: os.truncate(p, size - 1)
    if path.suffix == ".json":
        yield from _of_json(json.loads(path.read_text("utf-8")), free)
    if path.suffix == ".parquet":
        yield from _of_table(pq.read_table(path))


def _flip(place: int) -> Callable[[Path], None]:
    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[place] ^= 1
        path.write_bytes(bytes(data))

    return flip


def _of_json(value: Any, free: tuple[str, ...]) -> Iterator[Alteration]:
    for place in places(value, free):
        *way, last = place
        name = ".".join(map(str, place))

        def altered(path: Path, way: list[Any] = way, last: Any = last, drop: bool = False) -> None:
            data = copy.deepcopy(value)
            holder = data
            for step in way:
                holder = holder[step]
            if drop:
                del holder[last]
            else:
                holder[last] = other(holder[last])
            path.write_text(json.dumps(data), "utf-8")

        yield f"{name} altered", altered
        yield f"{name} dropped", lambda path, f=altered: f(path, drop=True)  # type: ignore[misc]
    if isinstance(value, dict):
        yield "a key added", lambda path: path.write_text(json.dumps({**value, "more": 1}), "utf-8") and None


def places(value: Any, free: tuple[str, ...], way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value of a JSON object; of a list, to its first and its last item."""
    if isinstance(value, dict):
        items = [(key, value[key]) for key in value if key not in free]
    elif isinstance(value, list):
        items = [(n, value[n]) for n in sorted({0, len(value) - 1}) if value]
    else:
        return
    for key, item in items:
        yield (*way, key)
        yield from places(item, free, (*way, key))


def other(value: Any) -> Any:
    """Return another value of the same kind: what a careful forger would write."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1") if value else "x"
    if isinstance(value, list):
        return value[:-1] if value else ["x"]
    if isinstance(value, dict):
        return dict(list(value.items())[:-1]) if value else {"x": 1}
    return 1


def _of_table(table: pa.Table) -> Iterator[Alteration]:
    metadata = table.schema.metadata

    def write(changed: pa.Table) -> Callable[[Path], None]:
        return lambda path: pq.write_table(changed.replace_schema_metadata(metadata), path)

    yield "a column added", write(table.append_column("more", pa.array([1] * len(table))))
    if not len(table):
        return
    yield "the last row dropped", write(table.slice(0, len(table) - 1))
    yield "the first row twice", write(pa.concat_tables([table.slice(0, 1), table]))
    for number, field in enumerate(table.schema):
        yield f"column {field.name} dropped", write(table.remove_column(number))
        values = table[field.name].to_pylist()
        row = next((n for n, v in enumerate(values) if v is not None), None)
        if row is None:
            continue
        for what, new in (("altered", _other_cell(values[row])), ("emptied", None)):
            with contextlib.suppress(pa.ArrowException, TypeError, OverflowError):
                column = pa.array([*values[:row], new, *values[row + 1 :]], field.type)
                nullable = pa.field(field.name, field.type, True)
                yield f"{field.name} of row {row} {what}", write(table.set_column(number, nullable, column))


def _other_cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    return other(value)
