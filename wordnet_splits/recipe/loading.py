"""Reading of recipes, shipped ones and files: ``extends`` is resolved and every name in them is checked.

The error for a wrong key has its line and the nearest right key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from wordnet_splits.base.errors import ManifestError, RecipeError, SplitsError, unknown
from wordnet_splits.base.schemas import NAME_PATTERN, validate
from wordnet_splits.base.text_formats import LARGEST_TOML, parse_toml
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.catalog import catalog_names
from wordnet_splits.catalog.declarations import Declaration, merge_declarations, using_sources
from wordnet_splits.finding import find_manifest, is_path, load_manifest, manifest_names, unknown_benchmark
from wordnet_splits.hub.address import SCHEME
from wordnet_splits.manifest import Manifest, read_manifest
from wordnet_splits.recipe.recipe import Recipe
from wordnet_splits.recipe.text import explain_validation, lines_below

BENCHMARKS, CLASS_SETS = "recipes", "class_sets"
"""Folders of shipped recipes: frozen benchmarks, and published lists of classes."""


def recipe_names() -> tuple[str, ...]:
    """Return the names of the shipped benchmarks, sorted."""
    return _names_in(BENCHMARKS)


def class_set_names() -> tuple[str, ...]:
    """Return the names of the shipped class sets, which rebuild published lists of classes, sorted."""
    return _names_in(CLASS_SETS)


@cache
def _names_in(folder: str) -> tuple[str, ...]:
    paths = (files("wordnet_splits") / "data" / folder).iterdir()
    return tuple(sorted(p.name.removesuffix(".toml") for p in paths if p.name.endswith(".toml")))


def load_recipe(name: Recipe | Manifest | str | Path, manifests: Path | None = None) -> Recipe:
    """Return a recipe: a shipped one, that of a TOML file or of a manifest; a `Recipe` is returned as it is.

    Parameters
    ----------
    name : the name of a shipped benchmark or class set, the path of a TOML file, a manifest, or a
        manifest's name, folder or address on the Hub.
    manifests : folder of manifests; the usual folders by default.

    Raises
    ------
    UnknownNameError : no such name or file.
    RecipeError : the file is malformed; the message has the file, the line and the nearest right key.
    ManifestError : the manifest, or the recipe in it, is malformed.
    """
    if isinstance(name, Recipe):
        return name
    if isinstance(name, Manifest):
        return _from_manifest(name)
    shipped = (*recipe_names(), *class_set_names())
    if not str(name).endswith(".toml") and (is_path(name) or name not in shipped):
        if _has_manifest(name, manifests):
            return _from_manifest(load_manifest(name, manifests))
        raise unknown_benchmark("benchmark", str(name), {*shipped, *manifest_names(manifests)})
    recipe = _read(name)
    with using_sources(recipe.declarations):
        _check_names(recipe, _recipe_text(name)[1], lists_may_be_awaited=name in shipped)
    return recipe


def declarations_of(
    *names: Recipe | Manifest | str | Path, manifests: Path | None = None
) -> dict[str, Declaration]:
    """Return the declarations in recipes or manifests, without further checks of these.

    Parameters are those of `load_recipe`; a name without a benchmark has no declarations.

    Raises
    ------
    RecipeError, ManifestError : a file is malformed.
    DataError : two benchmarks have another dataset under one name.
    """
    return merge_declarations(_declarations_of(name, manifests) for name in names)


def _declarations_of(
    name: Recipe | Manifest | str | Path, manifests: Path | None
) -> Mapping[str, Declaration]:
    if isinstance(name, Recipe):
        return name.declarations
    if isinstance(name, Manifest):
        return name.own
    text = str(name)
    if text.endswith(".toml"):
        return _read(name).declarations if Path(name).exists() else {}
    if not is_path(name) and text in recipe_names():  # has shipped sources only
        return {}
    return read_manifest(find_manifest(name, manifests)).own if _has_manifest(name, manifests) else {}


def _has_manifest(name: str | Path, manifests: Path | None) -> bool:
    if is_path(name):
        return (Path(name) / "manifest.json").is_file() or str(name).startswith(SCHEME)
    return name in manifest_names(manifests)


def _read(name: str | Path) -> Recipe:
    """Return a shipped recipe or that of a TOML file; the names in it are not checked."""
    text, where = _recipe_text(name)
    raw = parse_toml(text, where=where, error=RecipeError)
    lines: dict[str, str] = {}
    merged, inherited = _extended(raw, text, where, lines)
    try:
        recipe = Recipe.model_validate(merged)
    except ValidationError as error:
        raise explain_validation(error, text, where, Recipe) from None
    if name not in (*recipe_names(), *class_set_names()):
        recipe.remember_folder(Path(name).absolute().parent)
    for number, declaration in enumerate(recipe.source):
        file = Path(raw["extends"] if number < inherited else name).absolute()
        _check_declaration(declaration.read_from(file, confined=True), where)
        recipe.add_declarations({declaration.name: declaration})
    recipe.remember_lines(lines)
    return recipe


def _check_declaration(declaration: Declaration, where: str) -> None:
    """Raise RecipeError if a ``[[source]]`` has a shipped source's name, or files outside of its folder."""
    where = f"{where}: source {declaration.name!r}"
    if declaration.name in catalog_names():
        raise RecipeError("is the name of a shipped source", where=where, hint="give yours another name")
    try:
        _ = declaration.catalog_file, declaration.inventory_file
    except SplitsError as error:
        raise RecipeError(error.what, where=where, hint="keep it in the recipe's folder") from None


def _from_manifest(manifest: Manifest) -> Recipe:
    where = f"{manifest.folder or manifest.name}: the recipe in manifest.json"
    recipe = validate(
        Recipe, manifest.data.recipe.as_dict(), where=where, error=ManifestError, hint="build it again"
    )
    if manifest.folder is not None:
        recipe.remember_folder(manifest.folder.absolute().parent)
    recipe.add_declarations(manifest.own)
    return recipe


def _recipe_text(name: str | Path) -> tuple[str, str]:
    if isinstance(name, Path) or str(name).endswith(".toml"):
        return read_text(Path(name), largest=LARGEST_TOML, error=RecipeError), str(name)
    kinds = {**dict.fromkeys(class_set_names(), CLASS_SETS), **dict.fromkeys(recipe_names(), BENCHMARKS)}
    if not re.match(NAME_PATTERN, name) or name not in kinds:
        raise unknown("benchmark", name, kinds)
    path = files("wordnet_splits") / "data" / kinds[name] / f"{name}.toml"
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
            "`extends` is not the name of a recipe", where=where, hint='as in extends = "digits"'
        )
    base_text, base_where = _recipe_text(base_name)
    base = parse_toml(base_text, where=base_where, error=RecipeError)
    lines |= _lines_of(base, base_text, base_where) | _lines_of(raw, text, where)
    if "extends" in base:
        raise RecipeError(
            f"{base_name!r} is itself a variant; variants have one level", where=where, hint="extend its base"
        )
    base_groups = enumerate(_tables(base.get("group", []), "group", base_where))
    groups: dict[str, dict[str, Any]] = {str(g.get("name", f"base #{n}")): g for n, g in base_groups}
    if not isinstance(dropped, list):
        raise RecipeError("`drop` is not a list of group names", where=where, hint='as in drop = ["svhn"]')
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
        raise RecipeError(f"`{key}` is not a list of tables", where=where, hint=f"begin each with [[{key}]]")
    return value


def _leaks_between(leaks: list[dict[str, Any]], groups: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the known leaks of a base for which the variant still has both groups."""
    sources = {f"source:{g.get('source')}" for g in groups.values()}

    def exists(operand: Any) -> bool:
        return str(operand).removeprefix("group:") in groups or operand in sources

    return [leak for leak in leaks if exists(leak.get("a")) and exists(leak.get("b"))]


def _check_names(recipe: Recipe, where: str, *, lists_may_be_awaited: bool) -> None:
    from fix_resize.spec import spec_names
    from wordnet_splits.catalog import known_sources
    from wordnet_splits.catalog.declarations import unknown_source
    from wordnet_splits.catalog.lists import available_lists, unknown_list

    lists = available_lists(recipe.folder)
    groups = {g.name for g in recipe.group}
    operands = {*(f"group:{g}" for g in groups), *(f"source:{s}" for s in recipe.sources)}
    for group in recipe.group:
        in_group = f"{where}: group {group.name!r}"
        if group.source not in known_sources():
            raise unknown_source(group.source, known_sources(), where=in_group)
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
        if source not in known_sources():
            raise unknown_source(source, known_sources(), where=f"{where}: transforms")
