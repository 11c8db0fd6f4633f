"""Dataclasses as JSON objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, cast


class Jsonable:
    """Base of dataclasses that are printed as a JSON object.

    ``derived`` names properties that follow the fields, ``omitted`` fields that are left out. Names that
    begin with an underscore are left out, too.
    """

    derived: ClassVar[tuple[str, ...]] = ()
    omitted: ClassVar[tuple[str, ...]] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and derived properties by name, converted by `to_json`."""
        names = [f.name for f in fields(cast(Any, self)) if f.name not in self.omitted]
        return {n: to_json(getattr(self, n)) for n in (*names, *self.derived) if not n.startswith("_")}


def to_json(value: object) -> Any:
    """Return a value that `json` can write: bytes in hex, sets sorted, paths and other objects as text."""
    if isinstance(value, Jsonable):
        return value.as_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Set):
        return sorted(map(to_json, value))
    if isinstance(value, Sequence):
        return [to_json(item) for item in value]
    return str(value)
