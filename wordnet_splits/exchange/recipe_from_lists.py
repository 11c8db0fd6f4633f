"""A benchmark from image lists of other origin: the lists, a recipe that refers to them, and its manifest."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import DataError, OutputError, Problem
from wordnet_splits.base.files import write_text
from wordnet_splits.base.jsonable import to_json
from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import write_table
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.text_formats import toml_table
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.construct.classes import number_classes
from wordnet_splits.benchmark.images.raw_images import RAW_VIEW
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.carried import FOLDER as SOURCES
from wordnet_splits.benchmark.manifest.carried import hierarchy_row, source_rows, write_carried
from wordnet_splits.benchmark.manifest.metadata import Carried
from wordnet_splits.benchmark.manifest.tables import CUT_ORDER, ROLES
from wordnet_splits.benchmark.recipe import Recipe, load_recipe
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.datasets.catalog.declarations import LOCAL, Sources
from wordnet_splits.datasets.catalog.inventory import FOLDER, LIST_SCHEMA
from wordnet_splits.datasets.sources import source_class
from wordnet_splits.datasets.sources.built_in import NoiseId, NoiseSource
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.exchange.formats import ListEntry, slug


@dataclass(frozen=True)
class Unidentified:
    """Images of a set of an archive whose image ids are unknown, with the reason."""

    folder: str
    reason: str
    paths: Sequence[str] = field(repr=False)

    def __str__(self) -> str:
        number = len(self.paths)
        return f"{self.folder}: {number:,} image{'s have' if number != 1 else ' has'} no id: {self.reason}"


@dataclass(frozen=True)
class Overlap:
    """Classes, or images in split ``of``, of a group in two manifests: in both, or in only one."""

    group: str
    of: str
    both: int
    only_a: int
    only_b: int


@dataclass
class Imported:
    """The result of `import_benchmark`.

    Attributes
    ----------
    manifest : None if no group is ID, so that only lists were written.
    recipe : the recipe file, None without a manifest.
    lists : names of the lists, as recipes refer to them.
    unmatched : entries without a known image, or classes of groups without images.
    problems : images missing from a root.
    left_out : for an archive, the ``unmatched`` images by set, with reasons.
    like, in_common : for an archive, the shipped benchmark that corresponds to it, and their overlap.
    """

    name: str
    folder: Path
    manifest: Manifest | None
    recipe: Path | None = None
    lists: list[str] = field(default_factory=list)
    unmatched: list[ListEntry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Unidentified] = field(default_factory=list)
    like: str | None = None
    in_common: list[Overlap] = field(default_factory=list)

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the images, None if the images of a group are unknown."""
        return None if self.manifest is None else self.manifest.fingerprint

    def as_dict(self) -> dict[str, Any]:
        """Return what ``import --json`` prints."""
        result = {
            "name": self.name,
            "out": self.folder,
            "recipe": self.recipe,
            "lists": self.lists,
            "groups": [] if self.manifest is None else [g.model_dump() for g in self.manifest.groups],
            "fingerprint": self.fingerprint,
            "unmatched": [entry.name for entry in self.unmatched],
            "missing": self.problems,
            "left_out": [
                {"set": row.folder, "images": len(row.paths), "reason": row.reason} for row in self.left_out
            ],
            "like": self.like,
            "in_common": self.in_common,
        }
        return {key: to_json(value) for key, value in result.items()}


def count_overlap(a: Manifest, b: Manifest) -> list[Overlap]:
    """Count the classes, then the images by split, that groups of the same name have in common."""
    in_a, in_b = _members(a), _members(b)
    return [
        Overlap(*key, len(in_a[key] & in_b[key]), len(in_a[key] - in_b[key]), len(in_b[key] - in_a[key]))
        for key in dict.fromkeys([*in_a, *in_b])
    ]


def _members(manifest: Manifest) -> defaultdict[tuple[str, str], set[Any]]:
    """Return the (source, class_id) or (source, image_id) pairs by group and "classes" or split."""
    members: defaultdict[tuple[str, str], set[Any]] = defaultdict(set)
    for row in manifest.groups:
        members[row.group, "classes"] |= set()
    columns = (manifest.classes[name].to_pylist() for name in ("group", "source", "class_id"))
    for group, source, class_id in zip(*columns, strict=True):
        if group:
            members[group, "classes"].add((source, class_id))
    for split, group in manifest.parts:
        table = manifest.parts[split, group]()
        ids = (table[name].to_pylist() for name in ("source", "image_id"))
        members[group, split] |= set(zip(*ids, strict=True))
    return members


@dataclass(frozen=True)
class ImportOptions:
    """Roots to read images from, whether missing images are left out, and where progress is reported.

    Attributes
    ----------
    datasets : the users' datasets that may be named.
    """

    roots: Roots
    allow_missing: bool
    progress: Progress | None
    datasets: Sources = LOCAL


@dataclass
class _Group:
    """The images of a group; all have the same source."""

    name: str
    source: str
    role: str
    view: str
    entries: Sequence[ListEntry]
    datasets: Sources

    @cached_property
    def listed(self) -> dict[str, list[ListEntry]]:
        """Entries by split, for splits with listed images."""
        listed = defaultdict(list)
        for entry in self.entries:
            if entry.split:
                listed[entry.split].append(entry)
        return listed

    @property
    def rules(self) -> dict[str, object]:
        """Image rules by split if only classes are listed: all test images."""
        splits = load_catalog(self.source, self.datasets).splits
        split_name = next((split for split in ("test", "val") if split in splits), splits[-1])
        return {"test": {"from": split_name, "all": True}}

    @property
    def classes(self) -> list[str]:
        return sorted({entry.class_id or "" for entry in self.entries})


def benchmark_from_lists(
    images: Sequence[ListEntry],
    path: Path,
    out: Path,
    *,
    name: str | None,
    roles: Mapping[str, str],
    options: ImportOptions,
    like: Recipe | None = None,
) -> Imported:
    """Write lists, recipe and manifest of some images into ``out``; only the lists if no group is ID.

    An ID group with classes but no images is kept; other groups without images are left out with
    ``allow_missing``. If no group has images and ``like`` is not given, each takes all test images.

    Parameters
    ----------
    like : a shipped recipe for the same benchmark, whose published counts and transforms are taken over.
    """
    name = slug(name or path.stem)
    groups = sorted(_groups(images, roles, options.datasets), key=lambda g: (ROLES.index(g.role), g.name))
    bare = [g for g in groups if g.role != "id" and not g.listed] if any(g.listed for g in groups) else []
    if bare and not options.allow_missing:
        reason = f"a group without images must be ID, got {', '.join(g.name for g in bare)}"
        raise DataError(reason, where=printable(path), hint="leave out such groups with --allow-missing")
    groups = [group for group in groups if group not in bare]
    _check_labels(groups, options.datasets)
    declared = {n: d for n, d in options.datasets.by_name.items() if n not in catalog_names()}
    own = {g.source: declared[g.source] for g in groups if g.source in declared}
    recipe = out / f"{name}.toml"
    if recipe.exists():
        raise OutputError("already exists", where=str(recipe), hint="remove it, or give --name or --out")
    left_out = [entry for group in bare for entry in group.entries]
    imported = Imported(
        name, out / name, None, lists=_write_lists(groups, path, out, name), unmatched=left_out
    )
    carried = out / FOLDER / name
    hierarchy = next((d.hierarchy for d in own.values() if d.hierarchy), None)  # one: `load_recipe` checks
    rows = Carried(sources=source_rows(own), hierarchy=hierarchy_row(hierarchy))
    write_carried(rows, carried, own, hierarchy=hierarchy)
    if not any(group.role == "id" for group in groups):
        return imported
    catalogs = f"{FOLDER}/{name}/{SOURCES}"
    own = {n: own[n].over(hierarchy and hierarchy.carried(catalogs)) for n in sorted(own)}
    tables = [f"\n[[source]]\n{own[n].as_toml(f'{catalogs}/{n}.tsv')}" for n in own]
    write_text(recipe, _recipe_text(name, groups, like) + "".join(tables))
    build = build_benchmark(
        load_recipe(recipe),
        roots=options.roots,
        out=out,
        allow_missing=options.allow_missing,
        progress=options.progress,
    )
    return replace(imported, recipe=recipe, manifest=build.manifest, problems=build.problems)


def _groups(images: Sequence[ListEntry], roles: Mapping[str, str], datasets: Sources) -> list[_Group]:
    """Collect images by group; a group with several sources becomes several groups."""
    entries_of: dict[tuple[str, str], list[ListEntry]] = defaultdict(list)
    for entry in images:
        entries_of[entry.group, entry.source or ""].append(entry)
    sources = Counter(group for group, _ in entries_of)
    groups = []
    for (group, source), entries in entries_of.items():
        name = slug(group if sources[group] == 1 else f"{group}-{source}")
        where = f"group {printable(group)}"
        view = _single_value({entry.view for entry in entries}, "view", where) or RAW_VIEW
        role = roles.get(group) or roles.get(name)
        role = role or _single_value({entry.role for entry in entries}, "role", where)
        labelled = {entry.label >= 0 for entry in entries if entry.label is not None}
        if role is None and len(labelled) > 1:
            reason = "labels must be all negative or all of ID classes"
            raise DataError(reason, where=where, hint=f"give --role {name}=ROLE, or split the list")
        role = role or ("id" if labelled == {True} else "far")
        if role not in ROLES[:-1]:
            message = f"role must be {' or '.join(ROLES[:-1])}, got {printable(role)!r}"
            raise DataError(message, where=where)
        groups.append(_Group(name, source, role, view, entries, datasets))
    if len({group.name for group in groups}) < len(groups):
        raise DataError("groups must have distinct names", hint="rename one of the files")
    return groups


def _check_labels(groups: Sequence[_Group], datasets: Sources) -> None:
    """Raise DataError where an image of an ID class has another label than its class in the benchmark."""
    of_role = {
        role: [(group.source, group.classes) for group in groups if group.role == role]
        for role in ("id", "csid")
    }
    labels = number_classes(of_role["id"], of_role["csid"], datasets)
    for group in groups:
        for entry in group.entries:
            label = labels.get((group.source, entry.class_id or ""), -1)
            if entry.label not in (None, label) and (group.role in of_role or label >= 0):
                raise DataError(
                    f"image {printable(entry.name)} has label {entry.label} in the list; its class "
                    f"{printable(entry.class_id)} has label {label} in the benchmark",
                    where=f"group {group.name}",
                    hint="number the ID classes 0 to K - 1 in the order of the catalog, group by group; "
                    "covariate-shifted images need --role GROUP=csid",
                )


def _single_value(values: set[str | None], kind: str, where: str) -> str | None:
    """Return the value that all entries of a group have, None if none has any."""
    distinct = sorted(value for value in values if value is not None)
    if len(distinct) > 1:
        message = f"a group must have one {kind}, got {distinct[0]} and {distinct[1]}"
        raise DataError(message, where=where, hint="split the list")
    return distinct[0] if distinct else None


def _list_name(name: str, split: str, group: _Group) -> str:
    return f"{name}/{split}_{group.name}"


def _write_lists(groups: Sequence[_Group], path: Path, out: Path, name: str) -> list[str]:
    names = []
    for group in groups:
        for split, entries in sorted(group.listed.items()):
            names.append(_list_name(name, split, group))
            write_list(names[-1], entries, path, out)
    return names


def write_list(name: str, entries: Sequence[ListEntry], path: Path, out: Path) -> None:
    """Write images as ``lists/<name>.parquet`` below ``out``; ``path`` is the imported file."""
    rows = sorted(
        (e.source or "", e.image_id or "", e.class_id or "", -1 if e.label is None else e.label)
        for e in entries
    )
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=LIST_SCHEMA)
    digest = hashlib.sha256("".join(f"{row}\n" for row in rows).encode()).hexdigest()
    metadata = {"origin": f"imported from {printable(path.name)}", "sha256": digest}
    write_table(table, out / FOLDER / f"{name}.parquet", metadata=metadata)


def _recipe_text(name: str, groups: Sequence[_Group], like: Recipe | None) -> str:
    """Return the recipe as TOML; its classes come from the lists."""
    tables = [toml_table({"schema": 1, "name": name, "reproduces": True, **_head(groups, like)})]
    published = {} if like is None else {group.name: group.published for group in like.group}
    of_classes = like is None and not any(group.listed for group in groups)
    listed_classes: set[tuple[str, str]] = set()
    for group in groups:
        table: dict[str, object] = {"name": group.name, "role": group.role}
        table |= {"source": group.source, "view": group.view}
        if not group.listed and issubclass(source_class(group.source, group.datasets), NoiseSource):
            hint = "leave the group out, or import a format that names images"
            raise DataError("noise classes have no image size", where=f"group {group.name}", hint=hint)
        if noise := NoiseId.parse(next(iter(group.entries)).image_id or ""):
            table["noise"] = {"shape": noise.shape, "seed": noise.seed}
        keys = {(group.source, class_id) for class_id in group.classes}
        if keys & listed_classes:
            table["reuse"] = True
        listed_classes |= keys
        table["classes"] = {"listed": _classes(name, group, like)}
        splits = [split for split in CUT_ORDER if split in group.listed]
        rules: dict[str, object] = {split: {"list": _list_name(name, split, group)} for split in splits}
        if images := rules | (group.rules if of_classes else {}):
            table["images"] = images
        if counts := published.get(group.name):
            table["published"] = dict(counts)
        tables.append(f"[[group]]\n{toml_table(table)}")
    return "\n".join(tables)


def _head(groups: Sequence[_Group], like: Recipe | None) -> dict[str, object]:
    """Return the keys about the benchmark as a whole, taken from ``like``."""
    if like is None:
        return {}
    used = {group.source for group in groups}
    transforms = {source: spec for source, spec in like.transforms.items() if source in used}
    head: dict[str, object] = {
        "title": f"{like.title}: as its authors have it",
        "paper": like.paper,
        "transforms": transforms,
    }
    return head if like.normalise is None else {**head, "normalise": like.normalise.model_dump()}


def _classes(name: str, group: _Group, like: Recipe | None) -> str | list[str]:
    """Return the classes; with ``like``, as a reference to a list with all classes."""
    for split in CUT_ORDER if like is not None else ():
        if {entry.class_id or "" for entry in group.listed.get(split, ())} == set(group.classes):
            return f"list:{_list_name(name, split, group)}"
    return group.classes
