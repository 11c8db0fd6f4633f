"""The fitted state of a detector as JSON and named arrays, and back.

A state is a tree of named tuples, dataclasses, tuples, lists, dicts, arrays, numbers and texts. The JSON has
the names of classes, which are looked up in the module of the detector's class alone: a file imports nothing.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError

from .. import arrays
from ..arrays import Array, ArrayView

KIND = "kind"
SCALARS = (bool, int, str, type(None))


class NotStorableError(DataError):
    """A fitted state that is not made of arrays, numbers and texts."""


def pack_state(state: Any, implementation: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a state as a JSON tree, and its arrays by name.

    Raises
    ------
    NotStorableError : a part of the state is an object of another kind, such as a fitted estimator.
    """
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


def unpack_state(tree: Any, stored: Mapping[str, Array], implementation: Any, *, where: str) -> Any:
    """Return the state that `pack_state` packed.

    Raises
    ------
    DataError : the tree is malformed, or names an array or a class that is not there.
    """
    try:
        return _unpack(tree, stored, implementation)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        message = f"holds no fitted state of this detector: {type(error).__name__} {error}"
        raise DataError(message, where=where, hint="export the detector again") from error


def _unpack(tree: Any, stored: Mapping[str, Array], implementation: Any) -> Any:
    kind = tree[KIND]
    if kind == "value":
        return tree["value"]
    if kind in ("array", "view", "scalar", "float"):
        array = stored[tree["array"]]
        if kind == "array":
            return array
        return ArrayView.of(array) if kind == "view" else float(array) if kind == "float" else array[()]
    if kind in ("tuple", "list"):
        items = [_unpack(item, stored, implementation) for item in tree["items"]]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {key: _unpack(item, stored, implementation) for key, item in tree["items"]}
    cls = _class_named(tree["class"], implementation)
    if kind != "record" or cls is None or set(_fields(cls)) != set(tree["fields"]):
        raise ValueError(f"unknown part {tree.get('class', kind)!r}")
    return cls(**{name: _unpack(item, stored, implementation) for name, item in tree["fields"].items()})


def _class_named(name: str, implementation: Any) -> Any:
    """Return the record class of that name in the modules of a detector's class, None where there is none."""
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
