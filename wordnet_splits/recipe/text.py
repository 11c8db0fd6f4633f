"""Errors of a recipe's text: where in the file, and which key was probably meant."""

from __future__ import annotations

import difflib
import re
from typing import Any

from pydantic import BaseModel, ValidationError

from wordnet_splits.base.errors import RecipeError
from wordnet_splits.rules.model import operators_in_words


def explain_validation(error: ValidationError, text: str, where: str, model: type[BaseModel]) -> RecipeError:
    """Turn pydantic's report on ``model`` into one error: the first problem, its line, the nearest key."""
    problem = most_specific(error)
    location = [part for part in problem["loc"] if isinstance(part, int) or _is_key(part, text)]
    line = find_line(text, location)
    place = f"{where}, line {line}" if line else where
    path = ".".join(str(p) for p in problem["loc"] if isinstance(p, int) or re.fullmatch(r"[\w-]+", str(p)))
    if problem["type"] == "extra_forbidden":
        key = str(problem["loc"][-1])
        return RecipeError(
            f"unknown key {key!r}",
            where=place,
            near=difflib.get_close_matches(key, known_keys(model), n=2, cutoff=0.5),
            hint=operators_in_words() if "classes" in problem["loc"] else "see docs/recipes.md",
        )
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing":
        return RecipeError(
            f"the key {str(problem['loc'][-1])!r} is missing",
            where=place,
            hint=f"add it to {path.rpartition('.')[0] or 'the recipe'}",
        )
    return RecipeError(f"{path}: {message}" if path else message, where=place, hint="correct the recipe")


def most_specific(error: ValidationError) -> dict[str, Any]:
    """Return the problem to show: an unknown key before all, then the one deepest in the file."""
    problems: list[dict[str, Any]] = [dict(p) for p in error.errors(include_url=False)]
    extra = [p for p in problems if p["type"] == "extra_forbidden"]
    return max(extra or problems, key=lambda p: len(p["loc"]))  # the first of several that are as deep


def known_keys(model: type[BaseModel]) -> set[str]:
    """Return every key that a recipe of this schema can hold, at any depth."""
    keys = {"extends", "drop"}
    seen: set[type[BaseModel]] = set()

    def visit(part: type[BaseModel]) -> None:
        if part in seen:
            return
        seen.add(part)
        for name, field in part.model_fields.items():
            keys.add(field.alias or name)
            for inner in models_in(field.annotation):
                visit(inner)

    visit(model)
    return keys


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the pydantic models named in a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for part in getattr(annotation, "__args__", ()) for m in models_in(part)]


def find_line(text: str, location: list[str | int]) -> int | None:
    """Return the 1-based line of the key at ``location`` (table names, array indices, keys).

    Walks down the file: an array index moves to that ``[[table]]`` header, a name to its first use below.
    Inline tables stay on one line, so the last name found is the line to show.
    """
    lines = text.splitlines()
    row, found = 0, None
    for depth, part in enumerate(location):
        if isinstance(part, int):
            header = _header(str(location[depth - 1]))
            starts = [n for n, line in enumerate(lines) if header.match(line)]
            if depth and part < len(starts):
                row = found = starts[part]
            continue
        use = _use(part)
        nearest = next((n for n in range(row, len(lines)) if use.search(lines[n])), None)
        if nearest is not None:
            row = found = nearest
    return None if found is None else found + 1


def lines_below(text: str, table: str, key: str) -> list[int]:
    """Return the 1-based line of ``key`` below each ``[[table]]``, its header's where it is not there.

    One pass over the text, which may have a million lines and thousands of tables.
    """
    header, use = _header(table), _use(key)
    found: list[int] = []
    sought = False
    for number, line in enumerate(text.splitlines(), 1):
        if header.match(line):
            found.append(number)
            sought = True
        elif sought and use.search(line):
            found[-1] = number
            sought = False
    return found


def _header(table: str) -> re.Pattern[str]:
    return re.compile(r"^\s*\[\[\s*" + re.escape(table) + r"\s*\]\]")


def _use(key: str) -> re.Pattern[str]:
    return re.compile(r"(?<![\w-])[\"']?" + re.escape(key) + r"[\"']?\s*(=|\]|\.)")


def _is_key(part: Any, text: str) -> bool:
    """Say whether a location part is a key of the file rather than a name pydantic gives a union member."""
    return (
        isinstance(part, str) and re.search(r"(?<![\w-])" + re.escape(part) + r"(?![\w-])", text) is not None
    )
