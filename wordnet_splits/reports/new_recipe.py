"""Write a new recipe and build it without pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import OutputError, RecipeError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.schemas import NAME_PATTERN
from wordnet_splits.catalog import catalog_names
from wordnet_splits.catalog.declarations import declared_sources, using_sources
from wordnet_splits.making.assemble import assemble, decide
from wordnet_splits.making.images import select_images
from wordnet_splits.making.membership import Membership
from wordnet_splits.making.run import BuildOptions, read_pixels
from wordnet_splits.manifest import GroupRow
from wordnet_splits.manifest.data import LeakRow
from wordnet_splits.recipe import load_recipe, recipe_names
from wordnet_splits.recipe.drafting import DraftGroup, draft_recipe, parse_group
from wordnet_splits.rules.evidence import counted
from wordnet_splits.sources.roots import Roots, declare_roots
from wordnet_splits.taxonomy import load

OVERLAPS = {"class": "equal classes", "ancestry": "classes one above the other", "digest": "equal pictures"}


@dataclass(frozen=True)
class NewRecipe:
    """A new recipe and its result.

    Attributes
    ----------
    evidence : evidence of the classes nearest to and farthest from ID, of each group that is not ID.
    overlaps : sentences on what groups share, and on what was dropped for it.
    notes : sentences on users' datasets that the recipe cannot declare, and on classes left out because they
        have no synset.
    """

    name: str
    out: Path
    groups: Sequence[GroupRow]
    evidence: Sequence[Mapping[str, Any]]
    overlaps: Sequence[str]
    notes: Sequence[str]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``new --json`` prints."""
        rows = [row.model_dump() for row in self.groups]
        return {**vars(self), "out": str(self.out), "groups": rows}


def new_recipe(
    name: str,
    out: str | Path,
    *,
    known: str,
    near: Sequence[str] = (),
    far: Sequence[str] = (),
    external: Sequence[str] = (),
    roots: Roots | None = None,
) -> NewRecipe:
    """Write a recipe with comments, and build it without any picture.

    Parameters
    ----------
    known, near, far, external : ``SOURCE``, ``SOURCE:CLASS,CLASS``, ``SOURCE:N`` to draw N classes; but for
        ``known``, ``SOURCE:MEASURE=VALUE`` or ``SOURCE:MEASURE=VALUE,N`` to go by a threshold.
    roots : folders where users' datasets are declared; no picture is read.

    Raises
    ------
    UnknownNameError : there is no such source or class.
    RecipeError : an invalid name, or a group without classes; nothing is written.
    OutputError : the file exists already, or cannot be written.
    """
    declare_roots(roots)
    out = Path(out)
    if not re.match(NAME_PATTERN, name):
        raise RecipeError(
            f"{name!r} cannot name a benchmark",
            where="new",
            hint="a-z, 0-9 and -, as in my-pets",
        )
    if name in recipe_names():
        raise RecipeError(f"{name!r} is a shipped benchmark", where="new", hint="give another name")
    if out.suffix != ".toml":
        raise OutputError("a recipe's name ends in .toml", where=str(out), hint=f"--out {out}.toml")
    if out.exists():
        raise OutputError("is there already", where=str(out), hint="remove it, or give --out")
    if not (near or far):
        raise RecipeError("no group is unknown", where="new", hint="give --near SOURCE or --far SOURCE")
    id_group = parse_group(known, where="--id")
    others = [
        [parse_group(text, where=where) for text in texts]
        for where, texts in (("--near", near), ("--far", far), ("--external", external))
    ]
    declarations, notes = _declared([id_group, *chain(*others)], out)
    write_text(out, draft_recipe(name, id_group, *others, sources=declarations))
    try:
        recipe = load_recipe(out)
        taxonomy = load()
        with using_sources(recipe.declarations):
            rules = decide(recipe, recipe.seed, taxonomy)
            selections = select_images(recipe, recipe.seed, rules.membership.groups, {})
            read_pixels(selections, {}, BuildOptions())  # of generated images
            manifest, _ = assemble(rules, selections, taxonomy)
    except BaseException:
        out.unlink(missing_ok=True)  # it was written here, and does not build
        raise
    leaks = [leak for leak in manifest.data.leaks if leak.kind in OVERLAPS]
    return NewRecipe(
        name,
        out,
        manifest.groups,
        _evidence(manifest.classes),
        [
            *(_overlap(leak) for leak in leaks),
            *_dropped(rules.membership),
        ],
        [*notes, *_without_synset(rules.membership)],
    )


def _declared(groups: Sequence[DraftGroup], out: Path) -> tuple[list[str], list[str]]:
    """Return the declarations of users' datasets for the recipe, and notes on those it cannot declare."""
    folder = out.absolute().parent.resolve()
    tables, notes = [], []
    for name in sorted({group.source for group in groups} - set(catalog_names())):
        declared = declared_sources()[name]
        files = [declared.catalog_file.resolve(), declared.inventory_file.resolve()]
        if all(file.is_relative_to(folder) for file in files):
            catalog, inventory = (file.relative_to(folder).as_posix() for file in files)
            tables.append(declared.as_toml(catalog, inventory if declared.inventory else None))
        else:
            notes.append(
                f"{out} does not declare {name}, whose catalog is not below {folder}: "
                f"it builds where {declared.file} is known"
            )
    return tables, notes


def _without_synset(membership: Membership) -> list[str]:
    """Return a sentence for each group whose rule left out classes because they have no synset."""
    by_group: dict[str, list[str]] = {}
    for (_, class_id), refusals in membership.refusals.items():
        for group, verdict in refusals:
            if verdict.undecided:
                by_group.setdefault(group.name, []).append(class_id)
    return [
        f"{group}: {counted(len(left), 'class')} without a synset left out, such as {left[0]}: "
        "a rule that reads WordNet takes only classes with one, and those that it lists by name"
        for group, left in by_group.items()
    ]


def _overlap(leak: LeakRow) -> str:
    between = f"within {leak.a}" if leak.a == leak.b else f"between {leak.a} and {leak.b}"
    return f"{between}: {counted(leak.count, 'pair')} of {OVERLAPS[leak.kind]}"


def _evidence(classes: pa.Table) -> list[dict[str, Any]]:
    """Return the nearest and the farthest class of each group that is not ID."""
    columns = ["group", "role", "source", "class_id", "evidence", "mean"]
    of_group: dict[str, list[dict[str, Any]]] = {}
    for row in classes.select(columns).to_pylist():
        if row["role"] not in ("id", "excluded"):
            of_group.setdefault(row["group"], []).append(row)
    examples = []
    for rows in of_group.values():
        rows.sort(key=lambda row: (-(row["mean"] or 0), row["class_id"]))
        examples += rows[:1] if len(rows) == 1 else [rows[0], rows[-1]]
    return examples


def _dropped(membership: Membership) -> list[str]:
    by_group: dict[str, list[str]] = {}
    for (_, class_id), (group, reason) in membership.removed.items():
        by_group.setdefault(group.name, []).append(f"{class_id}: {reason}")
    return [
        f"{group}: {counted(len(dropped), 'class')} dropped, such as {dropped[0]}"
        for group, dropped in by_group.items()
    ]
