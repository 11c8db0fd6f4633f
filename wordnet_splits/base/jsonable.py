"""Dataclasses as the JSON that commands print: their fields, and the properties that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, cast


class Jsonable:
    """Base of dataclasses that are printed as a JSON object.

    ``derived`` names the properties that follow the fields, ``omitted`` the fields that are left out. Names
    that begin with an underscore are left out, too.
    """

    derived: ClassVar[tuple[str, ...]] = ()
    omitted: ClassVar[tuple[str, ...]] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and derived properties by name, as `to_json` makes them."""
        every = (f.name for f in fields(cast(Any, self)))
        names = [name for name in every if name not in self.omitted and not name.startswith("_")]
        return {name: to_json(getattr(self, name)) for name in (*names, *self.derived)}


def to_json(value: object) -> Any:
    """Return a value as `json` takes it: paths and their like as text, bytes in hex, sets sorted."""
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
