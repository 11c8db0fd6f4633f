"""Stored activations: lists of images in fixed shards, each written atomically with checksum and settings.

::

    <store>/<model_key>/<transform_key>/<list_key>/
        list.json                               content of the folder; canary/{inputs,logits}.npy
        images.txt                              source, id and view of each image; its SHA-256 is list_key
        forward/{features,logits}/00000.npy     rows 0..4095 of each array
        forward/00000.json                      written last: checksums, and the settings of that shard
        odin[T=1000,eps=0.0014]/logits/00000.npy, odin[T=1000,eps=0.0014]/00000.json

A *unit* is a set of arrays computed together: ``forward`` or one probe. A shard without its .json does not
exist, so that an interrupted extraction continues with the first unfinished shard. A list holds the images
that were computed together; `StoredModel` finds the rows of any images among all complete lists, so that
benchmarks share them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from wordnet_splits.datasets.catalog import catalog_names

from ..data.arrays import Array, ArrayView
from .stored_list import LIST, SHARD_ROWS, StoredList, StoreError, list_key


def image_names(table: pa.Table) -> list[str]:
    """Return the identity of each image as text: its (source, image_id, view) as JSON.

    It omits benchmark, role and label, so that benchmarks share images. For a user's dataset, whose name and
    ids do not identify its images, it includes known digests, and the digest of the whole list for others.
    """
    shipped = frozenset(catalog_names())
    columns = [table.column(name).to_pylist() for name in ("source", "image_id", "view")]
    digests = (
        table.column("digest").to_pylist() if "digest" in table.column_names else [None] * table.num_rows
    )
    encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
    unknown = any(d is None and s not in shipped for s, d in zip(columns[0], digests, strict=True))
    whole_list = hashlib.sha256(encode(columns).encode()).hexdigest() if unknown else ""
    return [
        encode(row if row[0] in shipped else (*row, whole_list if digest is None else digest.hex()))
        for row, digest in zip(zip(*columns, strict=True), digests, strict=True)
    ]


@dataclass(frozen=True)
class Store:
    """A folder of activations of any number of models and images.

    Attributes
    ----------
    root : the folder, created on the first write.
    shard_rows : rows of a shard, for new lists.
    permanent : whether the folder outlives the evaluation, so that later ones read it.
    """

    root: Path
    shard_rows: int = SHARD_ROWS
    permanent: bool = True

    def model(self, model_key: str, transform_key: str) -> StoredModel:
        """Return the activations of a model under a transform."""
        return StoredModel(self, model_key, transform_key)

    def list_at(self, model_key: str, transform_key: str, key: str, *, n: int | None = None) -> StoredList:
        """Return the list with a key, which may not exist yet; ``n`` is its number of images, if known."""
        keys = {"model_key": model_key, "transform_key": transform_key, "list_key": key}
        folder = Path(self.root).joinpath(*keys.values())
        return StoredList(folder, keys, n, self.shard_rows, fresh=not self.permanent)


@dataclass(frozen=True, eq=False)
class Places:
    """The places of n images in the stored lists of a model.

    Attributes
    ----------
    owner : (n,) number of the list that has the image, -1 for none.
    row : (n,) its row there.
    """

    lists: Sequence[StoredList]
    owner: Array
    row: Array

    @property
    def missing(self) -> Array:
        """Positions of the images that no list has."""
        return np.flatnonzero(self.owner < 0)

    @property
    def used(self) -> list[StoredList]:
        """The lists that have an image."""
        return [self.lists[number] for number in np.unique(self.owner[self.owner >= 0])]


class StoredModel:
    """The activations of a model under a transform, found by image."""

    def __init__(self, store: Store, model_key: str, transform_key: str) -> None:
        self._store, self._keys = store, (model_key, transform_key)
        self._lists: dict[str, StoredList] = {}

    def list_at(self, key: str, n: int | None = None) -> StoredList:
        """Return the list with a key, which may not exist yet; ``n`` is its number of images, if known."""
        if key not in self._lists:
            self._lists[key] = self._store.list_at(*self._keys, key, n=n)
        return self._lists[key]

    @property
    def lists(self) -> Sequence[StoredList]:
        """The lists that were begun, by their keys."""
        folder = Path(self._store.root).joinpath(*self._keys)
        for path in sorted(folder.glob(f"*/{LIST}")):
            self.list_at(path.parent.name)
        return [self._lists[key] for key in sorted(self._lists) if self._lists[key].begun]

    def places(self, images: Sequence[str], unit: str) -> Places:
        """Find images in the lists that have a complete unit, first in the list of exactly these images."""
        n = len(images)
        whole = self.list_at(list_key(images), n)
        if whole.begun and not whole.missing(unit):
            return Places([whole], np.zeros(n, np.int64), np.arange(n))
        lists = [stored for stored in self.lists if not stored.missing(unit)]
        owner, row = np.full(n, -1), np.zeros(n, np.int64)
        for number, stored in enumerate(lists):
            for position in np.flatnonzero(owner < 0).tolist():
                if (found := stored.row_of.get(images[position])) is not None:
                    owner[position], row[position] = number, found
        return Places(lists, owner, row)

    def open(self, images: Sequence[str], unit: str) -> dict[str, ArrayView]:
        """Open the arrays of a unit for images that are all stored, memory-mapped and checked."""
        places = self.places(images, unit)
        if len(places.missing):
            image, folder = images[places.missing[0]], Path(self._store.root).joinpath(*self._keys)
            raise StoreError(f"holds no {unit} of {image}", where=str(folder))
        opened: dict[int, dict[str, ArrayView]] = {
            number: places.lists[number].open(unit) for number in np.unique(places.owner).tolist()
        }
        if len(opened) == 1 and np.array_equal(places.row, np.arange(places.used[0].n)):
            return next(iter(opened.values()))
        ends = np.flatnonzero((np.diff(places.owner) != 0) | (np.diff(places.row) != 1)) + 1
        runs = [
            (int(places.owner[start]), int(places.row[start]), int(places.row[start]) + int(stop - start))
            for start, stop in zip([0, *ends], [*ends, len(images)], strict=True)
        ]
        names = sorted(next(iter(opened.values())))
        return {
            name: ArrayView.concat([opened[number][name].rows(start, stop) for number, start, stop in runs])
            for name in names
        }
