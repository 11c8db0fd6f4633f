"""Folders of arrays: a file for each set, with the ids inside or in a text file next to it."""

from __future__ import annotations

import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import MAX_EXPANSION, SMALL_TABLE, read_table
from wordnet_splits.base.untrusted import GiB, check_file, open_untrusted, read_text, reason_of

from ..data.arrays import Array

SPLITS = ("test", "train", "val")
HEAD = "head"
LARGEST_FILE = 64 * GiB
"""Largest file of arrays, in bytes, also when expanded (ImageNet's features take 10 GB)."""
LARGEST_IDS = 2 * GiB
"""Largest file of ids, in bytes (the 14 million of ImageNet-21K take 0.3 GB)."""
LONGEST_HEADER = 10_000
"""Longest header of a .npy file, in bytes."""
HEADER = re.compile(
    rb"\{'descr': *'(?P<type>[<>|=]?[A-Za-z?][0-9]*(?:\[[A-Za-z0-9]+\])?)', *"
    rb"'fortran_order': *(?:True|False), *'shape': *\((?P<shape>[0-9, ]*)\),? *\}\s*"
)
"""Header of a .npy file with a plain dtype (no structured fields), as NumPy and its ports write it."""


def read_sets(folder: Path) -> tuple[dict[str, dict[str, Any]], tuple[Any, Any] | None]:
    """Return the arrays of a folder by set, and the head (weight, bias), None without a file of the head.

    A set is a file ``GROUP.npz``, ``.npy`` (the logits), ``.parquet`` or ``.safetensors`` in the folder, or
    in its folders ``test``, ``train`` and ``val``. Arrays are called ``logits``, ``features``, ``labels`` and
    ``ids``; columns of Parquet hold a list of numbers for each image. For files that cannot hold text,
    ``GROUP.txt`` next to the file has an id per line. ``head.npz`` or ``head.safetensors`` has ``weight`` and
    ``bias``.

    Raises
    ------
    DataError : no such folder, no file of arrays in it, two files of the same set, or an unreadable file.
    """
    if folder.is_file():
        raise DataError("is a file: give the folder that holds one for each set", where=str(folder))
    if not folder.is_dir():
        raise DataError("no such folder", where=str(folder))
    sets: dict[str, dict[str, Any]] = {}
    head = None
    for split, path in _files(folder):
        with _reading(path):
            arrays = READERS[path.suffix](path)
        if split == "test" and path.stem == HEAD:
            if set(arrays) != {"weight", "bias"}:
                raise DataError("a head has weight and bias", where=str(path))
            head = (arrays["weight"], arrays["bias"])
            continue
        name = path.stem if split == "test" else f"{path.stem}/{split}"
        if name in sets:
            raise DataError(f"the arrays of {name} are in two files", where=str(folder))
        text = path.with_suffix(".txt")
        if text.exists():
            if "ids" in arrays:
                raise DataError(f"ids are in {path.name} and in {text.name}", where=str(path.parent))
            arrays["ids"] = read_text(text, largest=LARGEST_IDS).splitlines()
        sets[name] = dict(arrays)
    if not sets:
        known = ", ".join(READERS)
        raise DataError("no file of arrays here", where=str(folder), hint=f"GROUP with one of {known}")
    return sets, head


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the split and the path of every file of arrays."""
    for split, inside in (("test", folder), *((split, folder / split) for split in SPLITS)):
        if inside.is_dir():
            yield from ((split, path) for path in sorted(inside.iterdir()) if path.suffix in READERS)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert errors of the libraries that read a file to a one-line DataError, except lack of memory."""
    try:
        yield
    except SplitsError as error:
        raise error if error.where else error.within(str(path)) from None
    except MemoryError:
        raise
    except Exception as error:  # NumPy, zipfile, zlib, tokenize and pyarrow share no base class
        hint = "save ids as text: np.array(ids, dtype=str)" if "allow_pickle" in str(error) else None
        raise DataError(f"cannot be read: {reason_of(error)}", where=str(path), hint=hint) from None


def _npz(path: Path) -> dict[str, Any]:
    with open_untrusted(path, largest=LARGEST_FILE) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        expanded = sum(member.file_size for member in members)
        packed = sum(member.compress_size for member in members)
        if expanded > min(LARGEST_FILE, max(SMALL_TABLE, MAX_EXPANSION * packed)):
            raise DataError(f"expands to {expanded:,} bytes, which is not read", where=str(path))
        names = [member.filename.removesuffix(".npy") for member in members]
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise DataError(f"holds two arrays called {printable(repeated[0])!r}", where=str(path))
        arrays = {}
        for name, member in zip(names, members, strict=True):
            with archive.open(member) as stream:
                _check_header(stream, member.file_size)
            with archive.open(member) as stream:
                arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
        return arrays


def _npy(path: Path) -> dict[str, Any]:
    with open_untrusted(path, largest=LARGEST_FILE) as file:
        _check_header(file, path.stat().st_size)
    return {"logits": np.load(path, mmap_mode="r", allow_pickle=False)}


def _check_header(file: Any, size: int) -> None:
    """Raise DataError unless a .npy of ``size`` bytes has a plain header and the values that it announces.

    NumPy evaluates the header as an expression of Python, and reserves memory for any shape in it.
    """
    version, _ = np.lib.format.read_magic(file)
    width = 2 if version == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    header = HEADER.fullmatch(file.read(min(length, LONGEST_HEADER + 1)))
    if header is None:
        raise DataError("its header must describe an array of numbers or texts")
    kind = np.dtype(header["type"].decode())
    count = math.prod(int(number) for number in re.findall(rb"[0-9]+", header["shape"]))
    start = np.lib.format.MAGIC_LEN + width + length
    values = size - start
    if not kind.hasobject and (values != count * kind.itemsize or not kind.itemsize):  # NumPy refuses objects
        raise DataError(f"its header announces {count * kind.itemsize:,} bytes, there are {values:,}")


def _parquet(path: Path) -> dict[str, Any]:
    table = read_table(path)
    return {name: _column(table[name].combine_chunks(), f"{path}: {name}") for name in table.column_names}


def _column(column: Any, where: str) -> Any:
    """Return a column of numbers as an array (n,), of texts as a list, of lists as a matrix (n, width)."""
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if column.null_count:
        raise DataError(f"{column.null_count:,} rows are empty", where=where)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.to_pylist()
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return column.to_numpy(zero_copy_only=False)
    values = column.flatten()
    if len(column) == 0 or len(values) % len(column) or values.null_count:
        raise DataError("its rows differ in length, or hold nothing", where=where)
    lengths = column.value_lengths() if hasattr(column, "value_lengths") else None
    if lengths is not None and len(lengths.unique()) > 1:
        raise DataError("its rows differ in length", where=where)
    return values.to_numpy(zero_copy_only=False).reshape(len(column), -1)


def _safetensors(path: Path) -> dict[str, Array]:
    numpy_format = need("safetensors.numpy", "models", where=str(path))
    check_file(path, largest=LARGEST_FILE)
    try:
        return dict(numpy_format.load_file(path))
    except MemoryError:
        raise
    except Exception as error:  # a library's own error, or a type that NumPy lacks
        message = f"is not a safetensors file that NumPy can hold: {reason_of(error)}"
        raise DataError(message, where=str(path), hint="save float32, float16 or float64") from None


READERS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
"""Suffix of a file -> function that reads its arrays by name."""
