"""Write a new recipe and build it without reading images."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.authoring.drafting import TRAIN, DraftGroup, bring_hierarchy, draft_recipe, parse_group
from wordnet_splits.authoring.verdict import BenchmarkVerdict, judge_benchmark
from wordnet_splits.base.errors import OutputError, RecipeError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.names import counted
from wordnet_splits.base.text_formats import NAME_PATTERN
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.construct import build_recipe
from wordnet_splits.benchmark.construct.classes import Membership
from wordnet_splits.benchmark.explain import margin
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import GroupRow
from wordnet_splits.benchmark.manifest.metadata import LeakRow
from wordnet_splits.benchmark.recipe import Group, Recipe, load_recipe, recipe_names
from wordnet_splits.benchmark.rules import Key, Verdict
from wordnet_splits.benchmark.rules.registry import join_names, sentence
from wordnet_splits.datasets.catalog import catalog_names
from wordnet_splits.datasets.catalog.declarations import LOCAL
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy
from wordnet_splits.datasets.sources.layouts.conventions import parse_split
from wordnet_splits.datasets.sources.roots import Roots, declare_roots
from wordnet_splits.wordnet.taxonomy import Taxonomy

LEFT_OUT = {
    ("overlaps", True): "equal to an ID class, or above or below one",
    ("similarity", False): "on the wrong side of the threshold",
    ("below_parent_of", True): "at or below a parent of an ID class",
    ("below_parent_of", False): "not at or below a parent of an ID class",
    ("draw", False): "not drawn",
}
"""Operator of a refusal, and whether it holds -> reason."""
NO_GROUP = "rejected by the rule"
SHOWN_LEFT_OUT = 20
REASONS = (*LEFT_OUT.values(), NO_GROUP)
"""Order of reasons: of several groups' the first is given."""
OVERLAPS = {"class": "equal classes", "ancestry": "a class and its ancestor", "digest": "equal images"}


@dataclass(frozen=True)
class NewRecipe:
    """A new recipe and its result.

    Attributes
    ----------
    evidence : evidence and margin of the classes nearest to and farthest from ID, of each group that is not
        ID.
    overlaps : sentences on classes that groups share, and on classes dropped for that reason.
    left_out : sentences on classes with a synset that no group takes, by reason.
    notes : sentences on users' datasets that the recipe cannot declare, and on classes left out because they
        have no synset.
    verdict : the sets, how far their roles hold, and the differences that the benchmark can show.
    """

    name: str
    out: Path
    groups: Sequence[GroupRow]
    evidence: Sequence[Mapping[str, Any]]
    overlaps: Sequence[str]
    left_out: Sequence[str]
    notes: Sequence[str]
    verdict: BenchmarkVerdict

    @property
    def power(self) -> str | None:
        """Sentence on the differences that it can show (`wordnet_splits.power`), None if unknown."""
        return self.verdict.power

    def as_dict(self) -> dict[str, Any]:
        """Return what ``new --json`` prints."""
        rows = [row.model_dump() for row in self.groups]
        verdict = self.verdict.as_dict()
        return {**vars(self), "out": str(self.out), "groups": rows, "power": self.power, "verdict": verdict}


def new_recipe(
    name: str,
    out: str | Path,
    *,
    known: str,
    near: Sequence[str] = (),
    far: Sequence[str] = (),
    external: Sequence[str] = (),
    roots: Roots | None = None,
    hierarchy: Path | None = None,
    train: bool = True,
    resume: bool = False,
) -> NewRecipe:
    """Write a recipe with comments, and build it without reading images.

    Parameters
    ----------
    known, near, far, external : ``SOURCE``, ``SOURCE:CLASS,CLASS``, ``SOURCE:N`` to draw N classes; except in
        ``known``, ``SOURCE:MEASURE=VALUE`` or ``SOURCE:MEASURE=VALUE,N`` to select by a threshold.
    roots : folders where users' datasets are declared; images are not read.
    hierarchy : file of a tree that decides in place of WordNet; copied next to the recipe.
    train : whether ID has train images; a pretrained model needs none.
    resume : accept an existing file that has exactly the text that would be written.

    Raises
    ------
    UnknownNameError : the source or class does not exist.
    RecipeError : an invalid name, a group without classes, or external sets without ``train``; nothing is
        written.
    OutputError : the file exists already (with ``resume``: and differs), or cannot be written.
    """
    declare_roots(roots)
    out = Path(out)
    check_new_name(name)
    if out.suffix != ".toml":
        raise OutputError("a recipe's file name must end in .toml", where=str(out), hint=f"--out {out}.toml")
    if out.exists() and not resume:
        raise OutputError("already exists", where=str(out), hint="remove it, or give --out")
    if not (near or far):
        raise RecipeError("a benchmark needs an OOD group", where="new", hint="give --near or --far SOURCE")
    if external and not train:
        raise RecipeError("external sets are trained on", where="--no-train", hint="leave out one of the two")
    id_group = parse_group(known, where="--id")
    others = [
        [parse_group(text, where=where) for text in texts]
        for where, texts in (("--near", near), ("--far", far), ("--external", external))
    ]
    declarations, own, notes = _declared([id_group, *chain(*others)], out)
    if own is None and hierarchy is not None:
        own = OwnHierarchy(file=hierarchy.name).located(hierarchy)
    table = "" if own is None else bring_hierarchy(own, out.absolute().parent)
    text = draft_recipe(name, id_group, *others, sources=declarations, hierarchy=table, train=train)
    written = not out.exists()
    if not written and read_text(out) != text:
        raise OutputError(
            "already exists with other contents",
            where=str(out),
            hint=f"remove it, or keep it: wordnet-splits build {out}",
        )
    write_text(out, text)
    try:
        recipe = load_recipe(out)
        build = build_recipe(recipe, {})
    except BaseException:
        if written:  # it does not build
            out.unlink(missing_ok=True)
        raise
    manifest, membership = build.manifest, build.membership
    assert membership is not None
    leaks = [leak for leak in manifest.data.leaks if leak.kind in OVERLAPS]
    return NewRecipe(
        name,
        out,
        manifest.groups,
        _evidence(manifest.classes, recipe, taxonomy_of(recipe)),
        [*(_overlap(leak) for leak in leaks), *_dropped(membership)],
        _left_out(membership),
        [*notes, *_tested_on_train(recipe), *_without_synset(membership)],
        judge_benchmark(recipe, manifest),
    )


def check_new_name(name: str) -> None:
    """Raise RecipeError for a name that no new benchmark can have."""
    if not re.match(NAME_PATTERN, name):
        raise RecipeError(
            f"a benchmark's name must be of a-z, 0-9 and -, got {name!r}",
            where="new",
            hint="as in my-pets",
        )
    if name in recipe_names():
        raise RecipeError(f"{name!r} is a shipped benchmark", where="new", hint="give another name")


def _declared(groups: Sequence[DraftGroup], out: Path) -> tuple[list[str], OwnHierarchy | None, list[str]]:
    """Return the declarations of users' datasets, their hierarchy, and notes on others."""
    folder = out.absolute().parent.resolve()
    tables, notes = [], []
    own: OwnHierarchy | None = None
    for name in sorted({group.source for group in groups} - set(catalog_names())):
        declared = LOCAL.by_name[name]
        files = [declared.catalog_file.resolve(), declared.inventory_file.resolve()]
        if all(file.is_relative_to(folder) for file in files):
            catalog, inventory = (file.relative_to(folder).as_posix() for file in files)
            own = own or declared.hierarchy
            declared = declared.model_copy(update={"hierarchy": None})  # it is the recipe's
            tables.append(declared.as_toml(catalog, inventory if declared.inventory else None))
        else:
            notes.append(
                f"{out} does not declare {name}, whose catalog is not below {folder}: "
                f"it builds where {declared.file} is known"
            )
    return tables, own, notes


def _tested_on_train(recipe: Recipe) -> list[str]:
    """Return a sentence for each source whose train images are test images."""
    notes = []
    rules = [(group.source, group.images["test"]) for group in recipe.group if "test" in group.images]
    for source, rule in rules:
        for origin in rule.from_ or ():
            if (split := parse_split(origin)) is not None and split.kind in TRAIN:
                part = "its" if rule.all else "half of its"
                notes.append(f"{source} has no test split: {part} {origin} images are test images")
    return [*dict.fromkeys(notes)]


def _without_synset(membership: Membership) -> list[str]:
    """Return a sentence for each group whose rule left out classes because they have no synset."""
    by_group: dict[str, list[str]] = {}
    for (_, class_id), refusals in membership.refusals.items():
        for group, verdict in refusals:
            if verdict.undecided:
                by_group.setdefault(group.name, []).append(class_id)
    assert membership.context is not None
    taxonomy = membership.context.taxonomy
    return [
        f"{group}: left out {counted(len(left), 'class')} without a {taxonomy.noun}, such as {left[0]}; "
        f"rules that read {taxonomy.called} need a {taxonomy.noun} or the name of the class"
        for group, left in by_group.items()
    ]


def _overlap(leak: LeakRow) -> str:
    between = f"within {leak.a}" if leak.a == leak.b else f"between {leak.a} and {leak.b}"
    return f"{between}: {counted(leak.count, 'pair')} of {OVERLAPS[leak.kind]}"


def _evidence(classes: pa.Table, recipe: Recipe, taxonomy: Taxonomy) -> list[dict[str, Any]]:
    """Return the nearest and the farthest class of each group that is not ID."""
    columns = ["group", "role", "source", "class_id", "evidence", "mean"]
    rules = {group.name: group.classes for group in recipe.group}
    of_group: dict[str, list[dict[str, Any]]] = {}
    for row in classes.to_pylist():
        if row["role"] not in ("id", "excluded"):
            of_group.setdefault(row["group"], []).append(row)
    examples = []
    for rows in of_group.values():
        rows.sort(key=lambda row: (-(row["mean"] or 0), row["class_id"]))
        examples += rows[:1] if len(rows) == 1 else [rows[0], rows[-1]]
    return [
        {name: row[name] for name in columns} | {"margin": margin(row, [rules[row["group"]]], taxonomy)[0]}
        for row in examples
    ]


def _left_out(membership: Membership) -> list[str]:
    """Return a sentence, with an example, for each reason why classes with a synset are in no group."""
    assert membership.context is not None
    settled = {key for _, key in membership.verdicts} | membership.removed.keys()
    by_reason: dict[tuple[tuple[str, ...], str], list[tuple[Key, str]]] = {}
    for key, by_group in membership.refusals.items():
        refusals = [(group, verdict) for group, verdict in by_group if group.role != "id"]
        if key in settled or not refusals or any(verdict.undecided for _, verdict in refusals):
            continue
        groups = tuple(group.name for group, _ in refusals)
        reason, (group, verdict) = min(map(_reason, refusals), key=lambda pair: REASONS.index(pair[0]))
        why = sentence(verdict, source=key[0], class_id=key[1], group=group.name, context=membership.context)
        by_reason.setdefault((groups, reason), []).append((key, why))
    sentences = []
    for (groups, reason), classes in by_reason.items():
        ids = [class_id for (_, class_id), _ in classes]
        more = f" and {len(ids) - SHOWN_LEFT_OUT:,} more" if len(ids) > SHOWN_LEFT_OUT else ""
        left_out = f"{join_names(groups)}: {counted(len(ids), 'class')} left out, {reason}: "
        sentences.append(f"{left_out}{', '.join(ids[:SHOWN_LEFT_OUT])}{more}; {ids[0]}: {classes[0][1]}")
    return sentences


def _reason(refusal: tuple[Group, Verdict]) -> tuple[str, tuple[Group, Verdict]]:
    """Return the reason for a refusal, from the last finding of its verdict, and the refusal."""
    finding = refusal[1].findings[-1]
    is_draw = bool(finding.via) and finding.via[0].relation == "draw"
    operator = "draw" if is_draw else finding.expression.operator
    return LEFT_OUT.get((operator, finding.holds), NO_GROUP), refusal


def _dropped(membership: Membership) -> list[str]:
    by_group: dict[str, list[str]] = {}
    for (_, class_id), (group, reason) in membership.removed.items():
        by_group.setdefault(group.name, []).append(f"{class_id}: {reason}")
    return [
        f"{group}: {counted(len(dropped), 'class')} dropped, such as {dropped[0]}"
        for group, dropped in by_group.items()
    ]
