"""The outputs of a model on sets of images, for an evaluation, and their store, which finds them by image.

The store keeps lists of images in fixed shards, each written atomically with checksum and settings::


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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, UnusableError
from wordnet_splits.base.names import check_name
from wordnet_splits.base.untrusted import LONGEST_NAME
from wordnet_splits.benchmark.manifest import Part
from wordnet_splits.datasets.catalog import catalog_names

from ..data.arrays import NEEDS_HEAD, Array, Arrays, ArrayView, Head
from ..detectors.softmax import log_sum_exp, logits_of
from ..models.class_map import ClassMap
from ..models.origin import UNKNOWN_ORIGIN, WeightsOrigin
from .stored_list import LIST, SHARD_ROWS, StoredList, StoreError, list_key


@dataclass(frozen=True, eq=False)
class GroupOutputs:
    """One set of images and a model's outputs on them.

    Attributes
    ----------
    table : the image rows (the manifest's image table), in the order of the arrays.
    arrays : the arrays of detectors, see `arrays`; logits restricted by the class map.
    class_map : map from columns to labels; None where column k of the logits is label k.
    head : the linear classifier head, rows as the columns of the logits; None without a linear head.
    transform_key, transform : key and description of the images' transform.
    notes : deviations from an undisturbed computation.
    shape : (3, h, w) of the model's inputs, () where unknown.
    """

    table: pa.Table
    arrays: Arrays
    class_map: ClassMap | None = None
    head: Head | None = None
    transform_key: str = ""
    transform: str = ""
    notes: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.arrays.n != self.table.num_rows:
            raise DataError(f"{self.arrays.n:,} rows of arrays for {self.table.num_rows:,} images")

    @property
    def labels(self) -> Array:
        """The benchmark's label (n,) of each image, -1 for images without label."""
        return np.asarray(self.table["label"].to_numpy())

    @property
    def classes(self) -> ClassMap | None:
        """The class map, by default one column per label; None without logits."""
        if self.class_map is not None or "logits" not in self.arrays:
            return self.class_map
        width = self.arrays["logits"].shape[1]
        return ClassMap(tuple(range(width)), width)


Need = Any
"""The name of an array, the name of a probe for all its arrays, or a probe with fitted state."""


class OutputSource(Protocol):
    """Reads the outputs of a network on sets of images."""

    def read(self, split: str, name: str, needs: frozenset[Need]) -> GroupOutputs:
        """Return the outputs on one set, with at least the needed arrays."""

    def require(self, split: str, name: str, needs: frozenset[Need] = frozenset()) -> None:
        """Raise UnusableError if a set has no images, or a needed array is unavailable."""

    def reading(self, images: int) -> AbstractContextManager[None]:
        """Show reading as a single progress task of ``images`` images."""


@dataclass(frozen=True, eq=False)
class GivenOutputs:
    """Outputs in memory, by (split, group)."""

    model: str
    groups: Mapping[Part, GroupOutputs]

    def read(self, split: str, name: str, needs: frozenset[Need] = frozenset()) -> GroupOutputs:
        """Return the outputs on one set."""
        if (split, name) not in self.groups:
            raise UnusableError(f"there are no outputs for {name}/{split}", where=self.model)
        return self.groups[split, name]

    def require(self, split: str, name: str, needs: frozenset[Need] = frozenset()) -> None:
        """Raise UnusableError if a set, an array or the head was not given."""
        outputs = self.read(split, name)
        arrays = outputs.arrays
        missing = [
            str(need)
            for need in needs - {"head"}
            if not isinstance(need, str) or (need not in arrays and not arrays.under(need))
        ]
        if missing:
            message = f"needs {', '.join(sorted(missing))}, which is not there"
            raise UnusableError(message, where=self.model)
        if "head" in needs and outputs.head is None:
            raise UnusableError(NEEDS_HEAD, where=self.model)

    def reading(self, images: int) -> AbstractContextManager[None]:
        """Return a context without a progress task: nothing is read."""
        return nullcontext()


def run_title(model: str, network: str) -> str:
    """Return the title of a network for messages, with its model's name."""
    return network if network.startswith(model) else f"{model} ({network})"


@dataclass(frozen=True, eq=False)
class ModelRun:
    """One network on one benchmark: a model, or one of its runs (a seed, an optimizer).

    Attributes
    ----------
    model : the model; results average over its runs.
    model_key : key of this network, "" for a function without a name: it then follows from its outputs.
    source : reads its outputs, computing missing arrays.
    name : name of this network, by default the model's name.
    weights, device : origin of its weights, and its device.
    user_named : whether the user named the model.
    allow_missing : whether a detector that fits on missing images is left out, with a note.
    prompts : digest of the class prompts of a zero-shot model, "" for other models.
    """

    model: str
    model_key: str
    source: OutputSource
    name: str = ""
    weights: WeightsOrigin = UNKNOWN_ORIGIN
    device: str = ""
    user_named: bool = False
    allow_missing: bool = False
    prompts: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.model)
        for kind, name in (("model", self.model), ("run", self.name)):
            check_name(kind, name, where="results", longest=LONGEST_NAME)

    @property
    def title(self) -> str:
        """Title of the network for messages."""
        return run_title(self.model, self.name)

    @classmethod
    def of(cls, model: str, groups: Mapping[Part, GroupOutputs], **attributes: Any) -> ModelRun:
        """Return a run over arrays in memory, by (split, group)."""
        source = GivenOutputs(attributes.get("name") or model, groups)
        return cls(model, source=source, **{"model_key": "", **attributes})

    def group(self, split: str, name: str, needs: Iterable[Need] = ()) -> GroupOutputs:
        """Return the model's outputs on a split's group."""
        return self.source.read(split, name, frozenset(needs))

    def require(self, split: str, name: str, needs: Iterable[Need] = ()) -> None:
        """Raise UnusableError if a group has no images, or a needed array is unavailable."""
        self.source.require(split, name, frozenset(needs))


class Prediction(NamedTuple):
    """Predictions of a model for n images.

    Attributes
    ----------
    label : (n,) int32 predicted class; -1 for a column that is not a class of the benchmark.
    of_target : (n,) float32 softmax of the image's class, NaN where it has no label.
    greatest : (n,) float32, the greatest softmax over the benchmark's classes.
    of_predicted : (n,) float32, the softmax of the predicted column.
    log_target : (n,) float32, the logarithm of ``of_target``, which may be 0 in float32.
    squared_norm : (n,) float32, the sum of the squares of all softmax probabilities.
    """

    label: Array
    of_target: Array
    greatest: Array
    of_predicted: Array
    log_target: Array
    squared_norm: Array


def predict(group: GroupOutputs, name: str = "") -> Prediction | None:
    """Return the predictions of a model on a group; None without logits."""
    class_map = group.classes
    if class_map is None:
        return None
    if class_map.columns and group.labels.max(initial=-1) >= len(class_map.columns):
        raise DataError(
            f"label {int(group.labels.max())} of a model with {len(class_map.columns)} classes", where=name
        )
    positions = class_map.positions(group.labels)
    parts = [Prediction(np.empty(0, np.int32), *(np.empty(0, np.float32) for _ in Prediction._fields[1:]))]
    start = 0
    for chunk in group.arrays.chunks():
        parts.append(_predicted(chunk, positions[start : start + chunk.n], class_map))
        start += chunk.n
    return Prediction(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _predicted(data: Arrays, target: Array, class_map: ClassMap) -> Prediction:
    """Return the predictions of a chunk; ``target`` (n,) is the column of each image's class, or -1."""
    logits, background = logits_of(data)
    every = logits if background is None else np.column_stack([logits, background])
    total = log_sum_exp(every)
    target_logits = np.where(target >= 0, logits[np.arange(len(target)), target], np.nan)
    label_columns = (
        class_map.positions(np.arange(len(class_map.columns))) if class_map.columns else slice(None)
    )
    return Prediction(
        class_map.predictions(logits).astype(np.int32),
        np.exp(target_logits - total).astype(np.float32),
        np.exp(logits[:, label_columns].max(axis=1) - total).astype(np.float32),
        np.exp(logits.max(axis=1) - total).astype(np.float32),
        (target_logits - total).astype(np.float32),
        np.exp(2 * (every - total[:, None])).sum(axis=1).astype(np.float32),
    )


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


def outputs_key(groups: Iterable[GroupOutputs]) -> str:
    """Return the key of a model that is known by its outputs alone: the SHA-256 of all outputs."""
    state = hashlib.sha256()
    for outputs in groups:
        for name in sorted({"features", "logits"} & set(outputs.arrays)):
            for chunk in outputs.arrays.chunks():
                state.update(np.ascontiguousarray(chunk[name]).tobytes())
    return state.hexdigest()
