"""Somebody else's lists as a benchmark of one's own: a recipe, its lists beside it, and what it builds."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wordnet_splits.base.errors import DataError, OutputError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.names import printable
from wordnet_splits.catalog import load_catalog
from wordnet_splits.exchange.entries import ListEntry, slug
from wordnet_splits.exchange.writing_lists import write_list
from wordnet_splits.making import Build, BuildOptions, build_benchmark
from wordnet_splits.manifest.tables import CUT_ORDER, ROLES
from wordnet_splits.packed.reading import RAW_VIEW
from wordnet_splits.recipe import Recipe, load_recipe
from wordnet_splits.sources import source_class
from wordnet_splits.sources.noise import NoiseId, NoiseSource


@dataclass
class Own:
    """What was made of the lists: the recipe and its build only where a group is ID.

    ``left_out`` are the classes of groups that are not ID and of which no image is named.
    """

    name: str
    lists: list[str]
    recipe: Path | None = None
    build: Build | None = None
    left_out: list[ListEntry] = field(default_factory=list)


@dataclass
class _Group:
    """The images of one group of one source, by split."""

    name: str
    source: str
    role: str
    view: str
    splits: dict[str, list[ListEntry]] = field(default_factory=lambda: defaultdict(list))

    @property
    def entries(self) -> Iterable[ListEntry]:
        return (entry for of_split in self.splits.values() for entry in of_split)

    @property
    def listed(self) -> dict[str, list[ListEntry]]:
        """The splits whose images are named."""
        return {split: entries for split, entries in self.splits.items() if split}

    @property
    def rules(self) -> dict[str, str]:
        """The image rules by split where only classes are named: all test images."""
        splits = load_catalog(self.source).splits
        split_name = next((split for split in ("test", "val") if split in splits), splits[-1])
        return {"test": f"{{ from = {_text(split_name)}, all = true }}"}

    @property
    def classes(self) -> list[str]:
        return sorted({entry.class_id or "" for entry in self.entries})


def own_benchmark(
    images: Sequence[ListEntry],
    path: Path,
    out: Path,
    *,
    name: str | None,
    roles: Mapping[str, str],
    options: BuildOptions,
    like: Recipe | None = None,
) -> Own:
    """Write lists, recipe and manifest of some images under ``out``.

    Parameters
    ----------
    like : a recipe of ours for the same benchmark, whose published counts and transforms hold here, too.

    An ID group of which only classes are named has no images yet; another is left out with ``allow_missing``.
    Where no image is named at all, nor ``like``, each takes all test images.

    Raises
    ------
    DataError : a group that no role fits, in which images contradict each other, or that has none.
    OutputError : the recipe is there already, or ``out`` cannot be written.
    RecipeError : the recipe builds nothing, such as one without training classes.
    """
    name = slug(name or path.stem)
    groups = sorted(_groups(images, roles), key=lambda g: (ROLES.index(g.role), g.name))
    bare = [g for g in groups if g.role != "id" and not g.listed] if any(g.listed for g in groups) else []
    if bare and not options.allow_missing:
        reason = (
            f"no image is listed of {', '.join(g.name for g in bare)}, which only ID groups can do without"
        )
        raise DataError(reason, where=printable(path), hint="leave out such groups with --allow-missing")
    groups = [group for group in groups if group not in bare]
    recipe = out / f"{name}.toml"
    if recipe.exists():
        raise OutputError("is there already", where=str(recipe), hint="remove it, or give --name or --out")
    left_out = [entry for group in bare for entry in group.entries]
    benchmark = Own(name, _write_lists(groups, path, out, name), left_out=left_out)
    if not any(group.role == "id" for group in groups):
        return benchmark
    write_text(recipe, _recipe_text(name, groups, like))
    benchmark.recipe = recipe
    benchmark.build = build_benchmark(
        load_recipe(recipe),
        roots=options.roots,
        out=out,
        allow_missing=options.allow_missing,
        progress=options.progress,
    )
    return benchmark


def _groups(images: Sequence[ListEntry], roles: Mapping[str, str]) -> list[_Group]:
    """Collect images by group; one that takes from several sources becomes several."""
    sources: dict[str, set[str]] = defaultdict(set)
    for entry in images:
        sources[entry.group].add(entry.source or "")
    groups: dict[tuple[str, str], _Group] = {}
    views: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    declared_roles: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    labelled: dict[tuple[str, str], set[bool]] = defaultdict(set)
    for entry in images:
        key = (entry.group, entry.source or "")
        if key not in groups:
            name = slug(entry.group if len(sources[entry.group]) == 1 else f"{entry.group}-{entry.source}")
            groups[key] = _Group(name, key[1], "", RAW_VIEW)
        groups[key].splits[entry.split].append(entry)
        views[key].add(entry.view)
        declared_roles[key].add(entry.role)
        if entry.label is not None:
            labelled[key].add(entry.label >= 0)
    for key, group in groups.items():
        where = f"group {printable(key[0])}"
        group.view = _one(views[key], "view", where) or RAW_VIEW
        role = roles.get(key[0]) or roles.get(group.name) or _one(declared_roles[key], "role", where)
        if role is None and len(labelled[key]) > 1:
            reason = "holds labels of ID classes and negative ones"
            raise DataError(reason, where=where, hint=f"say --role {group.name}=ROLE, or split the list")
        group.role = role or ("id" if labelled[key] == {True} else "far")
        if group.role not in ROLES[:-1]:
            raise DataError(f"role {printable(group.role)!r} is none of {', '.join(ROLES[:-1])}", where=where)
    if len({g.name for g in groups.values()}) < len(groups):
        raise DataError("two groups get the same name", hint="rename one of the files")
    return list(groups.values())


def _one(values: set[str | None], kind: str, where: str) -> str | None:
    distinct = sorted(value for value in values if value is not None)
    if len(distinct) > 1:
        raise DataError(
            f"two {kind}s in it, {distinct[0]} and {distinct[1]}", where=where, hint="split the list"
        )
    return distinct[0] if distinct else None


def _list_name(name: str, split: str, group: _Group) -> str:
    return f"{name}/{split}_{group.name}"


def _write_lists(groups: Sequence[_Group], path: Path, out: Path, name: str) -> list[str]:
    names = []
    for group in groups:
        for split, entries in sorted(group.listed.items()):
            called = _list_name(name, split, group)
            write_list(called, entries, path, out)
            names.append(called)
    return names


def _recipe_text(name: str, groups: Sequence[_Group], like: Recipe | None) -> str:
    """Return the recipe as TOML; its classes are those of the lists, whatever relates them."""
    lines = ["schema = 1", f"name = {_text(name)}", "reproduces = true", *_head(groups, like)]
    published = {} if like is None else {group.name: group.published for group in like.group}
    of_classes = like is None and not any(group.listed for group in groups)
    listed_classes: set[tuple[str, str]] = set()
    for group in groups:
        keys = {(group.source, class_id) for class_id in group.classes}
        lines += ["", "[[group]]", f"name = {_text(group.name)}", f"role = {_text(group.role)}"]
        lines += [f"source = {_text(group.source)}", f"view = {_text(group.view)}"]
        if not group.listed and issubclass(source_class(group.source), NoiseSource):
            hint = "leave the group out, or import a format that names images"
            raise DataError("classes of noise say no size", where=f"group {group.name}", hint=hint)
        noise = NoiseId.parse(next(iter(group.entries)).image_id or "")
        if noise is not None:
            lines.append(f"noise = {{ shape = {list(noise.shape)}, seed = {noise.seed} }}")
        if keys & listed_classes:
            lines.append("reuse = true")
        listed_classes |= keys
        lines.append(f"classes = {{ listed = {_classes(name, group, like)} }}")
        rules = [
            f"{split} = {{ list = {_text(_list_name(name, split, group))} }}"
            for split in CUT_ORDER
            if split in group.listed
        ]
        if of_classes:
            rules += [f"{split} = {rule}" for split, rule in group.rules.items()]
        if rules:
            lines.append(f"images = {{ {', '.join(rules)} }}")
        if counts := published.get(group.name):
            lines.append(f"published = {_table(counts)}")
    return "\n".join(lines) + "\n"


def _head(groups: Sequence[_Group], like: Recipe | None) -> list[str]:
    """Return the lines that hold for the whole benchmark."""
    if like is None:
        return []
    used = {group.source for group in groups}
    transforms = {source: spec for source, spec in like.transforms.items() if source in used}
    lines = [f"title = {_text(f'{like.title}: as its authors have it')}", f"paper = {_text(like.paper)}"]
    lines.append(f"transforms = {_table(transforms)}")
    if like.normalise is not None:
        lines.append(f"normalise = {_table(like.normalise.model_dump())}")
    return lines


def _classes(name: str, group: _Group, like: Recipe | None) -> str:
    """Return the classes as an array, or as the one list that has them all, where the lists are evidence."""
    for split in CUT_ORDER if like is not None else ():
        if {entry.class_id or "" for entry in group.listed.get(split, ())} == set(group.classes):
            return _text(f"list:{_list_name(name, split, group)}")
    return f"[{', '.join(map(_text, group.classes))}]"


def _table(values: Mapping[str, object]) -> str:
    """Return an inline table of texts, numbers and arrays of these."""
    return f"{{ {', '.join(f'{_text(key)} = {json.dumps(value)}' for key, value in values.items())} }}"


def _text(value: str) -> str:
    """Return a text as TOML: as in JSON, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
