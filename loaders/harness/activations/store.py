"""Stored activations on disk: fixed shards of rows, written atomically, each with its checksum and settings.

::

    <store>/<model_key>/<transform_key>/<list_key>/
        list.json                               what the folder holds; canary/{inputs,logits}.npy
        forward/{features,logits}/00000.npy     rows 0..4095 of each array
        forward/00000.json                      written last: checksums, and the settings of that shard
        odin[T=1000,eps=0.0014]/logits/00000.npy, odin[T=1000,eps=0.0014]/00000.json

A *unit* is what is computed together: ``forward`` or one probe. A shard without its .json does not exist, so
an extraction that was killed goes on with the first shard that was not finished.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wordnet_splits.errors import DataError, OutputError

from ..arrays import Array, ArrayView
from ..keys import canonical

SCHEMA = 1
SHARD_ROWS = 4096
FORWARD = "forward"
PARTIAL = ".partial"
LIST, CANARY = "list.json", "canary"


class StoreError(DataError):
    """Stored activations that are damaged, or of something else than was asked for."""

    kind = "store"


@dataclass(frozen=True)
class Store:
    """A folder of activations of any number of models and groups.

    Attributes
    ----------
    root : the folder; made when first written to.
    shard_rows : rows of a shard; a group already begun keeps its own.
    """

    root: Path
    shard_rows: int = SHARD_ROWS

    def group(self, model_key: str, transform_key: str, list_key: str) -> StoredGroup:
        """Return the place of one group's activations, which may not exist yet."""
        folder = Path(self.root) / model_key / transform_key / list_key
        return StoredGroup(folder, self.shard_rows)


class StoredGroup:
    """The activations of one model on one group: see the module.

    Attributes
    ----------
    folder : ``<model_key>/<transform_key>/<list_key>``.
    """

    def __init__(self, folder: Path, shard_rows: int) -> None:
        self.folder = folder
        self._default_rows = shard_rows

    def begin(self, about: Mapping[str, Any], canary: Mapping[str, Array]) -> None:
        """Write ``list.json`` and the canary (inputs and logits); ``list.json`` comes last."""
        checksums = {name: self._write_array(f"{CANARY}/{name}.npy", value) for name, value in canary.items()}
        data = {"schema": SCHEMA, "shard_rows": self._default_rows, "canary": checksums, **about}
        self._write_text(LIST, json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n")

    @property
    def begun(self) -> bool:
        """Whether `begin` was finished."""
        return (self.folder / LIST).is_file()

    @cached_property
    def about(self) -> dict[str, Any]:
        """The content of ``list.json``."""
        data = self._read_json(LIST)
        if data.get("schema") != SCHEMA:
            raise StoreError(f"not schema {SCHEMA}", where=str(self.folder / LIST), hint="use another store")
        return data

    @property
    def n(self) -> int:
        """Rows of every array."""
        return int(self.about["n"])

    @property
    def shards(self) -> list[range]:
        """The rows of each shard."""
        size = int(self.about["shard_rows"])
        return [range(start, min(start + size, self.n)) for start in range(0, self.n, size)]

    def canary(self) -> dict[str, Array]:
        """Return the canary's arrays, checked."""
        return {
            name: np.array(self._open(f"{CANARY}/{name}.npy", record))
            for name, record in self.about["canary"].items()
        }

    def missing(self, unit: str) -> list[int]:
        """Return the shards that ``unit`` does not have, ascending."""
        return [s for s in range(len(self.shards)) if not self._record(unit, s).is_file()]

    def units(self) -> tuple[str, ...]:
        """Return the units with all their shards, sorted."""
        found = {path.parent.name for path in self.folder.glob("*/*.json")}
        return tuple(sorted(unit for unit in found if not self.missing(unit)))

    def write(self, unit: str, shard: int, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> None:
        """Write one shard of a unit: every array, then the record that makes it exist.

        Raises
        ------
        OutputError : the folder cannot be written to, or has no space left.
        """
        files = {
            name: self._write_array(_array_file(unit, name, shard), value) for name, value in arrays.items()
        }
        record = {"shard": shard, "arrays": files, "settings": dict(settings)}
        self._write_text(f"{unit}/{shard:05}.json", json.dumps(record, indent=1, sort_keys=True) + "\n")

    def records(self, unit: str) -> list[dict[str, Any]]:
        """Return the record of each shard of a complete unit."""
        return [self._read_json(f"{unit}/{shard:05}.json") for shard in range(len(self.shards))]

    def open(self, unit: str, *, verify: bool = True) -> dict[str, ArrayView]:
        """Open the arrays of a complete unit, memory-mapped.

        Parameters
        ----------
        verify : compare every file with its checksum, which reads it once.

        Raises
        ------
        StoreError : a file is absent, of another shape, or not what was written.
        """
        records = self.records(unit)
        names = sorted(records[0]["arrays"])
        parts: dict[str, list[Array]] = {name: [] for name in names}
        for shard, (record, rows) in enumerate(zip(records, self.shards, strict=True)):
            if sorted(record["arrays"]) != names:
                raise StoreError(
                    f"shards 0 and {shard} hold other arrays", where=str(self.folder / unit), hint=self._again
                )
            for name in names:
                array = self._open(_array_file(unit, name, shard), record["arrays"][name], verify=verify)
                if len(array) != len(rows):
                    raise StoreError(
                        f"{len(array)} rows where {len(rows)} are due",
                        where=str(self.folder / _array_file(unit, name, shard)),
                        hint=self._again,
                    )
                parts[name].append(array)
        return {name: ArrayView(arrays) for name, arrays in parts.items()}

    def discard_partial(self) -> None:
        """Remove what a killed extraction left half written."""
        for path in self.folder.rglob(f"*{PARTIAL}"):
            path.unlink(missing_ok=True)

    @property
    def _again(self) -> str:
        return f"delete {self.folder} to have it computed again"

    def _record(self, unit: str, shard: int) -> Path:
        return self.folder / unit / f"{shard:05}.json"

    def _write_array(self, name: str, array: Array) -> dict[str, Any]:
        path = self.folder / name
        partial = path.with_name(path.name + PARTIAL)
        array = np.ascontiguousarray(array)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
            digest = _sha256(partial)
            partial.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from None
        return {"sha256": digest, "dtype": str(array.dtype), "shape": list(array.shape)}

    def _write_text(self, name: str, text: str) -> None:
        path = self.folder / name
        partial = path.with_name(path.name + PARTIAL)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from None

    def _read_json(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot be read: {error}", where=str(path), hint=self._again) from None
        if not isinstance(data, dict):
            raise StoreError("not an object", where=str(path), hint=self._again)
        return data

    def _open(self, name: str, record: Mapping[str, Any], *, verify: bool = True) -> Array:
        path = self.folder / name
        try:
            if verify and _sha256(path) != record["sha256"]:
                raise StoreError(
                    "the file is not what was written: its checksum differs",
                    where=str(path),
                    hint=self._again,
                )
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise StoreError(f"cannot be read: {error}", where=str(path), hint=self._again) from None
        if canonical([str(array.dtype), list(array.shape)]) != canonical([record["dtype"], record["shape"]]):
            raise StoreError("not of the recorded shape", where=str(path), hint=self._again)
        return array


def _array_file(unit: str, name: str, shard: int) -> str:
    return f"{unit}/{name}/{shard:05}.npy"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unwritable(path: Path, error: OSError) -> OutputError:
    with suppress(OSError):
        path.with_name(path.name + PARTIAL).unlink(missing_ok=True)
    return OutputError(
        f"cannot be written: {error.strerror or error}",
        where=str(path),
        hint="check that the store may be written to and has space left",
    )
