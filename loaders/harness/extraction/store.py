"""Stored activations: fixed shards of rows, each written atomically with checksum and settings.

::

    <store>/<model_key>/<transform_key>/<list_key>/
        list.json                               content of the folder; canary/{inputs,logits}.npy
        forward/{features,logits}/00000.npy     rows 0..4095 of each array
        forward/00000.json                      written last: checksums, and the settings of that shard
        odin[T=1000,eps=0.0014]/logits/00000.npy, odin[T=1000,eps=0.0014]/00000.json

A *unit* is a set of arrays computed together: ``forward`` or one probe. A shard without its .json does not
exist, so that an interrupted extraction continues with the first unfinished shard. `schema` has the schemas
of the JSON files, which include checksums.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from wordnet_splits.base import files
from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.schemas import Count, Sha256, StrictModel, read_sealed, write_sealed
from wordnet_splits.base.untrusted import GiB, path_below, sha256_of

from ..arrays import Array, ArrayView

SCHEMA = 2

ArrayName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]


class ArrayRecord(StrictModel):
    """One array file: its checksum, type and shape."""

    sha256: Sha256
    dtype: Literal["float32", "float16"]
    shape: list[Count] = Field(min_length=1, max_length=8)


class CanaryRecord(StrictModel):
    """A few inputs of the group and their logits."""

    inputs: ArrayRecord
    logits: ArrayRecord


class GroupRecord(StrictModel):
    """``list.json``: the content of a group's folder.

    Attributes
    ----------
    model_key, transform_key, list_key : names of the folders.
    n : images. shard_rows : rows of every shard but the last.
    model, head : the model's name and that of its head. sources : of the images.
    transform : the specification, whose hash is ``transform_key``.
    """

    version: Literal[2] = Field(alias="schema")
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
    """Settings that the bytes of a shard depend on, besides model and images; `notes` has disturbances."""

    batch_size: int = Field(ge=1)
    device: str
    dtype: str
    libraries: dict[str, str]
    threads: Count
    notes: list[str] = Field(default_factory=list)


class ShardRecord(StrictModel):
    """``<unit>/<shard>.json``: one finished shard of one group and unit."""

    model_key: Sha256
    transform_key: Sha256
    list_key: Sha256
    unit: str
    shard: Count
    arrays: dict[ArrayName, ArrayRecord] = Field(min_length=1)
    settings: ShardSettings


SHARD_ROWS = 4096
FORWARD = "forward"
LIST, CANARY = "list.json", "canary"
LARGEST_SHARD = 64 * GiB
"""Bytes of one array of one shard."""


class StoreError(DataError):
    """Stored activations are damaged, or belong to something else."""

    kind = "store"


@dataclass(frozen=True)
class Store:
    """A folder of activations of any number of models and groups.

    Attributes
    ----------
    root : the folder, created on the first write.
    shard_rows : rows of a shard, for new groups.
    permanent : whether the folder outlives the evaluation, so that later ones read it.
    """

    root: Path
    shard_rows: int = SHARD_ROWS
    permanent: bool = True

    def group(self, model_key: str, transform_key: str, list_key: str, *, n: int) -> StoredGroup:
        """Return the stored group of ``n`` images, which may not exist yet."""
        keys = {"model_key": model_key, "transform_key": transform_key, "list_key": list_key}
        folder = Path(self.root).joinpath(*keys.values())
        return StoredGroup(folder, keys, n, self.shard_rows, fresh=not self.permanent)


class StoredGroup:
    """The activations of one model on one group.

    Attributes
    ----------
    folder : ``<model_key>/<transform_key>/<list_key>``. keys : the three keys. n : rows of every array.
    fresh : whether all that it holds was computed in this process.
    """

    def __init__(
        self, folder: Path, keys: Mapping[str, str], n: int, shard_rows: int, *, fresh: bool = False
    ) -> None:
        self.folder, self.keys, self.n, self.fresh = folder, dict(keys), n, fresh
        self._default_rows = shard_rows
        self._again = f"delete {folder} to have it computed again"

    def path(self, name: str) -> Path:
        """Return the path of a file of the group; DataError for a name that leads outside the folder."""
        return path_below(self.folder, name)

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder for one extraction; a second one waits."""
        return files.locked(self.folder, busy="another extraction is writing here", wait=True)

    def begin(self, about: Mapping[str, Any], canary: Mapping[str, Array]) -> None:
        """Write ``list.json`` and the canary (inputs and logits); ``list.json`` comes last."""
        records = {name: self._write_array(f"{CANARY}/{name}.npy", value) for name, value in canary.items()}
        description = {"schema": SCHEMA, **self.keys, "n": self.n, "shard_rows": self._default_rows}
        write_sealed(self.folder / LIST, {**description, "canary": records, **about})
        self.fresh = True

    @property
    def begun(self) -> bool:
        """Whether `begin` was finished."""
        return (self.folder / LIST).is_file()

    @cached_property
    def about(self) -> GroupRecord:
        """The content of ``list.json``, checked against this group."""
        path = self.folder / LIST
        record = read_sealed(path, GroupRecord, error=StoreError, hint=self._again)
        actual = {**{key: getattr(record, key) for key in self.keys}, "n": record.n}
        different = [key for key, value in {**self.keys, "n": self.n}.items() if actual[key] != value]
        if digest_json(record.transform) != record.transform_key:
            different.append("transform")
        if different:
            raise StoreError(f"is of another {different[0]}", where=str(path), hint=self._again)
        return record

    @cached_property
    def shards(self) -> list[range]:
        """The rows of each shard."""
        size = self.about.shard_rows
        return [range(start, min(start + size, self.n)) for start in range(0, self.n, size)]

    def canary(self) -> tuple[Array, Array]:
        """Return the canary's inputs and logits, checked."""
        record = self.about.canary
        inputs = self._open(f"{CANARY}/inputs.npy", record.inputs)
        return np.array(inputs), np.array(self._open(f"{CANARY}/logits.npy", record.logits))

    def missing(self, unit: str, among: Collection[int] | None = None) -> list[int]:
        """Return the missing shards of ``unit``, ascending, all or those ``among`` some.

        Of all shards, all are missing without the first, which the canary compares with the model.
        """
        shards = range(len(self.shards)) if among is None else sorted(among)
        missing = [s for s in shards if not (self.path(_record_file(unit, s))).is_file()]
        return list(shards) if among is None and missing[:1] == [0] else missing

    def write(self, unit: str, shard: int, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> None:
        """Write one shard of a unit: every array, then the record that makes it exist.

        Raises
        ------
        OutputError : the folder cannot be written to, or has no space left.
        """
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
        """Return the record of one shard, checked against its path."""
        path = self.path(_record_file(unit, shard))
        record = read_sealed(path, ShardRecord, error=StoreError, hint=self._again)
        expected = {**self.keys, "unit": unit, "shard": shard}
        different = [key for key, value in expected.items() if getattr(record, key) != value]
        if different:
            raise StoreError(f"is of another {different[0]}", where=str(path), hint=self._again)
        return record

    def verify(self, unit: str, shard: int) -> ShardRecord:
        """Return the record of one shard; StoreError unless every file of it is there and unaltered."""
        record = self._record(unit, shard)
        for name, array in record.arrays.items():
            self._open(_array_file(unit, name, shard), array, len(self.shards[shard]))
        return record

    def adopt(self, source: StoredGroup, unit: str, shard: int) -> None:
        """Copy one shard of the same group of another store, and the canary where there is none.

        Requires the lock. Shards that are here already stay.
        """
        if not self.begun:
            for name in ("inputs", "logits"):
                self._copy(source, f"{CANARY}/{name}.npy")
            self._copy(source, LIST)
        if not (self.path(_record_file(unit, shard))).is_file():
            for name in source.verify(unit, shard).arrays:
                self._copy(source, _array_file(unit, name, shard))
            self._copy(source, _record_file(unit, shard))

    def _copy(self, source: StoredGroup, name: str) -> None:
        with files.replacing(self.path(name)) as part:
            shutil.copyfile(source.path(name), part)

    def first_rows(self, unit: str, rows: int) -> dict[str, Array]:
        """Return the first rows of every array of a unit; {} where its first shard is missing."""
        if not (self.path(_record_file(unit, 0))).is_file():
            return {}
        record, count = self._record(unit, 0), len(self.shards[0])
        return {
            name: np.array(self._open(_array_file(unit, name, 0), array, count)[:rows])
            for name, array in record.arrays.items()
        }

    def open(self, unit: str) -> dict[str, ArrayView]:
        """Open the arrays of a complete unit, memory-mapped, after comparing every file with its checksum.

        Raises
        ------
        StoreError : a file is absent, altered, or of another shape.
        """
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

    def _open(self, name: str, record: ArrayRecord, rows: int | None = None) -> Array:
        path = self.path(name)
        if sha256_of(path, largest=LARGEST_SHARD, error=StoreError) != record.sha256:
            raise StoreError("was altered: its checksum differs", where=str(path), hint=self._again)
        try:
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except MemoryError:
            raise
        except Exception as error:  # NumPy evaluates the header, which may raise anything
            raise StoreError(f"cannot be read: {error}", where=str(path), hint=self._again) from None
        expected = [len(array) if rows is None else rows, *record.shape[1:]]
        if str(array.dtype) != record.dtype or list(array.shape) != record.shape or record.shape != expected:
            raise StoreError("is not of the recorded type and shape", where=str(path), hint=self._again)
        return array


def _array_file(unit: str, name: str, shard: int) -> str:
    return f"{unit}/{name}/{shard:05}.npy"


def _record_file(unit: str, shard: int) -> str:
    return f"{unit}/{shard:05}.json"
