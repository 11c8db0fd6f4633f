"""One list of images in a store of activations: fixed shards of rows, each written atomically.

The files are described in `outputs`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from wordnet_splits.base import files
from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.text_formats import Count, Sha256, StrictModel, read_sealed, write_sealed
from wordnet_splits.base.untrusted import GiB, path_below, read_bytes, sha256_of

from ..data.arrays import Array, ArrayView

SCHEMA = 3

ArrayName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]


class ArrayRecord(StrictModel):
    """One array file: its checksum, type and shape."""

    sha256: Sha256
    dtype: Literal["float32", "float16"]
    shape: list[Count] = Field(min_length=1, max_length=8)


class CanaryRecord(StrictModel):
    """A few inputs of the list, their rows in it, and their logits."""

    rows: list[Count] = Field(min_length=1)
    inputs: ArrayRecord
    logits: ArrayRecord


class ListRecord(StrictModel):
    """``list.json``: the content of a list's folder."""

    version: Literal[3] = Field(alias="schema")
    model_key: Sha256
    transform_key: Sha256
    list_key: Sha256
    n: int = Field(ge=1)
    shard_rows: int = Field(ge=1)
    model: str
    head: str | None
    sources: list[str]
    transform: dict[str, Any]
    features_dtype: Literal["float32", "float16"]
    canary: CanaryRecord


class ShardSettings(StrictModel):
    """Settings, beyond model and images, that the bytes of a shard depend on; `notes` has disturbances."""

    batch_size: int = Field(ge=1)
    device: str
    dtype: str
    libraries: dict[str, str]
    threads: Count
    notes: list[str] = Field(default_factory=list)


class ShardRecord(StrictModel):
    """``<unit>/<shard>.json``: a finished shard of a list and unit."""

    model_key: Sha256
    transform_key: Sha256
    list_key: Sha256
    unit: str
    shard: Count
    arrays: dict[ArrayName, ArrayRecord] = Field(min_length=1)
    settings: ShardSettings


SHARD_ROWS = 4096
FORWARD = "forward"
LIST, IMAGES, CANARY = "list.json", "images.txt", "canary"
LARGEST_SHARD = 64 * GiB
"""Largest array of a shard, in bytes."""


class StoreError(DataError):
    """Stored activations are damaged, or belong to a different model, transform or list."""

    kind = "store"


def list_key(images: Sequence[str]) -> str:
    """Return the key of an ordered list of images, given by their `image_names`."""
    return hashlib.sha256(_lines(images)).hexdigest()


def _lines(images: Sequence[str]) -> bytes:
    return "".join(f"{image}\n" for image in images).encode()


class StoredList:
    """The activations of a model on images that were computed together.

    Attributes
    ----------
    folder : ``<model_key>/<transform_key>/<list_key>``.
    keys : the three keys.
    fresh : whether this process computed all of its activations.
    """

    def __init__(
        self, folder: Path, keys: Mapping[str, str], n: int | None, shard_rows: int, *, fresh: bool = False
    ) -> None:
        self.folder, self.keys, self.fresh = folder, dict(keys), fresh
        self._n = n
        self._default_rows = shard_rows
        self._again = f"delete {folder} to have it computed again"
        self._arrays: dict[str, Array] = {}

    def path(self, name: str) -> Path:
        """Return the path of a file of the list; DataError for a name that leads outside the folder."""
        return path_below(self.folder, name)

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder for one extraction; a second one waits."""
        return files.locked(self.folder, busy="another extraction is writing here", wait=True)

    def begin(
        self,
        about: Mapping[str, Any],
        images: Sequence[str],
        canary: Mapping[str, Array],
        rows: Sequence[int],
    ) -> None:
        """Write the images, the canary (inputs and logits of some rows) and, last, ``list.json``."""
        files.write_bytes(self.folder / IMAGES, _lines(images))
        records: dict[str, Any] = {"rows": list(rows)}
        records |= {name: self._write_array(f"{CANARY}/{name}.npy", value) for name, value in canary.items()}
        description = {"schema": SCHEMA, **self.keys, "n": self.n, "shard_rows": self._default_rows}
        write_sealed(self.folder / LIST, {**description, "canary": records, **about})
        self.fresh = True

    @property
    def n(self) -> int:
        """Number of images."""
        return self.about.n if self._n is None else self._n

    @property
    def begun(self) -> bool:
        """Whether `begin` was finished."""
        return (self.folder / LIST).is_file()

    @cached_property
    def about(self) -> ListRecord:
        """The content of ``list.json``, checked against this list."""
        path = self.folder / LIST
        record = read_sealed(path, ListRecord, error=StoreError, hint=self._again)
        different = [key for key, value in self.keys.items() if getattr(record, key) != value]
        if self._n not in (None, record.n):
            different.append("n")
        if digest_json(record.transform) != record.transform_key:
            different.append("transform")
        if max(record.canary.rows) >= record.n:
            different.append("canary")
        if different:
            raise StoreError(f"was made with a different {different[0]}", where=str(path), hint=self._again)
        return record

    @cached_property
    def shards(self) -> list[range]:
        """The rows of each shard."""
        size = self.about.shard_rows
        return [range(start, min(start + size, self.n)) for start in range(0, self.n, size)]

    @cached_property
    def images(self) -> Sequence[str]:
        """The identity of each image, see `store.image_names`."""
        path = self.path(IMAGES)
        data = read_bytes(path, largest=LARGEST_SHARD, error=StoreError)
        if hashlib.sha256(data).hexdigest() != self.keys["list_key"]:
            raise StoreError("was altered: its checksum differs", where=str(path), hint=self._again)
        return data.decode().split("\n")[:-1]

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Image -> its row."""
        return {image: row for row, image in enumerate(self.images)}

    def image_ids(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the (source, image_id, view) of some rows."""
        return [tuple(json.loads(self.images[row])[:3]) for row in rows]

    def canary(self) -> tuple[Array, Array, list[int]]:
        """Return the canary's inputs and logits, checked, and its rows."""
        record = self.about.canary
        inputs = self._open(f"{CANARY}/inputs.npy", record.inputs, len(record.rows))
        logits = self._open(f"{CANARY}/logits.npy", record.logits, len(record.rows))
        return np.array(inputs), np.array(logits), record.rows

    def missing(self, unit: str, among: Collection[int] | None = None) -> list[int]:
        """Return the missing shards of ``unit``, ascending; ``among`` restricts the shards."""
        shards, folder = range(len(self.shards)) if among is None else sorted(among), self.path(unit)
        return [shard for shard in shards if not (folder / _record_name(shard)).is_file()]

    def batch_size(self, unit: str, device: str) -> int | None:
        """Return the batch size of the last finished shard of ``unit``; None without one on that device."""
        missing = set(self.missing(unit))
        last = next((shard for shard in reversed(range(len(self.shards))) if shard not in missing), None)
        found = None if last is None else self._record(unit, last).settings
        return found.batch_size if found is not None and found.device == device else None

    def write(self, unit: str, shard: int, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> None:
        """Write one shard of a unit: every array, then the record that makes it exist."""
        array_records = {
            name: self._write_array(_array_file(unit, name, shard), value) for name, value in arrays.items()
        }
        record = {
            **self.keys,
            "unit": unit,
            "shard": shard,
            "arrays": array_records,
            "settings": dict(settings),
        }
        write_sealed(self.path(_record_file(unit, shard)), record)

    def records(self, unit: str) -> list[ShardRecord]:
        """Return the record of each shard of a complete unit, checked against its path."""
        records = [self._record(unit, shard) for shard in range(len(self.shards))]
        for shard, record in enumerate(records):
            if sorted(record.arrays) != sorted(records[0].arrays):
                path = self.path(_record_file(unit, shard))
                raise StoreError("holds other arrays than shard 0", where=str(path), hint=self._again)
        return records

    def _record(self, unit: str, shard: int) -> ShardRecord:
        """Return the record of a shard, checked against its path."""
        path = self.path(_record_file(unit, shard))
        record = read_sealed(path, ShardRecord, error=StoreError, hint=self._again)
        expected = {**self.keys, "unit": unit, "shard": shard}
        different = [key for key, value in expected.items() if getattr(record, key) != value]
        if different:
            raise StoreError(f"was made with a different {different[0]}", where=str(path), hint=self._again)
        return record

    def verify(self, unit: str, shard: int) -> ShardRecord:
        """Return the record of a shard; StoreError if any of its files is missing or altered."""
        record = self._record(unit, shard)
        for name, array in record.arrays.items():
            self._open(_array_file(unit, name, shard), array, len(self.shards[shard]))
        return record

    def adopt(self, source: StoredList, unit: str, shard: int) -> None:
        """Copy a shard of the same list from another store, and the canary if it is missing.

        Requires the lock. Existing shards stay.
        """
        if not self.begun:
            for name in ("inputs", "logits"):
                self._copy(source, f"{CANARY}/{name}.npy")
            self._copy(source, IMAGES)
            self._copy(source, LIST)
        if not (self.path(_record_file(unit, shard))).is_file():
            for name in source.verify(unit, shard).arrays:
                self._copy(source, _array_file(unit, name, shard))
            self._copy(source, _record_file(unit, shard))

    def _copy(self, source: StoredList, name: str) -> None:
        with files.replacing(self.path(name)) as part:
            shutil.copyfile(source.path(name), part)

    def stored_rows(self, unit: str, rows: Sequence[int]) -> tuple[list[int], dict[str, Array]]:
        """Return which of some rows are in finished shards (their positions), and the arrays of these."""
        size = self.about.shard_rows
        finished = set(range(len(self.shards))).difference(self.missing(unit))
        positions = [position for position, row in enumerate(rows) if row // size in finished]
        records = {shard: self._record(unit, shard) for shard in sorted({rows[p] // size for p in positions})}
        parts: dict[str, list[Array]] = {}
        for position in positions:
            shard, row = divmod(rows[position], size)
            for name, record in records[shard].arrays.items():
                array = self._open(_array_file(unit, name, shard), record, len(self.shards[shard]))
                parts.setdefault(name, []).append(np.array(array[row]))
        return positions, {name: np.stack(values) for name, values in parts.items()}

    def open(self, unit: str) -> dict[str, ArrayView]:
        """Open the arrays of a complete unit, memory-mapped, after comparing every file with its checksum."""
        records = self.records(unit)
        return {
            name: ArrayView(
                [
                    self._open(_array_file(unit, name, shard), record.arrays[name], len(rows))
                    for shard, (record, rows) in enumerate(zip(records, self.shards, strict=True))
                ]
            )
            for name in sorted(records[0].arrays)
        }

    def clear_parts(self) -> None:
        """Remove partial files of an interrupted extraction; requires the lock."""
        for folder in (self.folder, *(path for path in self.folder.rglob("*") if path.is_dir())):
            files.clear_parts(folder)

    def _write_array(self, name: str, array: Array) -> dict[str, Any]:
        array = np.ascontiguousarray(array)
        with files.replacing(self.path(name)) as part:
            with part.open("wb") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
            digest = sha256_of(part, largest=LARGEST_SHARD, error=StoreError)
        return {"sha256": digest, "dtype": str(array.dtype), "shape": list(array.shape)}

    def _open(self, name: str, record: ArrayRecord, rows: int) -> Array:
        """Return an array, memory-mapped; its checksum is compared at the first call."""
        if name in self._arrays:
            return self._arrays[name]
        path = self.path(name)
        if sha256_of(path, largest=LARGEST_SHARD, error=StoreError) != record.sha256:
            raise StoreError("was altered: its checksum differs", where=str(path), hint=self._again)
        try:
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # NumPy evaluates the header, which may raise anything
            raise StoreError(f"cannot be read: {error}", where=str(path), hint=self._again) from None
        expected = [rows, *record.shape[1:]]
        if str(array.dtype) != record.dtype or list(array.shape) != record.shape or record.shape != expected:
            raise StoreError("is not of the recorded type and shape", where=str(path), hint=self._again)
        self._arrays[name] = array
        return array


def _array_file(unit: str, name: str, shard: int) -> str:
    return f"{unit}/{name}/{shard:05}.npy"


def _record_file(unit: str, shard: int) -> str:
    return f"{unit}/{_record_name(shard)}"


def _record_name(shard: int) -> str:
    return f"{shard:05}.json"
