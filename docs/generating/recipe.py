"""The keys of a recipe, from its models: types, defaults, and documentation."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from generating.markdown import attributes, sections, spoken, table
from wordnet_splits.base import about
from wordnet_splits.benchmark.recipe import schema as recipe
from wordnet_splits.benchmark.recipe import tables
from wordnet_splits.benchmark.rules import context, engine
from wordnet_splits.benchmark.rules import syntax as model
from wordnet_splits.benchmark.rules.operators import selection, similarity
from wordnet_splits.benchmark.rules.registry import OPERATORS
from wordnet_splits.datasets.catalog import declarations as declared_sources
from wordnet_splits.datasets.catalog import own_hierarchy

TABLES: dict[str, type[BaseModel]] = {
    "The file": recipe.Recipe,
    "[hierarchy]": own_hierarchy.OwnHierarchy,
    "[[group]]": tables.Group,
    "images": tables.ImageRule,
    "clear_of": tables.PairTable,
    "noise": tables.Noise,
    "[[known_leak]]": tables.KnownLeak,
    "normalise": tables.Normalisation,
    "published_list": tables.PublishedList,
    "[about]": about.About,
    "authors": about.Author,
    "[[source]]": declared_sources.Declaration,
    "columns": declared_sources.Columns,
}
FILLED_IN = {"draw": "the name"}
"""Keys of the file that reading fills in before the model sees them."""
NO_DEFAULTS: Mapping[str, str] = types.MappingProxyType({})
OPTIONS: dict[str, type[BaseModel]] = {
    "keyword_overlap, clear_of": context.KeywordOverlap,
    "similarity": similarity.SimilarityBound,
    "slice": selection.Slice,
    "siblings": selection.Siblings,
    "held_out": selection.HeldOut,
}


def lines() -> Iterator[str]:
    """Yield the tables of the file, then the operators of ``classes``."""
    for title, part in TABLES.items():
        if part is recipe.Recipe:
            yield from section(f"## {title}", part, FILLED_IN)
        else:
            yield from section(f"## `{title}`", part)
    yield from section("## `classes`", model.ClassRule)
    yield "## Operators of `classes`"
    yield ""
    for name, field in model.FIELDS.items():
        yield f"### `{name}`"
        yield ""
        yield f"*{model.MEANINGS[name].capitalize()}.* Takes {kind(model.Expression.model_fields[field])}."
        yield ""
        yield spoken(sections(engine.COMBINATIONS.get(name) or OPERATORS[name].judge)[""])
        yield ""
        if name == "overlaps":
            yield from keys(model.Expression, attributes(model.Expression))
    for title, part in OPTIONS.items():
        yield from section(f"### Keys of `{title.replace(', ', '` and `')}`", part)


def section(title: str, part: type[BaseModel], defaults: Mapping[str, str] = NO_DEFAULTS) -> Iterator[str]:
    """Yield a model's docstring and keys under a heading."""
    yield title
    yield ""
    yield spoken(sections(part)[""])
    yield ""
    yield from keys(part, attributes(part), defaults)


def keys(
    part: type[BaseModel], texts: dict[str, str], defaults: Mapping[str, str] = NO_DEFAULTS
) -> Iterator[str]:
    """Yield the table of the keys that are described; ``defaults`` come before the model's."""
    by_key = {field.alias or name: field for name, field in part.model_fields.items()}
    rows = [
        (f"`{key}`", kind(by_key[key]), defaults.get(key) or default(by_key[key]), text)
        for key, text in texts.items()
    ]
    yield from table(("key", "value", "default", "what"), rows)


def default(field: FieldInfo) -> str:
    """Return a field's default in TOML, or an empty text."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    return "" if value in (None, "", (), {}) or isinstance(value, BaseModel) else f"`{json.dumps(value)}`"


def kind(field: FieldInfo) -> str:
    """Return the type of a key's value, in the words of TOML."""
    return spell(field.annotation, (*field.metadata,))


def spell(annotation: Any, marks: tuple[Any, ...] = ()) -> str:
    """Return a type annotation in words."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return spell(inner[0], inner[1:])
    if annotation is context.Operand:
        return "an operand"
    if origin in (Union, types.UnionType):
        return " or ".join(spell(one, marks) for one in inner if one is not type(None))
    if origin is Literal:
        return " or ".join(f"`{json.dumps(one)}`" for one in inner)
    if origin is tuple:
        return f"an array of {several(inner[0])}" if inner[-1] is Ellipsis else array(inner)
    if origin is dict:
        return f"a table of {several(inner[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a table"
    names = {str: "a string", int: "an integer", float: "a number", bool: "`true` or `false`"}
    return names[annotation]


def several(annotation: Any) -> str:
    """Return a type annotation in words, in the plural where it has one."""
    return re.sub(r"^an? (\w+)", r"\1s", spell(annotation))


def array(inner: tuple[Any, ...]) -> str:
    """Return an array of a fixed length in words."""
    return f"an array of {len(inner)}: {', '.join(spell(one) for one in inner)}"
