"""The map from columns of a model's output to labels of a benchmark: made by name, and applied to arrays."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.datasets.catalog import Catalog, catalog_names, load_catalog
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy
from wordnet_splits.datasets.catalog.table import load_declared_catalog

from ..data.arrays import Array, Arrays, ArrayView
from .column_names import GivenMapping, checked_mapping, match_names, read_mapping

Mode = Literal["columns", "full"]
_WNID = re.compile(r"n\d{8}")


@dataclass(frozen=True)
class Label:
    """One label of a benchmark: the class as named by the publisher of its source."""

    class_id: str
    name: str
    wnids: tuple[str, ...] = ()
    vocabulary: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    hierarchy: OwnHierarchy | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class LabelSpace:
    """The labels of a benchmark, 0..K-1, and the classes of its sources, in label order.

    Attributes
    ----------
    labels : the class of each label.
    sources : source -> the class ids of its whole catalog, in the publisher's label order. Sets given in
        Python have no catalog.
    """

    labels: tuple[Label, ...]
    sources: Mapping[str, tuple[str, ...]]

    def classes_of(self, source: str) -> tuple[str, ...] | None:
        """Return the class ids of a whole catalog, None unless its columns can be matched with the labels.

        They can for the benchmark's own sources, and for shipped catalogs whose class ids are wnids: these
        match labels with that class id or synset, and nothing else.
        """
        if source in self.sources or source not in catalog_names():
            return self.sources.get(source)
        classes = tuple(entry.class_id for entry in load_catalog(source))
        return classes if all(map(_WNID.fullmatch, classes)) else None

    def is_covered_by(self, source: str) -> bool:
        """Whether every label can be matched with a class of `classes_of`, without any other information."""
        if source in self.sources:
            return True
        has_wnids = bool(self.labels) and all(x.wnids or _WNID.fullmatch(x.class_id) for x in self.labels)
        return has_wnids and self.classes_of(source) is not None

    @property
    def has_numbers(self) -> bool:
        """Whether a class is identified or named by a number."""
        return any(label.class_id.isdecimal() or label.name.isdecimal() for label in self.labels)

    @classmethod
    def of(
        cls,
        classes: pa.Table,
        declarations: Mapping[str, Declaration] = MappingProxyType({}),
        hierarchy: OwnHierarchy | None = None,
    ) -> LabelSpace:
        """Read the labels from a class table; its benchmark's declared datasets and own hierarchy, if any."""
        columns = [
            classes.column(c).to_pylist() for c in ("source", "class_id", "name", "wnids", "role", "label")
        ]
        texts: dict[str, set[str]] = {}
        for source, class_id, name in zip(*columns[:3], strict=True):
            texts.setdefault(source, set()).update((class_id, name))
        vocabularies = {source: frozenset(of_source) for source, of_source in texts.items()}
        labels: dict[int, Label] = {}
        for source, class_id, name, wnids, role, label in zip(*columns, strict=True):
            if role == "id" and label is not None and label >= 0:
                nodes = tuple(wnids or ())
                labels.setdefault(label, Label(class_id, name, nodes, vocabularies[source], hierarchy))
        if sorted(labels) != list(range(len(labels))):
            raise DataError(f"labels {sorted(labels)[:5]}... of the class table are not 0..K-1")
        catalogs = {name: _catalog(name, declarations) for name in sorted(texts)}
        order = {name: tuple(c.class_id for c in catalog) for name, catalog in catalogs.items() if catalog}
        return cls(tuple(labels[label] for label in range(len(labels))), order)


def _catalog(source: str, declarations: Mapping[str, Declaration]) -> Catalog | None:
    if source in declarations:
        return load_declared_catalog(declarations[source])
    return load_catalog(source) if source in catalog_names() else None


@dataclass(frozen=True)
class ClassMap:
    """A model's output columns as labels of a benchmark.

    Attributes
    ----------
    columns : the column of each label; empty for a benchmark without labels, where every column counts.
    width : columns of the model's output.
    mode : ``columns``: softmax over the labels' columns alone; ``full``: over all columns, a prediction
        outside the labels' columns counting as wrong.
    background : column of the background class, dropped after softmax; None without a background class.
    origin : origin of the map: ``identity``, ``classes``, ``source:NAME`` or ``given``.

    The features are never restricted; the head's rows match the columns of the logits.
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
        """Return the map's settings as stored in results; ``order`` identifies the column of each label."""
        return {
            "restrict": self.mode,
            "columns": len(self.class_columns),
            "of": self.width,
            "background": self.background,
            "mapping": self.origin,
            "order": columns_key(self.columns),
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
        ``identity``: the same; the name of a source, of the benchmark or with wnids as class ids (see
        `LabelSpace.classes_of`): the columns are all its classes in its publisher's order; one column per
        label; class id, wnid or name -> column; one class per column; or a file, see
        `column_names.read_mapping`.
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
    given: GivenMapping | str | None = None
    spellings = [[label.class_id for label in space.labels]]
    if isinstance(mapping, str | Path):
        given, names = str(mapping), ("identity", *space.sources)
        if given not in names and space.classes_of(given) is None:
            where, given = given, read_mapping(Path(mapping), names)
            spellings.append([str(label) for label in range(len(space.labels))])
    elif mapping is not None:
        given = checked_mapping(mapping, where=where)
    if isinstance(given, list):
        _refuse_two_readings(given, spellings, free, where)
    columns, origin = _columns(space, free, dropped, classes, given, where)
    return _checked(ClassMap(tuple(columns), width, cast(Mode, restrict), dropped, origin), space, where)


def _columns(
    space: LabelSpace,
    free: list[int],
    dropped: int | None,
    classes: Sequence[str] | None,
    mapping: GivenMapping | str | None,
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
                hint="say which column is which class with --mapping (mapping=): a file, or a source's name",
            )
        return free[: len(labels)], "identity"
    if mapping is None:
        mapping, origin = list(classes or ()), "classes"
    elif isinstance(mapping, str):
        mapping, origin = list(space.classes_of(mapping) or ()), f"source:{mapping}"
    else:
        origin = "given"
    if isinstance(mapping, dict):
        return match_names(labels, list(mapping.items()), where=where), origin
    columns = [entry for entry in mapping if isinstance(entry, int)]
    if not columns or len(columns) < len(mapping):
        names = _spread(list(map(str, mapping)), free, dropped, where)
        return match_names(labels, names, where=where), origin
    if len(columns) != len(labels):
        raise DataError(f"{len(columns)} columns given for {len(labels)} labels", where=where)
    return columns, origin


def _refuse_two_readings(
    given: Sequence[str] | Sequence[int], spellings: Sequence[Sequence[str]], free: Sequence[int], where: str
) -> None:
    """Raise DataError for numbers that may be the column of each label or the class of each column.

    ``spellings`` are lists of texts that may name the labels, in label order.
    """
    texts = list(map(str, given))
    for classes in spellings if all(isinstance(column, int) for column in given) else ():
        readable = len(texts) == len(free) and sorted(texts) == sorted(classes)
        if readable and [free[texts.index(name)] for name in classes] != given:
            raise DataError(
                "a list of numbers may mean the class of each column or the column of each class",
                where=where,
                hint='give classes as text, ["3", "0"], or from class to column, {"3": 0, "0": 1}',
            )


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
    text = str(background)
    if isinstance(background, bool) or not re.fullmatch(r"-?[0-9]{1,9}|last", text):
        raise DataError(f"background {printable(text)!r} is neither 'last' nor a column", where=where)
    column = width - 1 if text == "last" else int(text)
    if not 0 <= column < width:
        raise DataError(f"background column {column} of an output of {width} columns", where=where)
    return column
