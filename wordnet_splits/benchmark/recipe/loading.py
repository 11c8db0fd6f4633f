"""Reading of shipped recipes and recipe files: ``extends`` is resolved, and every name is checked.

The error for a wrong key has its line and the nearest right key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from wordnet_splits.base.errors import DataError, ManifestError, RecipeError, SplitsError, unknown
from wordnet_splits.base.text_formats import LARGEST_TOML, parse_toml, validate
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.recipe.schema import Origin, Recipe
from wordnet_splits.benchmark.rules import known_keys as table_keys
from wordnet_splits.benchmark.rules import lists_used
from wordnet_splits.datasets.catalog.declarations import DECLARATION_FILE, Declaration, read_declaration
from wordnet_splits.datasets.catalog.inventory import available_lists
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy
from wordnet_splits.datasets.sources.by_name import is_installed

BENCHMARKS, CLASS_SETS = "recipes", "class_sets"
"""Folders of shipped recipes: benchmarks, and published lists of classes."""
FLAGSHIPS = ("unknown-cifar", "unknown-imagenet")
"""Benchmarks that lists begin with: the two of Kim et al. for which this package was written."""
VARIANT_KEYS = ("extends", "drop")
"""Keys of a recipe's file that no schema has: they are resolved before it is validated."""


def recipe_names() -> tuple[str, ...]:
    """Return the names of the shipped benchmarks, sorted."""
    return _names_in(BENCHMARKS)


def class_set_names() -> tuple[str, ...]:
    """Return the names of the shipped class sets, which rebuild published class lists, sorted."""
    return _names_in(CLASS_SETS)


@cache
def _names_in(folder: str) -> tuple[str, ...]:
    paths = (files("wordnet_splits") / "data" / folder).iterdir()
    return tuple(sorted(p.name.removesuffix(".toml") for p in paths if p.name.endswith(".toml")))


def is_shipped(recipe: Recipe) -> bool:
    """Return whether a shipped recipe has the same name and content."""
    return recipe.name in recipe_names() and recipe == load_recipe(recipe.name)


def awaited_lists(recipe: Recipe) -> tuple[str, ...]:
    """Return the lists in a recipe that are not at hand, sorted."""
    used = {r.list_ for g in recipe.group for r in g.images.values() if r.list_ is not None}
    used |= {name for g in recipe.group for name in lists_used(g.classes)}
    return tuple(sorted(used - set(available_lists(recipe.folder))))


def buildable() -> tuple[str, ...]:
    """Return the shipped benchmarks that ``--all`` builds: those whose lists are all at hand."""
    return tuple(n for n in recipe_names() if not awaited_lists(load_recipe(n)))


def load_recipe(recipe: Recipe | Manifest | str | Path) -> Recipe:
    """Return the recipe of a shipped benchmark, TOML file or manifest; a `Recipe` is returned as it is.

    Parameters
    ----------
    recipe : the name of a shipped benchmark or class set, the path of a TOML file, or a manifest, given as
        `wordnet_splits.benchmark.resolve.load_manifest` accepts it: a name, folder or address.

    Raises
    ------
    UnknownNameError : no such name; near names are offered.
    RecipeError : the file is absent or malformed; the message has its line and the nearest right key.
    ManifestError : the recipe in the manifest is malformed.
    """
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, Manifest):
        return _from_manifest(recipe)
    loaded = _read(recipe)
    shipped = recipe in (*recipe_names(), *class_set_names())
    _check_names(loaded, _recipe_text(recipe)[1], lists_may_be_awaited=shipped)
    return loaded


def declared_by(recipe: Recipe | Manifest | str | Path | None) -> Mapping[str, Declaration]:
    """Return the datasets that a recipe declares or a manifest carries, without further checks of these.

    Parameters
    ----------
    recipe : as of `load_recipe`, or a ``dataset.toml``; None, or a file that does not exist, declares none.
    """
    if isinstance(recipe, Manifest | Recipe):
        return recipe.declarations
    if recipe is not None and str(recipe).endswith(".toml") and Path(recipe).exists():
        if Path(recipe).name == DECLARATION_FILE:
            declaration = read_declaration(Path(recipe))
            return {declaration.name: declaration}
        return _read(recipe).declarations
    return {}  # shipped recipes have shipped sources only


def declaration_in(file: Path) -> Declaration:
    """Return the only dataset that a ``dataset.toml`` or a recipe declares; DataError for none or several."""
    declarations = declared_by(file)
    if len(declarations) != 1:
        message = f"must declare one dataset, got {len(declarations)}"
        hint = "pass a dataset.toml, or a recipe with a single [[source]]"
        raise DataError(message, where=str(file), hint=hint)
    return next(iter(declarations.values()))


def _read(name: str | Path) -> Recipe:
    """Read a shipped recipe or a TOML file, without checking the names in it."""
    text, where = _recipe_text(name)
    raw = parse_toml(text, where=where, error=RecipeError)
    if "layout" in raw:
        hint = f"rename it {DECLARATION_FILE}, or write its keys below [[source]] of a recipe"
        raise RecipeError("is the declaration of a dataset, not a recipe", where=where, hint=hint)
    lines: dict[str, str] = {}
    merged, inherited = _extended(raw, text, where, lines)
    try:
        recipe = Recipe.model_validate(merged)
    except ValidationError as error:
        raise explain_validation(error, text, where, Recipe) from None
    is_file = name not in (*recipe_names(), *class_set_names())
    declarations = {}
    for number, declaration in enumerate(recipe.source):
        file = Path(raw["extends"] if number < inherited else name).absolute()
        declarations[declaration.name] = declaration.located(file)
        _check_declaration(declarations[declaration.name], where)
    folder = Path(name).absolute().parent if is_file else None
    hierarchy = None
    if isinstance(recipe.hierarchy, OwnHierarchy):
        file = Path(name if "hierarchy" in raw else raw["extends"]).absolute()
        hierarchy = recipe.hierarchy.located(file)
    return recipe.read_at(Origin(folder, declarations, lines=lines, hierarchy=hierarchy, where=where))


def _check_declaration(declaration: Declaration, where: str) -> None:
    """Raise RecipeError if a ``[[source]]`` has an installed source's name, or files outside its folder."""
    where = f"{where}: source {declaration.name!r}"
    if is_installed(declaration.name):
        raise RecipeError("an installed source has the same name", where=where, hint="choose another name")
    try:
        _ = declaration.catalog_file, declaration.inventory_file
    except SplitsError as error:
        raise RecipeError(error.what, where=where, hint="keep it in the recipe's folder") from None


def _from_manifest(manifest: Manifest) -> Recipe:
    where = f"{manifest.folder or manifest.name}: the recipe in manifest.json"
    data = {**manifest.data.recipe.as_dict(), "about": manifest.data.about}
    recipe = validate(Recipe, data, where=where, error=ManifestError, hint="build it again")
    if recipe.table_names != list(manifest.pair_tables):
        names = ", ".join(recipe.table_names) or "none"
        message = f"the manifest does not carry the tables of pairs that the recipe names: {names}"
        raise ManifestError(message, where=where, hint="build it again")
    if isinstance(recipe.hierarchy, OwnHierarchy) and manifest.own_hierarchy is None:
        message = "the manifest does not carry the hierarchy that the recipe names"
        raise ManifestError(message, where=where, hint="build it again")
    folder = None if manifest.folder is None else manifest.folder.absolute().parent
    carried = manifest.declarations, manifest.pair_tables
    return recipe.read_at(Origin(folder, *carried, hierarchy=manifest.own_hierarchy, is_manifest=True))


def _recipe_text(name: str | Path) -> tuple[str, str]:
    if str(name).endswith(".toml"):
        return read_text(Path(name), largest=LARGEST_TOML, error=RecipeError), str(name)
    folders = {**dict.fromkeys(class_set_names(), CLASS_SETS), **dict.fromkeys(recipe_names(), BENCHMARKS)}
    if name not in folders:
        raise unknown("benchmark", str(name), folders)
    path = files("wordnet_splits") / "data" / folders[str(name)] / f"{name}.toml"
    return path.read_text(encoding="utf-8"), f"{name}.toml"


def _extended(
    raw: dict[str, Any], text: str, where: str, lines: dict[str, str]
) -> tuple[dict[str, Any], int]:
    """Resolve ``extends``: replace groups of the same name, append new ones, remove those in ``drop``.

    ``lines`` is filled with the file and line of each group's rule. Returns the recipe, and the number of
    sources of its base, which come first.
    """
    sources = _tables(raw.get("source", []), "source", where)
    if "extends" not in raw:
        lines |= _lines_of(raw, text, where)
        return {"draw": raw.get("name"), **raw}, 0
    if next(iter(raw)) != "extends":
        raise RecipeError("`extends` must be the first key", where=where, hint="move it to the top")
    raw = dict(raw)
    base_name, dropped = raw.pop("extends"), raw.pop("drop", [])
    if not isinstance(base_name, str):
        raise RecipeError(
            "`extends` must be the name of a recipe", where=where, hint='as in extends = "digits"'
        )
    base_text, base_where = _recipe_text(base_name)
    base = parse_toml(base_text, where=base_where, error=RecipeError)
    lines |= _lines_of(base, base_text, base_where) | _lines_of(raw, text, where)
    base.pop("about", None)  # the authors, the licence and the DOI of a variant are its own
    if "extends" in base:
        raise RecipeError(
            f"cannot extend {base_name!r}: it is a variant itself", where=where, hint="extend its base"
        )
    base_groups = enumerate(_tables(base.get("group", []), "group", base_where))
    groups: dict[str, dict[str, Any]] = {str(g.get("name", f"base #{n}")): g for n, g in base_groups}
    if not isinstance(dropped, list):
        raise RecipeError("`drop` must be a list of group names", where=where, hint='as in drop = ["svhn"]')
    for name in map(str, dropped):
        if name not in groups:
            raise unknown("group to drop", name, groups, where=where)
        del groups[name]
    new_groups = enumerate(_tables(raw.pop("group", []), "group", where))
    groups |= {str(g.get("name", f"#{n}")): g for n, g in new_groups}
    leaks = _leaks_between(_tables(base.get("known_leak", []), "known_leak", base_where), groups)
    leaks += _tables(raw.pop("known_leak", []), "known_leak", where)
    base_sources = _tables(base.get("source", []), "source", base_where)
    merged = {
        "draw": base.get("name"),
        **base,
        **raw,
        "source": [*base_sources, *sources],
        "group": list(groups.values()),
        "known_leak": leaks,
    }
    return merged, len(base_sources)


def _lines_of(raw: dict[str, Any], text: str, where: str) -> dict[str, str]:
    """Return the file and line of the rule of each group in a text."""
    groups = _tables(raw.get("group", []), "group", where)
    lines = lines_below(text, "group", "classes")
    return {
        str(group.get("name")): f"{where}, line {line}" for group, line in zip(groups, lines, strict=False)
    }


def _tables(value: Any, key: str, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise RecipeError(f"`{key}` must be a list of tables", where=where, hint=f"begin each with [[{key}]]")
    return value


def _leaks_between(leaks: list[dict[str, Any]], groups: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the known leaks of a base between operands that the variant still has."""
    sources = {f"source:{g.get('source')}" for g in groups.values()}

    def exists(operand: Any) -> bool:
        return str(operand).removeprefix("group:") in groups or operand in sources

    return [leak for leak in leaks if exists(leak.get("a")) and exists(leak.get("b"))]


def _check_names(recipe: Recipe, where: str, *, lists_may_be_awaited: bool) -> None:
    from fix_resize.spec import spec_names
    from wordnet_splits.datasets.catalog import known_sources
    from wordnet_splits.datasets.catalog.declarations import unknown_source
    from wordnet_splits.datasets.catalog.inventory import unknown_list

    lists, sources = available_lists(recipe.folder), known_sources(recipe.datasets)
    groups = {g.name for g in recipe.group}
    operands = {*(f"group:{g}" for g in groups), *(f"source:{s}" for s in recipe.sources)}
    for group in recipe.group:
        in_group = f"{where}: group {group.name!r}"
        if group.source not in sources:
            raise unknown_source(group.source, sources, where=in_group)
        if group.view not in ("raw", *spec_names()):
            raise unknown("view", group.view, ("raw", *spec_names()), where=in_group)
        for split, rule in group.images.items():
            if rule.list_ is not None and rule.list_ not in lists and not lists_may_be_awaited:
                raise unknown_list(rule.list_, recipe.folder, where=f"{in_group}, {split}")
    for leak in recipe.known_leak:
        for operand in (leak.a, leak.b):
            if operand not in operands | groups:
                raise unknown("group", operand, operands, where=f"{where}: known_leak")
    for source in recipe.transforms:
        if source not in sources:
            raise unknown_source(source, sources, where=f"{where}: transforms")


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
        table = path.rpartition(".")[0] or "the recipe"
        return RecipeError(
            f"the key {str(problem['loc'][-1])!r} is missing", where=where, hint=f"add it to {table}"
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
    keys, visited, waiting = {*VARIANT_KEYS}, {model}, [model]
    while waiting:
        for name, field in waiting.pop().model_fields.items():
            keys.add(field.alias or name)
            waiting += [inner for inner in models_in(field.annotation) if inner not in visited]
            visited.update(waiting)
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
    return re.compile(rf"^\s*\[\[\s*{re.escape(table)}\s*\]\]")


def _use(key: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])[\"']?{re.escape(key)}[\"']?\s*(=|\]|\.)")


def _is_key(part: Any, text: str) -> bool:
    """Return whether a location part is a key of the file, not a name that pydantic gives a union member."""
    return (
        isinstance(part, str) and re.search(r"(?<![\w-])" + re.escape(part) + r"(?![\w-])", text) is not None
    )
