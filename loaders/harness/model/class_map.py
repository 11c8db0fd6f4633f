"""The map from columns of a model's output to labels of a benchmark, and the treatment of other columns."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.base.errors import DataError

from ..arrays import Array, Arrays, ArrayView

Mode = Literal["columns", "full"]


@dataclass(frozen=True)
class Label:
    """One label of a benchmark: the class as named by the publisher of its source."""

    class_id: str
    name: str
    wnids: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelSpace:
    """The labels of a benchmark, 0..K-1, and the classes of its sources, in label order.

    Attributes
    ----------
    labels : the class of each label.
    sources : source -> the class_ids of its whole catalog, sorted: the label order of the ImageNet family and
        of every source whose classes are numbered by name.
    """

    labels: tuple[Label, ...]
    sources: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, classes: pa.Table) -> LabelSpace:
        """Read the labels from a benchmark's class table."""
        columns = [
            classes.column(c).to_pylist() for c in ("source", "class_id", "name", "wnids", "role", "label")
        ]
        labels: dict[int, Label] = {}
        sources: dict[str, set[str]] = {}
        for source, class_id, name, wnids, role, label in zip(*columns, strict=True):
            sources.setdefault(source, set()).add(class_id)
            if role == "id" and label is not None and label >= 0:
                labels.setdefault(label, Label(class_id, name, tuple(wnids or ())))
        if sorted(labels) != list(range(len(labels))):
            raise DataError(f"labels {sorted(labels)[:5]}... of the class table are not 0..K-1")
        ordered = {source: tuple(sorted(ids)) for source, ids in sorted(sources.items())}
        return cls(tuple(labels[label] for label in range(len(labels))), ordered)


@dataclass(frozen=True)
class ClassMap:
    """A model's output columns as labels of a benchmark.

    Attributes
    ----------
    columns : the column of each label. A benchmark without labels has none, and every column counts.
    width : columns of the model's output.
    mode : ``columns``: softmax over the labels' columns alone; ``full``: over all columns, a prediction
        outside the labels' columns counting as wrong.
    background : column of the background class, dropped after softmax; None where there is none.
    origin : origin of the map: ``identity``, ``classes``, ``source:NAME`` or ``given``.

    The features are never restricted; the head's rows are those of the logits.
    """

    columns: tuple[int, ...]
    width: int
    mode: Mode = "columns"
    background: int | None = None
    origin: str = "identity"

    @property
    def class_columns(self) -> tuple[int, ...]:
        """The columns that detectors get as logits, in order."""
        if self.mode == "columns" and self.columns:
            return self.columns
        return tuple(c for c in range(self.width) if c != self.background)

    @property
    def softmax_columns(self) -> tuple[int, ...]:
        """The columns of the softmax: `class_columns`, and the background column last."""
        return self.class_columns if self.background is None else (*self.class_columns, self.background)

    @property
    def identity(self) -> bool:
        """Whether softmax uses every column, in order."""
        return self.softmax_columns == tuple(range(self.width))

    @property
    def key(self) -> str:
        """Eight hex digits that identify the columns of the softmax, which gradients depend on."""
        return columns_key(self.softmax_columns)

    def positions(self, labels: npt.ArrayLike) -> Array:
        """Return the column of `class_columns` of each label (n,), -1 for images without one."""
        labels = np.asarray(labels, dtype=np.int64)
        if not self.columns:
            return np.full(labels.shape, -1, np.int64)
        position = {column: i for i, column in enumerate(self.class_columns)}
        table = np.array([position[column] for column in self.columns], dtype=np.int64)
        return np.where(labels >= 0, table[np.maximum(labels, 0)], -1)

    def predictions(self, logits: npt.ArrayLike) -> Array:
        """Return the predicted labels (n,) of logits over `class_columns`; -1 for columns without one."""
        label = np.full(len(self.class_columns), -1, dtype=np.int64)
        label[self.positions(np.arange(len(self.columns)))] = np.arange(len(self.columns))
        return np.asarray(label[np.asarray(logits).argmax(axis=1)])

    def arrays(self, stored: Arrays, labels: npt.ArrayLike | None = None) -> Arrays:
        """Return the arrays that detectors get: logits restricted, features unchanged.

        Parameters
        ----------
        stored : arrays over all columns; every array called ``logits``, also of a probe, is restricted.
            Arrays that a probe computed for these columns (``[...,columns=KEY]``) get the probe's plain name.
        labels : (n,) the benchmark's labels, where detectors may see them (train and val), converted to
            columns of the logits.
        """
        out: dict[str, ArrayView | Array] = {}
        for name in sorted(stored, key=lambda n: (COLUMNS.search(n) is not None, n)):  # plain names first
            columns_match = COLUMNS.search(name)
            if columns_match and columns_match[1] != self.key:
                continue
            view = stored[name]
            plain = COLUMNS.sub("", name)
            out[plain] = self._restrict(view) if name.rpartition("/")[2] == "logits" else view
        if self.background is not None and "logits" in stored:
            out["background"] = stored["logits"].columns([self.background])[:, 0]
        if labels is not None:
            out["labels"] = self.positions(labels)
        return Arrays(out)

    def record(self) -> dict[str, Any]:
        """Return the map's settings as stored in results."""
        return {
            "restrict": self.mode,
            "columns": len(self.class_columns),
            "of": self.width,
            "background": self.background,
            "mapping": self.origin,
        }

    def _restrict(self, view: ArrayView) -> ArrayView:
        if view.shape[-1] != self.width:
            raise DataError(f"logits of {view.shape[-1]} columns where the model gives {self.width}")
        return view if self.class_columns == tuple(range(self.width)) else view.columns(self.class_columns)


COLUMNS = re.compile(r",columns=([0-9a-f]{8})(?=\])")


def columns_key(columns: Iterable[int]) -> str:
    """Return eight hex digits that identify a sequence of columns."""
    return hashlib.sha256(json.dumps(list(columns)).encode()).hexdigest()[:8]
