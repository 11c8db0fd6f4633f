"""Errors in a recipe's text: the line, and the key that was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.rules import known_keys as table_keys

VARIANT_KEYS = ("extends", "drop")
"""Keys of a recipe's file that no schema has: they are resolved before it is validated."""


def explain_validation(error: ValidationError, text: str, where: str, model: type[BaseModel]) -> RecipeError:
    """Return one error for pydantic's report on ``model``: the first problem, its line, the nearest key."""
    problem = most_specific(error)
    location = [part for part in problem["loc"] if isinstance(part, int) or _is_key(part, text)]
    line = find_line(text, location)
    where = f"{where}, line {line}" if line else where
    path = ".".join(str(p) for p in problem["loc"] if isinstance(p, int) or re.fullmatch(r"[\w-]+", str(p)))
    if problem["type"] == "extra_forbidden":
        key, keys = str(problem["loc"][-1]), keys_at(model, problem["loc"][:-1])
        return RecipeError(
            f"{key!r} is a key of another table" if key in known_keys(model) else f"unknown key {key!r}",
            where=where,
            near=difflib.get_close_matches(key, keys, n=1, cutoff=0.5),
            hint="keys here: " + ", ".join(keys),
        )
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing":
        return RecipeError(
            f"the key {str(problem['loc'][-1])!r} is missing",
            where=where,
            hint=f"add it to {path.rpartition('.')[0] or 'the recipe'}",
        )
    return RecipeError(f"{path}: {message}" if path else message, where=where, hint="correct the recipe")


def most_specific(error: ValidationError) -> dict[str, Any]:
    """Return the problem to report: an unknown key before others, then the deepest in the file."""
    problems: list[dict[str, Any]] = [dict(p) for p in error.errors(include_url=False)]
    extra = [p for p in problems if p["type"] == "extra_forbidden"]
    return max(extra or problems, key=lambda p: len(p["loc"]))  # the first of equally deep ones


def keys_at(model: type[BaseModel], location: Sequence[int | str]) -> tuple[str, ...]:
    """Return the keys of the table at a location in a recipe of this schema, in the schema's order."""
    for part in location:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        if part in fields:  # not an array index, nor the name of a split
            model = next(iter(models_in(fields[str(part)].annotation)), model)
    return table_keys(model) if location else (*VARIANT_KEYS, *table_keys(model))


def known_keys(model: type[BaseModel]) -> set[str]:
    """Return every key of a recipe of this schema, at any depth."""
    keys = {*VARIANT_KEYS}
    visited: set[type[BaseModel]] = set()

    def visit(part: type[BaseModel]) -> None:
        if part in visited:
            return
        visited.add(part)
        for name, field in part.model_fields.items():
            keys.add(field.alias or name)
            for inner in models_in(field.annotation):
                visit(inner)

    visit(model)
    return keys


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the pydantic models in a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for part in getattr(annotation, "__args__", ()) for m in models_in(part)]


def find_line(text: str, location: list[str | int]) -> int | None:
    """Return the 1-based line of the key at ``location`` (table names, array indices, keys).

    An array index leads to that ``[[table]]`` header, a name to its first use below. Inline tables are on one
    line, so the line of the last name is returned.
    """
    lines = text.splitlines()
    row, match = 0, None
    for depth, part in enumerate(location):
        if isinstance(part, int):
            header = _header(str(location[depth - 1]))
            starts = [n for n, line in enumerate(lines) if header.match(line)]
            if depth and part < len(starts):
                row = match = starts[part]
            continue
        use = _use(part)
        nearest = next((n for n in range(row, len(lines)) if use.search(lines[n])), None)
        if nearest is not None:
            row = match = nearest
    return None if match is None else match + 1


def lines_below(text: str, table: str, key: str) -> list[int]:
    """Return the 1-based line of ``key`` in each ``[[table]]``, or the header's line if the key is absent.

    One pass over the text, which may have a million lines and thousands of tables.
    """
    header, use = _header(table), _use(key)
    numbers: list[int] = []
    searching = False
    for number, line in enumerate(text.splitlines(), 1):
        if header.match(line):
            numbers.append(number)
            searching = True
        elif searching and use.search(line):
            numbers[-1] = number
            searching = False
    return numbers


def _header(table: str) -> re.Pattern[str]:
    return re.compile(r"^\s*\[\[\s*" + re.escape(table) + r"\s*\]\]")


def _use(key: str) -> re.Pattern[str]:
    return re.compile(r"(?<![\w-])[\"']?" + re.escape(key) + r"[\"']?\s*(=|\]|\.)")


def _is_key(part: Any, text: str) -> bool:
    """Return whether a location part is a key of the file, not a name that pydantic gives a union member."""
    return (
        isinstance(part, str) and re.search(r"(?<![\w-])" + re.escape(part) + r"(?![\w-])", text) is not None
    )
