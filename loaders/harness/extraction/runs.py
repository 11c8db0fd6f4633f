"""The outputs of a model on a benchmark, in memory or read on demand, for an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError, UnusableError
from wordnet_splits.base.names import check_name
from wordnet_splits.base.untrusted import LONGEST_NAME
from wordnet_splits.benchmark.manifest import Part

from ..data.arrays import NEEDS_HEAD, Array, Arrays, Head
from ..detectors.softmax import log_sum_exp, logits_of
from ..models.class_map import ClassMap
from ..models.weights_origin import UNKNOWN_ORIGIN, WeightsOrigin


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
    """

    model: str
    model_key: str
    source: OutputSource
    name: str = ""
    weights: WeightsOrigin = UNKNOWN_ORIGIN
    device: str = ""
    user_named: bool = False
    allow_missing: bool = False

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
