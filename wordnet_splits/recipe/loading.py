"""Reading recipes: a shipped name or a file, ``extends`` resolved, every name in it checked.

A wrong key is refused with its line and the nearest right one.
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
"""Folders of shipped recipes: those that are frozen, and those whose classes alone are somebody's list."""


def recipe_names() -> tuple[str, ...]:
    """Return the names of the shipped benchmarks, sorted."""
    return _names_in(BENCHMARKS)


def class_set_names() -> tuple[str, ...]:
    """Return the names of the shipped class sets, which rebuild published lists of classes, sorted."""
    return _names_in(CLASS_SETS)


@cache
def _names_in(folder: str) -> tuple[str, ...]:
    found = (files("wordnet_splits") / "data" / folder).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in found if f.name.endswith(".toml")))


def load_recipe(name: Recipe | Manifest | str | Path, manifests: Path | None = None) -> Recipe:
    """Return the recipe that is meant: shipped, a TOML file, or inside a manifest; a `Recipe` as it is.

    Parameters
    ----------
    name : the name of a shipped benchmark or class set, the path of a TOML file, a manifest, or a
        manifest's name, folder or address on the Hub.
    manifests : folder of manifests, else the usual ones.

    Raises
    ------
    UnknownNameError : no such name or file.
    RecipeError : the file is malformed; the message has the file, the line and the nearest right key.
    ManifestError : the manifest, or the recipe in it, is malformed.
    """
    if isinstance(name, Recipe):
        return name
    if isinstance(name, Manifest):
        return _within(name)
    shipped = (*recipe_names(), *class_set_names())
    if not str(name).endswith(".toml") and (is_path(name) or name not in shipped):
        if _has_manifest(name, manifests):
            return _within(load_manifest(name, manifests))
        raise unknown_benchmark("benchmark", str(name), {*shipped, *manifest_names(manifests)})
    recipe = _read(name)
    with using_sources(recipe.declarations):
        _check_names(recipe, _recipe_text(name)[1], lists_may_be_awaited=name in shipped)
    return recipe


def declarations_of(
    *names: Recipe | Manifest | str | Path, manifests: Path | None = None
) -> dict[str, Declaration]:
    """Return the datasets that come with benchmarks: before a root of one is judged, or the rest is checked.

    Parameters as of `load_recipe`. What is no benchmark comes with none: whoever takes it up says so.

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
    if not is_path(name) and text in recipe_names():  # it is of shipped sources alone
        return {}
    return read_manifest(find_manifest(name, manifests)).own if _has_manifest(name, manifests) else {}


def _has_manifest(name: str | Path, manifests: Path | None) -> bool:
    if is_path(name):
        return (Path(name) / "manifest.json").is_file() or str(name).startswith(SCHEME)
    return name in manifest_names(manifests)


def _read(name: str | Path) -> Recipe:
    """Read a shipped recipe or a TOML file; the names in it are not checked."""
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
    for number, declared in enumerate(recipe.source):
        file = Path(raw["extends"] if number < inherited else name).absolute()
        recipe.add_declarations({declared.name: _declared(declared.read_from(file, confined=True), where)})
    recipe.remember_lines(lines)
    return recipe


def _declared(declared: Declaration, where: str) -> Declaration:
    """Return a dataset of ``[[source]]`` if it may have its name and its files may be where they are."""
    place = f"{where}: source {declared.name!r}"
    if declared.name in catalog_names():
        raise RecipeError("is a source of ours", where=place, hint="give yours another name")
    try:
        _ = declared.catalog_file, declared.inventory_file
    except SplitsError as error:
        raise RecipeError(error.what, where=place, hint="keep it in the recipe's folder") from None
    return declared


def _within(manifest: Manifest) -> Recipe:
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
    """Resolve ``extends``: same-named groups replaced in place, new ones appended, ``drop`` removes.

    ``lines`` is filled with the file and line of each group's rule. Returns how many of the sources are the
    base's, too: they come first.
    """
    declared = _tables(raw.get("source", []), "source", where)
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
    theirs = _tables(base.get("group", []), "group", base_where)
    groups: dict[str, dict[str, Any]] = {str(g.get("name", f"base #{n}")): g for n, g in enumerate(theirs)}
    if not isinstance(dropped, list):
        raise RecipeError("`drop` is not a list of group names", where=where, hint='as in drop = ["svhn"]')
    for name in map(str, dropped):
        if name not in groups:
            raise unknown("group to drop", name, groups, where=where)
        del groups[name]
    own = _tables(raw.pop("group", []), "group", where)
    groups |= {str(g.get("name", f"#{n}")): g for n, g in enumerate(own)}
    own_leaks = _tables(raw.pop("known_leak", []), "known_leak", where)
    leaks = [
        *_leaks_between(_tables(base.get("known_leak", []), "known_leak", base_where), groups),
        *own_leaks,
    ]
    base = {"draw": base.get("name"), **base}
    inherited = _tables(base.get("source", []), "source", base_where)
    merged = {
        **base,
        **raw,
        "source": [*inherited, *declared],
        "group": list(groups.values()),
        "known_leak": leaks,
    }
    return merged, len(inherited)


def _lines_of(raw: dict[str, Any], text: str, where: str) -> dict[str, str]:
    """Return the file and line of the rule of each group that a text declares."""
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
    """Keep a base's known leaks only where the variant still has both groups."""
    sources = {f"source:{g.get('source')}" for g in groups.values()}

    def there(operand: Any) -> bool:
        return str(operand).removeprefix("group:") in groups or operand in sources

    return [leak for leak in leaks if there(leak.get("a")) and there(leak.get("b"))]


def _check_names(recipe: Recipe, where: str, *, lists_may_be_awaited: bool) -> None:
    from fix_resize.spec import spec_names
    from wordnet_splits.catalog import known_sources
    from wordnet_splits.catalog.declarations import unknown_source
    from wordnet_splits.catalog.lists import available_lists, unknown_list

    lists = available_lists(recipe.folder)
    groups = {g.name for g in recipe.group}
    operands = {*(f"group:{g}" for g in groups), *(f"source:{s}" for s in recipe.sources)}
    for group in recipe.group:
        if group.source not in known_sources():
            raise unknown_source(group.source, known_sources(), where=f"{where}: group {group.name!r}")
        if group.view not in ("raw", *spec_names()):
            raise unknown("view", group.view, ("raw", *spec_names()), where=f"{where}: group {group.name!r}")
        for split, rule in group.images.items():
            if rule.list_ is not None and rule.list_ not in lists and not lists_may_be_awaited:
                place = f"{where}: group {group.name!r}, {split}"
                raise unknown_list(rule.list_, recipe.folder, where=place)
    for leak in recipe.known_leak:
        for operand in (leak.a, leak.b):
            if operand not in operands | groups:
                raise unknown("group", operand, operands, where=f"{where}: known_leak")
    for source in recipe.transforms:
        if source not in known_sources():
            raise unknown_source(source, known_sources(), where=f"{where}: transforms")
