"""Dataclasses as JSON: fields, derived properties, and values of every kind."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.base.jsonable import Jsonable, to_json


@dataclass(frozen=True)
class Part:
    digest: bytes
    path: Path


@dataclass(frozen=True)
class Result(Jsonable):
    name: str
    parts: tuple[Part, ...]
    counts: dict[int, float | None]
    seen: frozenset[str] = frozenset()
    table: Any = field(default=None, repr=False)
    _cache: int = 3

    omitted: ClassVar = ("table",)
    derived: ClassVar = ("ok",)

    @property
    def ok(self) -> bool:
        return not self.seen


def test_fields_then_derived_properties() -> None:
    result = Result("a", (Part(b"\x01\xff", Path("x/y")),), {1: None}, frozenset({"c", "b"}), object())
    expected = {
        "name": "a",
        "parts": [{"digest": "01ff", "path": "x/y"}],
        "counts": {"1": None},
        "seen": ["b", "c"],
        "ok": False,
    }
    assert list(result.as_dict().items()) == list(expected.items())
    assert json.loads(json.dumps(result.as_dict())) == expected


def test_a_jsonable_inside_another_says_itself_what_it_is() -> None:
    assert to_json([Result("a", (), {})])[0]["ok"] is True
