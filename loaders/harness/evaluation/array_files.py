"""Folders of arrays: a file for each set, its ids inside it or in a text file beside it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, check_memory
from wordnet_splits.base.lazy import need
from wordnet_splits.base.parquet import MAX_EXPANSION, SMALL_TABLE, read_table
from wordnet_splits.base.untrusted import GiB, check_file, open_untrusted, read_text, reason_of

from ..arrays import Array

SPLITS = ("test", "train", "val")
HEAD = "head"
LARGEST_FILE = 64 * GiB
"""Largest file of arrays, in bytes, also when expanded (ImageNet's features take 10 GB)."""
LARGEST_IDS = 2 * GiB
"""Largest file of ids, in bytes (the 14 million of ImageNet-21K take 0.3 GB)."""


def read_sets(folder: Path) -> tuple[dict[str, dict[str, Any]], tuple[Any, Any] | None]:
    """Return the arrays of a folder by set, and the head (weight, bias), None where there is none.

    A set is a file ``GROUP.npz``, ``.npy`` (the logits), ``.parquet`` or ``.safetensors`` in the folder, or
    in its folders ``test``, ``train`` and ``val``. Arrays are called ``logits``, ``features``, ``labels`` and
    ``ids``; columns of Parquet hold a list of numbers for each image. Files that hold no text have their ids
    in ``GROUP.txt`` beside them, one a line. ``head.npz`` or ``head.safetensors`` has ``weight`` and
    ``bias``.

    Raises
    ------
    DataError : no such folder, no file of arrays in it, two of one set, or one that cannot be read.
    """
    if folder.is_file():
        raise DataError("is a file: give the folder that holds one for each set", where=str(folder))
    if not folder.is_dir():
        raise DataError("no such folder", where=str(folder))
    sets: dict[str, dict[str, Any]] = {}
    head = None
    for split, path in _files(folder):
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


def _npz(path: Path) -> dict[str, Any]:
    try:
        with open_untrusted(path, largest=LARGEST_FILE) as file:
            with zipfile.ZipFile(file) as archive:
                expanded = sum(member.file_size for member in archive.infolist())
                packed = sum(member.compress_size for member in archive.infolist())
                if expanded > min(LARGEST_FILE, max(SMALL_TABLE, MAX_EXPANSION * packed)):
                    raise DataError(f"expands to {expanded:,} bytes, which is not read", where=str(path))
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
    except (
        OSError,
        ValueError,
        EOFError,
        SyntaxError,
        OverflowError,
        MemoryError,
        zipfile.BadZipFile,
    ) as error:
        raise _unreadable(path, error) from None


def _npy(path: Path) -> dict[str, Any]:
    check_file(path, largest=LARGEST_FILE)
    try:  # mapped, so that a header cannot ask for more than the file has
        return {"logits": np.load(path, mmap_mode="r", allow_pickle=False)}
    except (OSError, ValueError, EOFError, SyntaxError, OverflowError, MemoryError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> DataError:
    """Return the error of an array file; errors of ours stay as they are."""
    if isinstance(error, DataError):
        return error
    check_memory(error, str(path))
    hint = None
    if "allow_pickle" in str(error):
        hint = "save ids as text: np.array(ids, dtype=str)"
    return DataError(f"cannot be read: {reason_of(error)}", where=str(path), hint=hint)


def _parquet(path: Path) -> dict[str, Any]:
    table = read_table(path)
    return {name: _column(table[name].combine_chunks(), f"{path}: {name}") for name in table.column_names}


def _column(column: Any, where: str) -> Any:
    """Return a column of numbers or texts as it is, a column of lists as a matrix (n, width)."""
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
    except Exception as error:  # a library's own kind, or a type that NumPy lacks
        check_memory(error, str(path))
        message = f"is not a safetensors file that NumPy can hold: {reason_of(error)}"
        raise DataError(message, where=str(path), hint="save float32, float16 or float64") from None


READERS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
"""Suffix of a file -> function that reads its arrays by name."""
