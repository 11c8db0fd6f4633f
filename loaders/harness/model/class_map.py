"""The map from columns of a model's output to labels of a benchmark: made by name, and applied to arrays."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.base.untrusted import read_text

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

    @property
    def has_numbers(self) -> bool:
        """Whether a class is identified or named by a number."""
        return any(label.class_id.isdecimal() or label.name.isdecimal() for label in self.labels)

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


ClassMapping = str | Path | Sequence[int] | Sequence[str] | Mapping[str, int]
"""A mapping from columns to classes, see `class_map`."""


def class_map(
    space: LabelSpace,
    width: int,
    *,
    classes: Sequence[str] | None = None,
    mapping: ClassMapping | None = None,
    restrict: str = "columns",
    background: int | str | None = None,
    where: str = "model",
) -> ClassMap:
    """Match the columns of a model's output with the labels of a benchmark.

    Parameters
    ----------
    space : the benchmark's labels.
    width : columns of the model's output.
    classes : the model's own class names or wnids, one per column (the background column may be left out).
    mapping : None: by `classes`, else column k is label k, which needs as many columns as labels;
        ``identity``: the same; a source's name: the columns are that source's classes in label
        order; one column per label; class_id -> column; one class name or wnid per column; or a file
        (.json with one of these, or text with one class per line).
    restrict : ``columns`` or ``full``, see `ClassMap`.
    background : ``last``, or the column of the background class.

    Raises
    ------
    DataError : labels without a column, or unmatched columns, which are listed.
    """
    if restrict not in ("columns", "full"):
        raise unknown("restriction", restrict, ("columns", "full"), where=where)
    dropped = _background(background, width, where)
    free = [c for c in range(width) if c != dropped]
    if isinstance(mapping, str | Path) and str(mapping) != "identity" and str(mapping) not in space.sources:
        mapping = read_mapping(Path(mapping), space)
    columns, origin = _columns(space, free, dropped, classes, mapping, where)
    return _checked(ClassMap(tuple(columns), width, cast(Mode, restrict), dropped, origin), space, where)


def read_mapping(path: Path, space: LabelSpace) -> Any:
    """Read a mapping from JSON, or from text with one class name or wnid per column."""
    if not path.is_file():
        raise unknown("mapping", str(path), ["identity", *space.sources])
    text = read_text(path)
    if path.suffix != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    value = parse_json(text, where=str(path))
    if not isinstance(value, list | dict):
        raise DataError("neither a list nor an object", where=str(path))
    return value


def _columns(
    space: LabelSpace,
    free: list[int],
    dropped: int | None,
    classes: Sequence[str] | None,
    mapping: Any,
    where: str,
) -> tuple[list[int], str]:
    """Return the column of each label, and the origin of the map."""
    labels = space.labels
    if mapping is None and classes is None:
        mapping = "identity"
    if mapping == "identity":
        if labels and len(free) != len(labels):  # the first columns of a wider model are other classes
            raise DataError(
                f"the model has {len(free)} classes, the benchmark {len(labels)} labels",
                where=where,
                hint="say which column is which class with --mapping: a file, or a source's name",
            )
        return free[: len(labels)], "identity"
    if mapping is None:
        return _by_name(labels, _spread(classes or (), free, dropped, where), where), "classes"
    if isinstance(mapping, str):
        return _by_name(
            labels, _spread(space.sources[mapping], free, dropped, where), where
        ), f"source:{mapping}"
    if isinstance(mapping, Mapping):
        missing = [label.class_id for label in labels if label.class_id not in mapping]
        _refuse_missing(missing, len(labels), sorted(set(mapping) - {x.class_id for x in labels}), where)
        return [int(mapping[label.class_id]) for label in labels], "given"
    if all(isinstance(entry, int | np.integer) for entry in mapping):
        if len(mapping) != len(labels):
            raise DataError(f"{len(mapping)} columns given for {len(labels)} labels", where=where)
        return [int(column) for column in mapping], "given"
    return _by_name(labels, _spread(mapping, free, dropped, where), where), "given"


def _spread(
    classes: Sequence[str], columns: list[int], dropped: int | None, where: str
) -> list[tuple[str, int]]:
    """Pair class names with columns; a background column may be named among them."""
    if dropped is not None and len(classes) == len(columns) + 1:
        classes = [name for column, name in enumerate(classes) if column != dropped]
    if len(classes) != len(columns):
        raise DataError(
            f"{len(classes)} class names for {len(columns)} columns",
            where=where,
            hint="name every column; the background column may be left out",
        )
    return list(zip(map(str, classes), columns, strict=True))


def _by_name(labels: Sequence[Label], name_columns: list[tuple[str, int]], where: str) -> list[int]:
    """Match labels with named columns by class_id or wnid, else by name, else by one of its synonyms."""
    readings: tuple[Callable[[str], list[str]], ...] = (
        lambda name: [name],
        lambda name: [_plain(name)],
        lambda name: [_plain(part) for part in name.split(",")],
    )
    tables: list[dict[str, set[int]]] = []
    for reading in readings:
        table: dict[str, set[int]] = {}
        for name, column in name_columns:
            for key in reading(name):
                table.setdefault(key, set()).add(column)
        tables.append(table)
    matches = [_find(label, tables) for label in labels]
    ambiguous = [f"{x.class_id} ({x.name})" for x, hits in zip(labels, matches, strict=True) if len(hits) > 1]
    if ambiguous:
        raise DataError(
            f"{len(ambiguous)} labels match several columns: {', '.join(ambiguous[:5])}",
            where=where,
            hint="give wnids instead of names, or the column of each label, with --mapping",
        )
    matched = {column for hits in matches for column in hits}
    missing = [f"{x.class_id} ({x.name})" for x, hits in zip(labels, matches, strict=True) if not hits]
    _refuse_missing(
        missing, len(labels), [name for name, column in name_columns if column not in matched], where
    )
    return [next(iter(hits)) for hits in matches]


def _find(label: Label, tables: Sequence[Mapping[str, set[int]]]) -> set[int]:
    exact, whole, part = tables
    attempts = [
        (exact, (label.class_id, *label.wnids)),
        (whole, (label.class_id, label.name, f"{label.name} ({label.class_id})")),  # see class_names
        (part, (label.name,)),
    ]
    for number, (table, keys) in enumerate(attempts):
        hits = {c for key in keys for c in table.get(key if number == 0 else _plain(key), ())}
        if hits:
            return hits
    return set()


def _refuse_missing(missing: Sequence[str], total: int, spare: Sequence[str], where: str) -> None:
    if missing:
        raise DataError(
            f"{len(missing)} of {total} labels have no column: {_some(missing)}; "
            f"{len(spare)} classes of the model are not labels: {_some(spare)}",
            where=where,
            hint="say which column is which class with --mapping",
        )


def _checked(result: ClassMap, space: LabelSpace, where: str) -> ClassMap:
    outside = [c for c in result.columns if not 0 <= c < result.width or c == result.background]
    if outside:
        raise DataError(
            f"columns {outside[:5]} are not classes of a {result.width}-column output", where=where
        )
    label_of: dict[int, int] = {}
    for label, column in enumerate(result.columns):
        if column in label_of:
            pair = [space.labels[i].class_id for i in (label_of[column], label)]
            raise DataError(f"labels {pair[0]} and {pair[1]} have the same column {column}", where=where)
        label_of[column] = label
    return result


def _background(background: int | str | None, width: int, where: str) -> int | None:
    if background is None:
        return None
    try:
        column = width - 1 if background == "last" else int(background)
    except ValueError:
        raise DataError(f"background {background!r} is neither 'last' nor a column", where=where) from None
    if not 0 <= column < width:
        raise DataError(f"background column {column} of an output of {width} columns", where=where)
    return column


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-/]+", " ", name).strip().casefold()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "") if names else "none"
