"""The folder of an exported detector: ``detector.json``, sealed, and ``arrays.safetensors``.

A fitted state is a tree of named tuples, dataclasses, tuples, lists, dicts, arrays, numbers and texts. The
JSON has the names of classes, looked up in the module of the detector's class alone: a file imports nothing.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.text_formats import (
    BenchmarkName,
    Count,
    Sha256,
    StrictModel,
    read_sealed,
    write_sealed,
)
from wordnet_splits.base.untrusted import GiB, check_file, sha256_of, user_errors
from wordnet_splits.metrics.conformal import ConformalGuarantee

from ..data import arrays
from ..data.arrays import Array, Arrays, ArrayView, Head
from ..evaluation.scoring import Fitted, confidence
from ..models.class_map import ClassMap, Mode

MOST_EXAMPLES: Final = 64
TOLERANCE: Final = 1e-4
"""Greatest change of an example's confidence, relative to it or to the range of the calibration scores."""
CONFIDENCES: Final = "examples"
PREFIX: Final = f"{CONFIDENCES}/"
KIND = "kind"
SCALARS = (bool, int, str, type(None))


class NotStorableError(DataError):
    """A fitted state that is not made of arrays, numbers and texts."""


def pack_state(state: Any, implementation: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a state as a JSON tree, and its arrays by name."""
    stored: dict[str, Array] = {}

    def pack(value: Any, name: str) -> dict[str, Any]:
        if isinstance(value, float) and math.isfinite(value) and not isinstance(value, np.generic):
            return {KIND: "value", "value": value}
        if type(value) in SCALARS:
            return {KIND: "value", "value": value}
        if isinstance(value, np.ndarray | ArrayView | np.generic | float):
            array = np.asarray(value)
            if array.dtype.kind not in "fiub" or array.itemsize > 8:
                raise NotStorableError(f"its fitted state holds an array of {array.dtype}")
            if not np.isfinite(array).all():
                raise NotStorableError("its fitted state holds NaN or infinity")
            stored[name] = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
            kinds = {ArrayView: "view", np.ndarray: "array", float: "float"}
            return {KIND: kinds.get(type(value), "scalar"), "array": name}
        if _is_record(type(value)) and _class_named(type(value).__name__, implementation) is type(value):
            fields = {field: pack(getattr(value, field), f"{name}.{field}") for field in _fields(type(value))}
            return {KIND: "record", "class": type(value).__name__, "fields": fields}
        if type(value) in (tuple, list):
            items = [pack(item, f"{name}.{number}") for number, item in enumerate(value)]
            return {KIND: type(value).__name__, "items": items}
        if type(value) is dict and all(isinstance(key, str) for key in value):
            pairs = [[key, pack(item, f"{name}.{n}")] for n, (key, item) in enumerate(value.items())]
            return {KIND: "dict", "items": pairs}
        raise NotStorableError(f"its fitted state holds {_article(type(value).__name__)}")

    return pack(state, "state"), stored


def unpack_state(
    tree: Any, stored: Mapping[str, Array], implementation: Any, *, classes: int, where: str
) -> Any:
    """Return the state that `pack_state` packed."""
    try:
        return _unpack(tree, stored, implementation, classes)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        message = f"cannot read the fitted state of this detector: {type(error).__name__} {error}"
        raise DataError(message, where=where, hint="export the detector again") from error


def _unpack(tree: Any, stored: Mapping[str, Array], implementation: Any, classes: int) -> Any:
    def unpack(tree: Any) -> Any:
        kind = tree[KIND]
        if kind == "value":
            return _scalar(tree["value"])
        if kind in ("array", "view", "scalar", "float"):
            array = stored[tree["array"]]
            if kind == "array":
                return array
            return ArrayView.of(array) if kind == "view" else float(array) if kind == "float" else array[()]
        if kind in ("tuple", "list"):
            items = [unpack(item) for item in tree["items"]]
            return tuple(items) if kind == "tuple" else items
        if kind == "dict":
            return {str(key): unpack(item) for key, item in tree["items"]}
        cls = _class_named(tree["class"], implementation)
        if kind != "record" or cls is None or set(_fields(cls)) != set(tree["fields"]):
            raise ValueError(f"unknown part {tree.get('class', kind)!r}")
        record = cls(**{name: unpack(item) for name, item in tree["fields"].items()})
        if isinstance(record, Head):
            weight, bias = record.weight.shape, record.bias.shape
            if len(weight) != 2 or (weight[0], *bias) != (classes, classes):
                raise ValueError(f"the head must have {classes} classes, got {weight} and {bias}")
        return record

    return unpack(tree)


def _scalar(value: Any) -> Any:
    if type(value) in SCALARS or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"a value of type {type(value).__name__}")


def _class_named(name: str, implementation: Any) -> Any:
    """Return the record class called ``name`` in the modules of a detector's class, None if it is absent."""
    classes = inspect.getmro(implementation) if inspect.isclass(implementation) else ()
    modules = [sys.modules.get(cls.__module__) for cls in classes if cls is not object]
    for module in [*modules, arrays]:
        cls = vars(module).get(name) if module is not None else None
        if inspect.isclass(cls) and _is_record(cls):
            return cls
    return None


def _is_record(cls: type[Any]) -> bool:
    return (issubclass(cls, tuple) and hasattr(cls, "_fields")) or dataclasses.is_dataclass(cls)


def _fields(cls: Any) -> tuple[str, ...]:
    if issubclass(cls, tuple):
        return tuple(cls._fields)
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)


def _article(name: str) -> str:
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


DESCRIPTION: Final = "detector.json"
ARRAYS: Final = "arrays.safetensors"
CALIBRATION: Final = "calibration"
"""Array of the calibration scores, ascending."""
AGAIN: Final = "export the detector again"
LARGEST_ARRAYS: Final = 256 * GiB
MOST_COLUMNS: Final = 1_000_000
"""Largest number of columns of an output (ImageNet-21K has 21,841 classes)."""


class Network(StrictModel):
    """The network whose outputs a detector scores.

    Attributes
    ----------
    key : fingerprint of its weights and architecture.
    spec : as `load_model` takes it, "" for an object.
    weights : file or name of its weights, "" for the default weights of ``spec``.
    """

    name: str
    key: str
    spec: str
    weights: str


class Columns(StrictModel):
    """The output columns that are classes: see `model.class_map.ClassMap`."""

    columns: list[Count] = Field(min_length=1)
    width: int = Field(ge=1, le=MOST_COLUMNS)
    restrict: Mode
    background: Count | None
    mapping: str

    @model_validator(mode="after")
    def _fits(self) -> Columns:
        used = [*self.columns, *([] if self.background is None else [self.background])]
        if len(set(used)) < len(used) or max(used) >= self.width:
            raise ValueError(f"columns must be distinct and below {self.width}")
        return self

    @classmethod
    def from_class_map(cls, class_map: ClassMap) -> Columns:
        """Describe a class map; every column is a class of a benchmark without labels."""
        return cls(
            columns=list(class_map.columns or class_map.class_columns),
            width=class_map.width,
            restrict=class_map.mode,
            background=class_map.background,
            mapping=class_map.origin,
        )

    @property
    def class_map(self) -> ClassMap:
        """The class map itself."""
        return ClassMap(tuple(self.columns), self.width, self.restrict, self.background, self.mapping)


class Preprocessing(StrictModel):
    """The transform of images: its key, its description in words, and its specification."""

    key: Sha256
    words: str
    spec: dict[str, Any]


class Benchmark(StrictModel):
    """The benchmark that a detector was fitted and calibrated on."""

    name: BenchmarkName
    version: Count
    images_fingerprint: str | None


class Calibration(StrictModel):
    """The threshold and its guarantee; see `wordnet_splits.metrics.conformal`.

    Attributes
    ----------
    requested : greatest acceptable rate of false alarms.
    false_alarms : the guaranteed rate, at most that.
    images, rank : number of calibration images, and rank of the threshold among them.
    threshold : images of lower confidence are flagged.
    groups : the sets of the images.
    """

    requested: float = Field(gt=0, lt=1)
    false_alarms: float
    images: Count
    rank: Count
    threshold: float = Field(allow_inf_nan=False)
    groups: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _follows(self) -> Calibration:
        guarantee = ConformalGuarantee.for_rate(self.requested, self.images)
        if (self.rank, self.false_alarms) != (guarantee.rank, guarantee.false_alarms):
            raise ValueError(
                f"{self.images} images and a rate of {self.requested:g} give rank {guarantee.rank} and "
                f"{guarantee.false_alarms:g} false alarms"
            )
        return self


class Description(StrictModel):
    """``detector.json``.

    Attributes
    ----------
    detector : label in the results.
    name, params : registered name or ``MODULE:NAME``, and parameters.
    view : ``raw``, or the resize spec of images before the transform.
    state : tree of the fitted state (`pack_state`).
    notes : conditions that weaken the guarantee.
    arrays : SHA-256 of ``arrays.safetensors``.
    software : versions of the packages of the export.
    """

    schema_: Literal[1] = Field(alias="schema")
    detector: str
    name: str
    params: dict[str, int | float | str | bool]
    chosen_on: str
    network: Network
    columns: Columns
    view: str
    transform: Preprocessing
    benchmark: Benchmark
    calibration: Calibration
    notes: list[str]
    software: dict[str, str]
    state: dict[str, Any]
    arrays: str = ""


def write_folder(
    folder: Path, description: Description, arrays: Mapping[str, Array], *, overwrite: bool
) -> tuple[Path, ...]:
    """Write a detector's folder in one step, and return its files."""
    save = need("safetensors.numpy", "torch", where=str(folder)).save
    with files.locked(folder, busy="another export is writing here"):
        files.restore(folder)
        refuse_folder(folder, overwrite=overwrite)
        with files.replacing_folder(folder) as part:
            files.write_bytes(part / ARRAYS, save(dict(arrays)))
            digest = sha256_of(part / ARRAYS, largest=LARGEST_ARRAYS)
            content = description.model_copy(update={"arrays": digest})
            write_sealed(part / DESCRIPTION, content.model_dump(mode="json", by_alias=True))
    return folder / DESCRIPTION, folder / ARRAYS


def refuse_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise OutputError for a folder that holds a detector (not with ``overwrite``), or other files."""
    files.refuse_folder(folder, (DESCRIPTION, ARRAYS), holding="a detector", overwrite=overwrite)


def read_folder(folder: Path) -> tuple[Description, dict[str, Array]]:
    """Return the content of a detector's folder; DataError for a file absent, malformed or altered."""
    if not (folder / DESCRIPTION).is_file():
        hint = "give the folder that `export-detector` wrote"
        raise DataError(f"no {DESCRIPTION} here", where=str(folder), hint=hint)
    description = read_sealed(folder / DESCRIPTION, Description, hint=AGAIN)
    path = folder / ARRAYS
    check_file(path, largest=LARGEST_ARRAYS)
    if sha256_of(path, largest=LARGEST_ARRAYS) != description.arrays:
        raise DataError("was altered: its checksum differs", where=str(path), hint=AGAIN)
    load_file = need("safetensors.numpy", "torch", where=str(folder)).load_file
    with user_errors("is not a safetensors file", where=str(path), hint=AGAIN):
        arrays = dict(load_file(str(path)))
    problem = _contradiction(description.calibration, arrays)
    if problem:
        raise DataError(problem, where=str(path), hint=AGAIN)
    return description, arrays


def _contradiction(calibration: Calibration, arrays: Mapping[str, Array]) -> str:
    """Return how the arrays contradict themselves or the description, or "".

    Checksums do not detect this: an attacker who changes the arrays can also rewrite the checksum.
    """
    scores = arrays.get(CALIBRATION)
    if scores is None or scores.shape != (calibration.images,) or scores.dtype != np.float32:
        return "its calibration scores are missing or malformed"
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            return f"{name} holds values that are not finite numbers"
    if (np.diff(scores) < 0).any():
        return "its calibration scores are not ascending"
    if calibration.threshold != float(scores[calibration.rank - 1]):
        return f"its threshold is not calibration score {calibration.rank}"
    return ""


class Examples(NamedTuple):
    """The arrays of some calibration images, and their confidences (n,), float32.

    The arrays must still give the confidences, so that an altered state, parameter or confidence contradicts
    the rest of the folder, whatever the detector keeps in its state.
    """

    arrays: Arrays
    confidences: Array

    @classmethod
    def select(cls, data: Arrays, scores: Array) -> Examples:
        """Return every n-th calibration image; those are in the order of their classes."""
        rows = np.unique(np.linspace(0, len(scores) - 1, min(MOST_EXAMPLES, len(scores))).astype(np.int64))
        arrays = {name: np.array(view[rows]) for name, view in data.items() if name != "labels"}
        return cls(Arrays(arrays), np.asarray(scores, np.float32)[rows])

    @classmethod
    def take_from(cls, stored: dict[str, Array], *, where: str) -> Examples:
        """Take the examples out of a folder's arrays; raise DataError if the arrays differ in length."""
        names = [name for name in stored if name.startswith(PREFIX)]
        try:
            arrays = Arrays({name.removeprefix(PREFIX): stored.pop(name) for name in names})
        except (DataError, TypeError) as error:  # TypeError: an array without axes
            raise DataError(f"its examples are malformed: {error}", where=where) from error
        return cls(arrays, stored.pop(CONFIDENCES, np.empty(0, np.float32)))

    def stored(self) -> Mapping[str, Array]:
        """Return the arrays of a folder."""
        named = {f"{PREFIX}{name}": np.asarray(view) for name, view in self.arrays.items()}
        return {**named, CONFIDENCES: self.confidences}

    def check(self, fitted: Fitted, calibration: Array, *, where: str, hint: str) -> None:
        """Raise DataError if the detector's confidences for its examples differ from the stored ones."""
        expected, count = self.confidences, min(MOST_EXAMPLES, len(calibration))
        if expected.shape != (count,) or self.arrays.n != count or not np.isin(expected, calibration).all():
            message = f"must hold {count} examples of its {len(calibration):,} calibration scores"
            raise DataError(message, where=where, hint=hint)
        try:
            found = np.asarray(confidence(fitted, self.arrays), np.float32)
        except DataError as error:
            raise DataError(f"cannot score its examples: {error.what}", where=where, hint=hint) from error
        scale = np.maximum(np.abs(expected), np.ptp(calibration))
        if not (np.abs(found - expected) <= TOLERANCE * scale).all():
            message = "its examples get other confidences than at the export"
            raise DataError(message, where=where, hint=hint)
