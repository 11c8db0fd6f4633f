"""The one place where files that somebody else may have made are opened: bounded before they are parsed.

A file is opened only if it is a regular file (no pipe, device or folder, which hang or never end) of at most
so many bytes; text is judged for nesting and for absurd numbers before a parser sees it; a table for the rows
and bytes that its own header announces before any of them is taken. Everything that does not hold is the
caller's kind of error, in one line.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from wordnet_splits.base.errors import (
    DataError,
    SourceError,
    SplitsError,
    UnsafeDataError,
    check_memory,
)

MiB, GiB = 1 << 20, 1 << 30

LARGEST_TEXT: Final = 16 * MiB
"""Bytes of a JSON or TSV file, which parsed take up to 30 times as many; our largest has 3 MiB."""
LARGEST_CSV: Final = 1 * GiB
"""Bytes of a list of images; 14 million of them take 0.8 GiB."""
LARGEST_TOML: Final = 4 * MiB
"""Bytes of a TOML file, up to 120 times as many parsed; all classes of ImageNet-21K listed have 0.3 MiB."""
DEEPEST: Final = 64
"""Levels of nesting; ours have at most eight."""
LONGEST_NUMBER: Final = 40
"""Digits; a 64-bit integer has 20, a float's shortest form 24."""
LARGEST_TABLE: Final = 8 * GiB
"""Bytes that a Parquet file may announce to expand to; 14 million rows of ours take 2 GiB."""
LARGEST_ROW_GROUP: Final = 512 * MiB
LARGEST_PICTURE: Final = 128 * MiB
"""Bytes of an image file; ImageNet's largest has 15 MB."""
LONGEST_NAME: Final = 1024
"""Bytes of a name inside an archive or a table; a file system allows 255."""
MOST_ROWS: Final = 100_000_000
SMALL_TABLE: Final = 256 * MiB
FEW_ROWS: Final = 1_000_000
DENSEST: Final = 64
"""Times that a larger table may expand; ours do 30."""
MOST_ROWS_A_BYTE: Final = 4
"""Of a table of more rows than a few; ours have 1."""

DELIMITERS: Final = {",": "commas", "\t": "tabs", ";": "semicolons"}
"""What stands between the columns of tables of text, and how it is called."""
HALF_A_PAIR: Final = "holds half of a surrogate pair, which is no character"

_PIECE: Final = MiB  # bytes read at once of a stream whose length is not known
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_OPENING: Final = re.compile(r"[\[{]")
_DIGITS: Final = re.compile(rf"[0-9_]{{{LONGEST_NUMBER + 1},}}")
_DOTTED: Final = re.compile(rf"^[^=\n#]*?(?:\.[^=\n#.]*){{{DEEPEST},}}", re.MULTILINE)

ErrorType = type[SplitsError]
Validated = TypeVar("Validated", bound=BaseModel)


@contextmanager
def opened(path: Path, *, largest: int, error: ErrorType = DataError) -> Iterator[BufferedReader]:
    """Yield ``path`` open for reading, if it is a regular file of at most ``largest`` bytes.

    Raises
    ------
    error : absent, not a regular file, too large, or unreadable.
    """
    try:
        # without O_NONBLOCK, opening a pipe waits for ever for somebody to write to it
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as cause:
        raise error("no such file", where=str(path)) from cause
    except (OSError, ValueError) as cause:  # ValueError: a null byte in the name
        raise error(f"cannot be read: {_reason(cause)}", where=str(path)) from cause
    _check_regular(descriptor, path, largest, error)
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file
        except OSError as cause:
            raise error(f"cannot be read: {_reason(cause)}", where=str(path)) from cause


def sha256_of(path: Path, *, largest: int, error: ErrorType = DataError) -> str:
    """Return the SHA-256 of a file's bytes, in hex. Raises as `opened`."""
    with opened(path, largest=largest, error=error) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_regular(path: Path, *, largest: int, error: ErrorType = DataError) -> int:
    """Return the size of a file that a library is to open by its name. Raises as `opened`."""
    with opened(path, largest=largest, error=error) as file:
        return os.fstat(file.fileno()).st_size


def read_picture(path: Path | str, root: Path) -> bytes:
    """Return an image file's bytes; a link is followed where it stays inside ``root``.

    Raises
    ------
    OSError : as the system says it; an image that is not there is the caller's to name.
    SourceError : not a regular file, or more than `LARGEST_PICTURE` bytes.
    UnsafeDataError : a link that leaves ``root``.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))
    except OSError as cause:
        if cause.errno not in (errno.ELOOP, errno.EMLINK) or not Path(path).is_symlink():
            raise
        check_link(path, root)
        descriptor = os.open(path, flags)
    size = _check_regular(descriptor, path, LARGEST_PICTURE, SourceError)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(size)  # asked for the most there may be, it would make room for as much each time


def _check_regular(descriptor: int, path: Path | str, largest: int, error: ErrorType) -> int:
    found = os.fstat(descriptor)
    what = None
    if not stat.S_ISREG(found.st_mode):
        what = "is not a regular file"
    elif found.st_size > largest:
        what = f"has {found.st_size:,} bytes, at most {largest:,} are read"
    if what is not None:
        os.close(descriptor)
        raise error(what, where=printable(path))
    return found.st_size


def check_link(path: Path | str, root: Path) -> None:
    """Refuse a symbolic link that leaves ``root`` or makes a loop; FileNotFoundError if it leads nowhere."""
    try:
        target = Path(path).resolve(strict=True)
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as cause:  # RuntimeError: a circle of links, before Python 3.13
        raise unreadable("the symbolic link", str(path), cause) from cause
    if Path(path).parent.resolve().is_relative_to(target):
        raise SourceError(
            "a symbolic link makes a loop", where=str(path), hint="remove it: it leads to a folder above it"
        )
    if not target.is_relative_to(root):
        raise UnsafeDataError(
            f"a symbolic link leads out of the root, to {target}",
            where=str(path),
            hint="links are followed only inside the root: give a root that holds both ends",
        )


def unreadable(what: str, where: str, cause: BaseException) -> SourceError:
    """Build the error for a folder or link of a dataset that the system does not let us read."""
    if isinstance(cause, PermissionError):
        return SourceError(f"{what} cannot be read: permission denied", where=where, hint="check its rights")
    if isinstance(cause, RuntimeError) or getattr(cause, "errno", None) == errno.ELOOP:
        return SourceError(f"{what} makes a loop", where=where, hint="remove the link that leads back")
    return SourceError(f"{what} cannot be read: {_reason(cause)}", where=where)


def read_bytes(path: Path, *, largest: int, error: ErrorType = DataError) -> bytes:
    """Return a whole file. Raises as `opened`."""
    with opened(path, largest=largest, error=error) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # `read` makes room for all that it is asked for


def pieces(stream: io.BufferedIOBase, most: int) -> Iterator[bytes]:
    """Yield what a stream holds, at most ``most`` bytes; memory follows what is there, not what is asked for.

    One ``read`` of that many bytes would make room for all of them first.
    """
    while most > 0 and (piece := stream.read(min(most, _PIECE))):
        most -= len(piece)
        yield piece


def read_text(path: Path, *, largest: int = LARGEST_TEXT, error: ErrorType = DataError) -> str:
    """Return a whole text file. Raises as `opened`, and where it is not UTF-8."""
    try:
        return read_bytes(path, largest=largest, error=error).decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise error(f"is not UTF-8 text at byte {cause.start}", where=str(path)) from None


def csv_rows(path: Path, *, delimiter: str = ",", error: ErrorType = DataError) -> Iterator[list[str]]:
    """Yield the cells of each row of a CSV file of several columns.

    Raises
    ------
    error : as `opened`; it is no CSV in UTF-8, or its first row is separated by something else.
    """
    text = io.StringIO(read_text(path, largest=LARGEST_CSV, error=error), newline="")
    try:
        for number, cells in enumerate(csv.reader(text, strict=True, delimiter=delimiter)):
            if number == 0:
                check_delimiter(cells, delimiter, where=str(path), error=error)
            yield cells
    except csv.Error as cause:
        raise error(f"is not CSV: {cause}", where=str(path)) from None


def check_delimiter(
    cells: Sequence[str], delimiter: str, *, where: str, error: ErrorType = DataError
) -> None:
    """Refuse a first row that is one cell, as read by one delimiter, and several by another."""
    other = next(
        (mark for mark in DELIMITERS if mark != delimiter and len(cells) == 1 and mark in cells[0]), ""
    )
    if other:
        raise error(
            f"its columns are separated by {DELIMITERS[other]}, not by {DELIMITERS[delimiter]}",
            where=where,
            hint="save it with commas as .csv, or with tabs as .tsv",
        )


def parse_json(text: str, *, where: str, error: ErrorType = DataError) -> Any:
    """Return what a JSON text holds.

    Raises
    ------
    error : not JSON, nested deeper than `DEEPEST`, a number of more than `LONGEST_NUMBER` digits, or a text
        with half of a surrogate pair.
    """
    _bounded(text, where, error)
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as cause:
        raise error(f"is not JSON: {cause}", where=where) from None
    if holds_half_a_pair(text, value):
        raise error(HALF_A_PAIR, where=where)
    return value


def holds_half_a_pair(text: str, value: object, start: int = 0, end: int = sys.maxsize) -> bool:
    r"""Say whether the value of a JSON text, from ``start`` to ``end``, has a lone surrogate (``\ud800``).

    Such a text is in no file of UTF-8, so that nothing that names it could be written. The surrogates by
    which Python names the bytes of a path that it cannot decode (``\udc80`` to ``\udcff``) are let through.
    """
    if text.find(r"\ud", start, end) < 0 and text.find(r"\uD", start, end) < 0:
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return True
    return False


def read_json(path: Path, *, error: ErrorType = DataError) -> Any:
    """Return what a JSON file holds. Raises as `read_text` and `parse_json`."""
    return parse_json(read_text(path, error=error), where=str(path), error=error)


def parse_toml(text: str, *, where: str, error: ErrorType = DataError) -> dict[str, Any]:
    """Return what a TOML text holds. Raises as `parse_json`."""
    _bounded(text, where, error)
    if (deep := _DOTTED.search(_STRING.sub('""', text))) is not None:
        line = text.count("\n", 0, deep.start()) + 1
        raise error(f"line {line}: a key of more than {DEEPEST} parts", where=where)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as cause:
        raise error(f"not valid TOML: {cause}", where=where) from None


def read_toml(path: Path, *, error: ErrorType = DataError) -> dict[str, Any]:
    """Return what a TOML file holds. Raises as `read_text` and `parse_toml`."""
    return parse_toml(read_text(path, largest=LARGEST_TOML, error=error), where=str(path), error=error)


def validated(
    model: type[Validated],
    value: object,
    *,
    where: str,
    error: ErrorType = DataError,
    hint: str | None = None,
) -> Validated:
    """Return ``value`` as ``model``, which is the one schema of the file that it comes from.

    Raises
    ------
    error : a key that is absent, unknown or holds something else; the first one is named.
    """
    try:
        return model.model_validate(value)
    except ValidationError as cause:
        first = cause.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "the top"
        raise error(f"is malformed at {printable(key)}: {first['msg']}", where=where, hint=hint) from None
    except RecursionError:
        raise error("is nested too deeply", where=where, hint=hint) from None


def below(folder: Path, relative: str) -> Path:
    """Return ``folder/relative`` if it lies below ``folder`` after every link is followed.

    In the cache of `huggingface_hub` files are links from ``snapshots/COMMIT`` to the ``blobs`` of the same
    repository: these may be followed.

    Raises
    ------
    DataError : an absolute path, one that leaves the folder, or no path at all.
    """
    try:
        path = (folder / relative).resolve()
        inside = path.is_relative_to(folder.resolve()) or _is_blob(folder.resolve(), relative, path)
    except (OSError, ValueError, RuntimeError):  # a null byte; a circle of links
        inside = False
    if not inside or Path(relative).is_absolute():
        raise DataError(f"the path {printable(relative)!r} leaves its folder", where=str(folder))
    return folder / relative


def _is_blob(folder: Path, relative: str, target: Path) -> bool:
    """Say whether a path written as one below a snapshot's folder leads to a blob of the same repository."""
    snapshots = next((place for place in folder.parents if place.name == "snapshots"), None)
    written_below = Path(os.path.normpath(folder / relative)).is_relative_to(folder)
    return snapshots is not None and written_below and target.parent == snapshots.parent / "blobs"


def expanded(path: Path | str, *, where: str) -> Path:
    """Return a path whose leading ``~`` or ``~NAME`` is the home folder.

    Raises
    ------
    SourceError : there is nobody of that name here.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SourceError(
            f"{printable(path)} names the home folder of an unknown user", where=where
        ) from None


@contextmanager
def parquet(
    path: Path, *, error: ErrorType = DataError, most_rows: int = MOST_ROWS
) -> Iterator[pq.ParquetFile]:
    """Yield a Parquet file whose header announces no more rows and bytes than are read.

    Raises
    ------
    error : absent, not regular, not Parquet, damaged, or too large when expanded.
    """
    with parquet_errors(path, error=error), open_parquet(path, error=error, most_rows=most_rows) as file:
        _check_texts(file, path, error)
        yield file


def _check_texts(file: pq.ParquetFile, path: Path, error: ErrorType) -> None:
    """Refuse columns of text that expand to more than `LARGEST_ROW_GROUP` bytes per row group.

    The header does not say so: a dictionary, or front coding, holds a text of megabytes once for all rows.
    But no text is longer than its column's bytes, so a few rows at a time can be taken without harm.
    """
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            longest = column.total_uncompressed_size
            if column.physical_type != "BYTE_ARRAY" or longest * group.num_rows <= LARGEST_ROW_GROUP:
                continue
            if "UTF8" not in (file.metadata.schema.column(place).converted_type or ""):
                continue  # pictures, which their readers take a few at a time
            rows = max(1, LARGEST_ROW_GROUP // (4 * max(longest, 1)))
            taken = 0
            for batch in file.iter_batches(rows, row_groups=[number], columns=[column.path_in_schema]):
                taken += batch.nbytes
                if taken > LARGEST_ROW_GROUP:
                    raise error(f"{column.path_in_schema} expands to more than is read", where=str(path))


def open_parquet(
    path: Path,
    *,
    error: ErrorType = DataError,
    most_rows: int = MOST_ROWS,
    read_dictionary: Sequence[str] | None = None,
) -> pq.ParquetFile:
    """Return a Parquet file to be kept open; reads of it belong inside `parquet_errors`.

    ``read_dictionary`` names columns whose repeated values stay one value each, however often the file
    repeats them. Raises as `parquet`.
    """
    size = check_regular(path, largest=LARGEST_TABLE, error=error)
    with parquet_errors(path, error=error):
        # as bytes: a name that is not text in this locale has no other form that Arrow takes
        file = pq.ParquetFile(pa.OSFile(os.fsencode(path)), read_dictionary=read_dictionary)
    header = file.metadata
    groups = [header.row_group(i).total_byte_size for i in range(header.num_row_groups)]
    too_large = (
        header.num_rows > min(most_rows, max(FEW_ROWS, MOST_ROWS_A_BYTE * size))
        or sum(groups) > min(LARGEST_TABLE, max(SMALL_TABLE, DENSEST * size))
        or max(groups, default=0) > LARGEST_ROW_GROUP
    )
    if too_large or min(groups, default=0) < 0:
        raise error(
            f"announces {header.num_rows:,} rows of {sum(groups):,} bytes, more than is read", where=str(path)
        )
    return file


@contextmanager
def parquet_errors(path: Path, *, error: ErrorType = DataError, hint: str | None = None) -> Iterator[None]:
    """Turn whatever Arrow raises on a damaged Parquet file into one line; MemoryError stays what it is."""
    try:
        yield
    except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as cause:
        check_memory(cause, str(path))
        what = f"is not a Parquet file that can be read: {_reason(cause)}"
        raise error(what, where=str(path), hint=hint) from cause


def nesting(text: str) -> int:
    """Return how deep the brackets of a JSON or TOML text nest, outside its strings."""
    depth = deepest = 0
    for bracket in re.finditer(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if _OPENING.match(bracket.group()) else -1
        deepest = max(deepest, depth)
    return deepest


def _bounded(text: str, where: str, error: ErrorType) -> None:
    if nesting(text) > DEEPEST:
        raise error(f"is nested more than {DEEPEST} deep", where=where)
    if _DIGITS.search(_STRING.sub("", text)) is not None:
        raise error(f"holds a number of more than {LONGEST_NUMBER} digits", where=where)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def printable(text: object, longest: int = 200) -> str:
    """Return a name from outside as it may stand on a terminal: one line, no control characters."""
    whole = str(text)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in whole[:longest])
    return shown + ("..." if len(whole) > longest else "")


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return printable(str(text).split("\n")[0])
