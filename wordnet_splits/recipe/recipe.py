"""Recipes: one TOML file declares one benchmark.

``load_recipe`` takes the name of a shipped recipe or the path of a user's own file, resolves ``extends``
and returns a validated `Recipe`.  A wrong key is refused with its line and the nearest right one.
"""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from wordnet_splits.errors import ManifestError, RecipeError, unknown
from wordnet_splits.manifest import Manifest, load_manifest, manifest_names
from wordnet_splits.manifest.tables import SPLITS
from wordnet_splits.recipe.text import explain_validation
from wordnet_splits.rules.model import ClassRule, rule_text
from wordnet_splits.tabular import html_table
from wordnet_splits.untrusted import parse_toml, read_text, validated

NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Count = Annotated[int, Field(ge=0)]
Side = Annotated[int, Field(gt=0, le=4096)]
Role = Literal["id", "near", "far", "external", "csid"]


def _one_of(*names: str) -> AfterValidator:
    def check(value: str) -> str:
        if value not in names:
            raise ValueError(f"{value!r} is none of {', '.join(names)}")
        return value

    return AfterValidator(check)


Split = Annotated[str, _one_of(*SPLITS)]
Counted = Annotated[str, _one_of("classes", *SPLITS)]


class Model(BaseModel):
    """A part of a recipe: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ImageRule(Model):
    """Which images a split takes: a published list, or a cut of publishers' splits."""

    list_: str | None = Field(default=None, alias="list")
    from_: tuple[str, ...] | None = Field(default=None, alias="from")
    per_class: Annotated[int, Field(gt=0)] | None = None
    total: Annotated[int, Field(gt=0)] | None = None
    all: Literal[True] | None = None
    rest: Literal[True] | None = None
    generate: Annotated[int, Field(gt=0, le=100_000)] | None = None  # five digits number them

    @model_validator(mode="before")
    @classmethod
    def _one_pool_is_a_list_of_one(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("from"), str):
            return {**data, "from": (data["from"],)}
        return data

    @model_validator(mode="after")
    def _one_way_of_taking(self) -> ImageRule:
        takers = [k for k in ("per_class", "total", "all", "rest") if getattr(self, k) is not None]
        ways = [k for k in ("list_", "from_", "generate") if getattr(self, k) is not None]
        if len(ways) != 1:
            raise ValueError("give exactly one of list, from, generate")
        if (self.from_ is not None) != (len(takers) == 1) or len(takers) > 1:
            raise ValueError("`from` goes with exactly one of per_class, total, all, rest")
        return self


class Noise(Model):
    """Shape (height, width, channels) and seed of a generated source."""

    shape: tuple[Side, Side, Literal[1, 3]]
    seed: Count = 0


class Group(Model):
    """One set of a benchmark."""

    name: Name
    role: Role
    source: str
    view: str = "raw"
    classes: ClassRule
    images: dict[Split, ImageRule] = Field(default_factory=dict)
    published: dict[Counted, Count] = Field(default_factory=dict)
    noise: Noise | None = None
    reuse: bool = False
    note: str = ""

    @model_validator(mode="after")
    def _noise_is_generated(self) -> Group:
        generated = [s for s, rule in self.images.items() if rule.generate is not None]
        if generated and self.noise is None:
            raise ValueError("`generate` needs noise = { shape = [h, w, c], seed = 0 } in the group")
        if len(generated) > 1:
            raise ValueError("only one split of a group can be generated: its ids start at 0")
        return self


class KnownLeak(Model):
    """A leak that is known, with the reason why it stays.

    ``a`` and ``b`` are ``group:NAME``, or ``source:NAME`` for all classes of a source, in a group or not.
    """

    kind: Literal["class", "ancestry", "sibling", "digest"]
    a: str
    b: str
    classes: tuple[tuple[str, str], ...] | None = None
    count: Count | None = None
    reason: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _one_extent(self) -> KnownLeak:
        if (self.classes is None) == (self.count is None):
            raise ValueError("give exactly one of classes, count")
        return self


class Normalise(Model):
    """Mean and standard deviation per channel, of pixels in [0, 1]."""

    mean: tuple[float, float, float]
    sd: tuple[float, float, float]


class Recipe(Model):
    """A benchmark, declared."""

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    version: Annotated[int, Field(ge=1)] = 1
    title: str = ""
    draw: str
    seed: int = 0
    paper: str = ""
    hierarchy: Literal["wordnet", "imagenet-tree"] = "wordnet"
    transforms: dict[str, Literal["none", "resize-32", "resize-256-crop-224"]] = Field(default_factory=dict)
    normalise: Normalise | None = None
    reproduces: bool = False
    drop_leaks: bool = False
    group: Annotated[tuple[Group, ...], Field(min_length=1)]
    known_leak: tuple[KnownLeak, ...] = ()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Recipe:
        seen: set[str] = set()
        for group in self.group:
            if group.name in seen:
                raise ValueError(f"two groups are called {group.name!r}")
            seen.add(group.name)
        return self

    def as_data(self) -> dict[str, Any]:
        """Return the recipe as its TOML says, variants resolved; `Recipe.model_validate` reads it back."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def __repr__(self) -> str:
        lines = [f"{self.name} version {self.version}: {self.title or 'without a title'}"]
        lines += [f"  {r['group']:20} {r['role']:9} {r['source']:14} {r['rule']}"[:110] for r in self._rows()]
        return "\n".join(lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.name)} version {self.version}</p>" + html_table(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "group": g.name,
                "role": g.role,
                "source": g.source,
                "view": g.view,
                "rule": rule_text(g.classes),
            }
            for g in self.group
        ]

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sources of all groups, sorted."""
        return tuple(sorted({g.source for g in self.group}))

    def groups_with_role(self, role: str) -> tuple[Group, ...]:
        """Return the groups of one role, in file order."""
        return tuple(g for g in self.group if g.role == role)


def recipe_names() -> tuple[str, ...]:
    """Return the names of the shipped recipes, sorted."""
    folder = files("wordnet_splits") / "data" / "recipes"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_recipe(name: Recipe | Manifest | str | Path, manifests: Path | None = None) -> Recipe:
    """Return the recipe that is meant: shipped, a TOML file, or inside a manifest; a `Recipe` as it is.

    Parameters
    ----------
    name : a shipped recipe's name, the path of a TOML file, a manifest, or a manifest's name or folder.
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
    if not str(name).endswith(".toml") and str(name) not in recipe_names():
        if (Path(name) / "manifest.json").is_file() or str(name) in manifest_names(manifests):
            return _within(load_manifest(name, manifests))
        raise unknown("benchmark", str(name), {*recipe_names(), *manifest_names(manifests)})
    text, where = _recipe_text(name)
    raw = parse_toml(text, where=where, error=RecipeError)
    merged = _extended(raw, text, where)
    try:
        recipe = Recipe.model_validate(merged)
    except ValidationError as error:
        raise explain_validation(error, text, where) from None
    _check_names(recipe, text, where)
    return recipe


def _within(manifest: Manifest) -> Recipe:
    where = f"{manifest.folder or manifest.name}: the recipe in manifest.json"
    return validated(
        Recipe, manifest.data.recipe.as_dict(), where=where, error=ManifestError, hint="build it again"
    )


def _recipe_text(name: str | Path) -> tuple[str, str]:
    if isinstance(name, Path) or str(name).endswith(".toml"):
        return read_text(Path(name), error=RecipeError), str(name)
    if not re.match(NAME_PATTERN, name) or name not in recipe_names():
        raise unknown("benchmark", name, recipe_names())
    path = files("wordnet_splits") / "data" / "recipes" / f"{name}.toml"
    return path.read_text(encoding="utf-8"), f"{name}.toml"


def _extended(raw: dict[str, Any], text: str, where: str) -> dict[str, Any]:
    """Resolve ``extends``: same-named groups replaced in place, new ones appended, ``drop`` removes."""
    if "extends" not in raw:
        return {"draw": raw.get("name"), **raw}
    if next(iter(raw)) != "extends":
        raise RecipeError("`extends` must be the first key", where=where, hint="move it to the top")
    raw = dict(raw)
    base_name, dropped = raw.pop("extends"), raw.pop("drop", [])
    base_text, base_where = _recipe_text(str(base_name))
    base = parse_toml(base_text, where=base_where, error=RecipeError)
    if "extends" in base:
        raise RecipeError(
            f"{base_name!r} is itself a variant; variants have one level", where=where, hint="extend its base"
        )
    groups: dict[str, dict[str, Any]] = {g["name"]: g for g in base.get("group", [])}
    if not isinstance(dropped, list):
        raise RecipeError("`drop` is no list of group names", where=where, hint='as in drop = ["svhn"]')
    for name in map(str, dropped):
        if name not in groups:
            raise unknown("group to drop", name, groups, where=where)
        del groups[name]
    own = _tables(raw.pop("group", []), "group", where)
    groups |= {str(g.get("name", f"#{n}")): g for n, g in enumerate(own)}
    own_leaks = _tables(raw.pop("known_leak", []), "known_leak", where)
    leaks = [*_leaks_between(base.get("known_leak", []), groups), *own_leaks]
    base = {"draw": base.get("name"), **base}
    return {**base, **raw, "group": list(groups.values()), "known_leak": leaks}


def _tables(value: Any, key: str, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise RecipeError(f"`{key}` is no list of tables", where=where, hint=f"begin each with [[{key}]]")
    return value


def _leaks_between(leaks: list[dict[str, Any]], groups: dict[str, Any]) -> list[dict[str, Any]]:
    """Keep a base's known leaks only where the variant still has both groups."""
    sources = {f"source:{g.get('source')}" for g in groups.values()}

    def there(operand: Any) -> bool:
        return str(operand).removeprefix("group:") in groups or operand in sources

    return [leak for leak in leaks if there(leak.get("a")) and there(leak.get("b"))]


def _check_names(recipe: Recipe, text: str, where: str) -> None:
    from wordnet_splits.catalog import catalog_names

    groups = {g.name for g in recipe.group}
    operands = {*(f"group:{g}" for g in groups), *(f"source:{s}" for s in recipe.sources)}
    for group in recipe.group:
        if group.source not in catalog_names():
            raise unknown("source", group.source, catalog_names(), where=f"{where}: group {group.name!r}")
    for leak in recipe.known_leak:
        for operand in (leak.a, leak.b):
            if operand not in operands | groups:
                raise unknown("group", operand, operands, where=f"{where}: known_leak")
    for source in recipe.transforms:
        if source not in catalog_names():
            raise unknown("source", source, catalog_names(), where=f"{where}: transforms")
