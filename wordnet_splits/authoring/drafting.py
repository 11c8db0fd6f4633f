"""Drafts of recipes from an ID source and near, far and external ones."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wordnet_splits.base.errors import OutputError, RecipeError, SplitsError, unknown
from wordnet_splits.base.text_formats import toml_table
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.own_hierarchy import NODES, TREE, OwnHierarchy
from wordnet_splits.datasets.sources import source_class
from wordnet_splits.datasets.sources.built_in import NoiseSource
from wordnet_splits.datasets.sources.layouts.conventions import parse_split
from wordnet_splits.wordnet.similarity.measures import BEYOND_ONE, MEASURES

KNOWN = "known"
KIN = f'overlaps = "group:{KNOWN}", relation = "kin"'
TRAIN = ("train", "training")
EVALUATED = ("test", "testing", "eval", "val", "dev")
NOISE = "generate = 1000"
_BOUND = re.compile(r"([a-z_0-9]+)=(\d*\.?\d+)")
"""A measure and its threshold, as in ``mean=0.6``."""

COMMENTS = {
    "source": "A custom dataset: the recipe and the files that it names need no other declaration.",
    "hierarchy": "The hierarchy that decides, in place of WordNet.",
    "id": "ID: the classes that the classifier is trained on.",
    "pretrained": "ID: the classes of a pretrained model, so there are no train images.",
    "rest": "The classes of the same source that are not ID: near by design.",
    "near": "Near: at or below a parent of an ID class, no ID class, nor a subclass or superclass of one.",
    "far": "Far: classes with a synset that is not at or below a parent of an ID class.",
    "external": "External: outliers for training, selected as far classes are.",
    "listed": "Classes listed by name.",
    "alike": "Similarity to the nearest ID class at or above the threshold, without relatives of ID classes.",
    "unlike": "Similarity to every ID class below the threshold, without relatives of ID classes.",
    "noise": "Generated images: shape and seed are in the ids, so all copies are equal.",
}


@dataclass(frozen=True)
class DraftGroup:
    """A source and its classes for a group: all, some, or a number to draw.

    ``bound`` is a measure and its threshold: near classes are at or above it, classes of other groups below.
    """

    source: str
    classes: tuple[str, ...] = ()
    draw: int | None = None
    bound: tuple[str, float] | None = None


def parse_group(text: str, *, where: str) -> DraftGroup:
    """Parse ``SOURCE``, ``SOURCE:CLASS,CLASS``, ``SOURCE:N`` or ``SOURCE:MEASURE=VALUE``.

    A number to draw may follow the threshold: ``imagenet21k:mean=0.6,100``.

    Raises
    ------
    UnknownNameError : no such source or measure.
    RecipeError : nothing follows the colon, or a class is repeated.
    """
    source, colon, rest = text.partition(":")
    classes = tuple(part.strip() for part in rest.split(",") if part.strip())
    try:
        load_catalog(source)
    except SplitsError as error:
        raise error.within(where) from None
    if (colon and not classes) or len(set(classes)) < len(classes):
        raise RecipeError(
            f"{text!r} must list classes, each once",
            where=where,
            hint="as in mypics:zebra,teapot",
        )
    if classes and classes[0] not in load_catalog(source) and (bound := _BOUND.fullmatch(classes[0])):
        return _bounded(source, bound, classes[1:], where)
    if len(classes) == 1 and classes[0].isdecimal() and classes[0] not in load_catalog(source):
        return DraftGroup(source, draw=int(classes[0]))
    return DraftGroup(source, classes)


def _bounded(source: str, bound: re.Match[str], draw: tuple[str, ...], where: str) -> DraftGroup:
    measure = bound[1]
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES, where=where)
    if measure == "distance":
        raise RecipeError(
            "cannot use distance: it is smaller for nearer classes",
            where=where,
            hint="use path: path=0.25 is three edges",
        )
    if where == "--id":
        raise RecipeError("ID classes cannot be selected by similarity to ID", where=where, hint="list them")
    if measure not in BEYOND_ONE and float(bound[2]) > 1:
        raise RecipeError(
            f"the threshold of {measure} must be in 0..1, got {bound[2]}",
            where=where,
            hint=f"as in {source}:{measure}=0.6,100: the number to draw follows the comma",
        )
    if len(draw) > 1 or not all(number.isdecimal() for number in draw):
        raise RecipeError(
            f"the number of classes to draw must be one integer, got {','.join(draw)!r}",
            where=where,
            hint=f"as in {source}:{measure}=0.6,100",
        )
    return DraftGroup(source, draw=int(draw[0]) if draw else None, bound=(measure, float(bound[2])))


def draft_recipe(
    name: str,
    id_group: DraftGroup,
    near: Sequence[DraftGroup] = (),
    far: Sequence[DraftGroup] = (),
    external: Sequence[DraftGroup] = (),
    *,
    sources: Sequence[str] = (),
    hierarchy: str = "",
    train: bool = True,
) -> str:
    """Return the text of a recipe with comments, for a person to read and change.

    Groups are in the order ID, external, near, far, since a class goes to the first group that takes it.

    Parameters
    ----------
    sources : the keys of a user's datasets, to be declared in the recipe.
    hierarchy : the table of the recipe's own hierarchy, as of `bring_hierarchy`.
    train : whether ID has train images; without them all ID images of the test split, else of the only one,
        are test images, for a pretrained model.
    """
    groups = [*((e, "external") for e in external), *((n, "near") for n in near), *((f, "far") for f in far)]
    own = [f"# {COMMENTS['hierarchy']}\n{hierarchy}"] if hierarchy else []
    blocks = [_head(name), *own, *(f"# {COMMENTS['source']}\n[[source]]\n{keys}" for keys in sources)]
    blocks.append(_group(KNOWN, "id", id_group, id_group, train))
    names = {KNOWN}
    for group, role in groups:
        group_name, number = f"{role}-{group.source}", 2
        while group_name in names:
            group_name, number = f"{role}-{group.source}-{number}", number + 1
        names.add(group_name)
        blocks.append(_group(group_name, role, group, id_group))
    return "\n".join(blocks)


def bring_hierarchy(own: OwnHierarchy, folder: Path) -> str:
    """Return the table that declares a hierarchy in a file of a folder, and copy it there from another one.

    Raises OutputError if the folder has another hierarchy; else as `OwnHierarchy.taxonomy`.
    """
    if own.folder.resolve() != folder.resolve():
        copy = OwnHierarchy(file=TREE, nodes=NODES, name=own.label, version=own.version)
        if (file := folder / TREE).exists() and not copy.located(file).is_same(own):
            raise OutputError("is another hierarchy", where=str(file), hint="give --out in another folder")
        own.write(folder)
        own = copy
    return f"[hierarchy]\n{toml_table(own.model_dump(exclude_none=True))}"


def _head(name: str) -> str:
    return f"""# Written by `wordnet-splits new`; edit it, then run `wordnet-splits build`.
schema = 1
name = {_text(name)}
title = ""
seed = 0                # of every draw; another seed makes another benchmark
# remove classes and images that leak between ID or external sets and others, and ID images in two splits or
# two classes
drop_leaks = true

# Authors and terms of use: `hub publish` requires licence and authors.
# [about]
# licence = "CC-BY-4.0"
# authors = [{{ name = "Ada Lovelace", orcid = "0000-0002-1825-0097" }}]
# for venues: biases, personal_information, social_impact, synthetic_data (`hub croissant --check`)
"""


def _group(name: str, role: str, group: DraftGroup, id_group: DraftGroup, train: bool = True) -> str:
    comment, rule = _classes(role, group, id_group)
    comment = "pretrained" if role == "id" and not train else comment
    lines = [f"# {COMMENTS[comment]}", "[[group]]", f"name = {_text(name)}", f"role = {_text(role)}"]
    lines.append(f"source = {_text(group.source)}")
    if comment == "noise":
        lines.append("noise = { shape = [32, 32, 3], seed = 0 }")
    lines += [f"classes = {{ {rule} }}", f"images = {{ {_images(role, group.source, train)} }}"]
    return "\n".join(lines) + "\n"


def _classes(role: str, group: DraftGroup, id_group: DraftGroup) -> tuple[str, str]:
    """Return the key of the comment, and the rule."""
    whole = f'listed = "source:{group.source}"'
    draw = "" if group.draw is None else f", draw = {group.draw}"
    if _is_noise(group.source):
        return "noise", whole
    if group.classes:
        ids = json.dumps(group.classes, ensure_ascii=False)
        return ("id" if role == "id" else "listed"), f"listed = {ids}"
    if role == "id":
        return "id", whole + draw
    if group.bound is not None:
        return _by_measure(role, group.bound, draw)
    if role == "near" and group.source == id_group.source:
        return "rest", "rest = true" + draw
    kin = f'below_parent_of = "group:{KNOWN}"'
    if role != "near":
        return role, f"not = {{ {kin} }}{draw}"
    return "near", f"all = [ {{ {kin} }}, {{ not = {{ {KIN} }} }} ]{draw}"


def _by_measure(role: str, bound: tuple[str, float], draw: str) -> tuple[str, str]:
    measure, value = bound
    side, comment = ("above", "alike") if role == "near" else ("below", "unlike")
    alike = f'similarity = {{ to = "group:{KNOWN}", measure = {_text(measure)}, {side} = {value} }}'
    return comment, f"all = [ {{ {alike} }}, {{ not = {{ {KIN} }} }} ]{draw}"


def _images(role: str, source: str, trained: bool) -> str:
    if _is_noise(source):
        return f"test = {{ {NOISE} }}"
    splits = load_catalog(source).splits
    train, test = _splits_of(TRAIN, splits), _splits_of(EVALUATED, splits)
    only = train or test or _text(splits[0])
    if role == "external":
        return f"train = {{ from = {only}, all = true }}"
    if role != "id" or not trained:
        return f"test = {{ from = {test or only}, all = true }}"
    if train and test:
        return f"train = {{ from = {train}, all = true }}, test = {{ from = {test}, all = true }}"
    return f"train = {{ from = {only}, half = true }}, test = {{ from = {only}, rest = true }}"


def _splits_of(kinds: Sequence[str], splits: Sequence[str]) -> str:
    """Return the splits of the first kind that a source has, or "".

    A split with the plain name of the kind, else all splits of the kind: ``test_seen`` and ``test_unseen``.
    """
    names = [(split, name) for split in splits if (name := parse_split(split)) is not None]
    for kind in kinds:
        alike = {split: not name.more for split, name in names if name.kind == kind}
        plain = [split for split, says_no_more in alike.items() if says_no_more]
        if chosen := plain[:1] or list(alike):
            return json.dumps(chosen[0] if len(chosen) == 1 else chosen, ensure_ascii=False)
    return ""


def _is_noise(source: str) -> bool:
    return issubclass(source_class(source), NoiseSource)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
