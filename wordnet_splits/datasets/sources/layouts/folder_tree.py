"""Distinguish splits from classes in a tree of folders, and find images without a class.

Only names are read. If they are ambiguous, an error explains how to declare the splits, so that no name is
read as a split in one place and as a class in another.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import listed, printable, same_spelling
from wordnet_splits.datasets.sources.layouts.layout import ALL
from wordnet_splits.datasets.sources.layouts.split_words import parse_split

Parts = tuple[str, ...]
"""The names of the folders from the root to a folder."""

CONTAINERS: Final = frozenset(
    {"image", "images", "img", "imgs", "picture", "pictures", "photos", "jpegimages"}
)
"""Names, in lower case, of folders that hold all images."""
SHOWN: Final = 4
"""Number of folders that an error names."""


class FolderTree(NamedTuple):
    """The class folders of a dataset.

    Attributes
    ----------
    classes : path of a class folder -> (split, class).
    unclassed : folders whose own images are in no class folder.
    """

    classes: dict[Parts, tuple[str, Parts]]
    unclassed: tuple[Parts, ...]


def read_tree(filled: Iterable[Parts], splits: Collection[str] | None, *, where: str) -> FolderTree:
    """Return the splits and classes of the folders that hold images.

    Parameters
    ----------
    filled : their paths.
    splits : the declared folders of splits, if any; ``all`` alone means no splits.

    Raises
    ------
    SourceError : splits and classes cannot be distinguished, no folder is a class, or two folders of a split
        have the same class.
    """
    classes, unclassed = _without_strays(sorted(filled))
    declared = None if splits is None or set(splits) == {ALL} else splits
    depth = _shared_depth(classes, declared)
    inner = {parts: parts[depth:] for parts in classes}
    if declared is not None:
        inner = {parts: rest for parts, rest in inner.items() if rest[0] in declared}
    has_splits = declared is not None or (splits is None and _has_splits(inner.values(), where))
    found = {parts: (rest[0], rest[1:]) if has_splits else (ALL, rest) for parts, rest in inner.items()}
    if has_splits:
        found = _below_splits(found)
        unclassed += inner.keys() - found.keys()
    if not found:
        only = f" below {_listed(declared)}" if declared else ""
        only += f", only in {_listed(map(_path, unclassed))}" if unclassed else ""
        hint = "as in ROOT/dog/1.jpg or ROOT/train/dog/1.jpg; a list of names: --names FILE; "
        hint += 'a table: layout = "csv" in dataset.toml'
        raise SourceError(f"no class folders with pictures{only}", where=where, hint=hint)
    if splits is None:
        _refuse_inner_splits(found, where)
    return FolderTree(
        _one_spelling(_without_letters(_without_container(found)), where), tuple(sorted(unclassed))
    )


def _without_strays(paths: list[Parts]) -> tuple[list[Parts], list[Parts]]:
    """Return the class folders, and the folders above all classes, whose own images have no class."""
    strays = [paths.pop(0)] if paths and not paths[0] else []
    while len(paths) > 2 and all(parts[: len(paths[0])] == paths[0] for parts in paths):
        strays.append(paths.pop(0))
    return paths, strays


def _shared_depth(paths: list[Parts], splits: Collection[str] | None) -> int:
    """Return the number of outer folders that all classes share, without folders of splits."""
    depth = 0
    while len({parts[depth] for parts in paths}) == 1 and min(map(len, paths)) > depth + 1:
        name = paths[0][depth]
        is_split = _is_split(name) if splits is None else name in splits
        if is_split or (len(paths) == 1 and name.lower() not in CONTAINERS):
            break
        depth += 1
    return depth


def _has_splits(inner: Collection[Parts], where: str) -> bool:
    """Return whether the outermost folders are splits. Raises SourceError if the names are ambiguous."""
    tops = {parts[0]: parse_split(parts[0]) for parts in inner}
    deep = {parts[0] for parts in inner if len(parts) > 1}
    marked = {top for top in tops if _is_split(top) or top.lower() in CONTAINERS}
    if not deep and (len(marked) == len(tops) or all(tops.values())):  # kinds of trains are classes
        return not all(split and split.kind == "train" and split.more for split in tops.values())
    if all(tops.values()):
        if marked or len(deep) < len(tops) or _share_classes(inner):
            return True
        marked = set(tops)
    elif _share_classes(named := [parts for parts in inner if tops[parts[0]]]):
        # Intel's seg_train and seg_test next to seg_pred
        kinds = {split.kind for split in tops.values() if split}
        marked |= {parts[0] for parts in named} if len(kinds) > 1 else set()
    marked -= {top for top in marked - deep if top.lower() == "train"}
    if not marked:
        return False
    others = _listed(tops.keys() - marked)
    message = f"cannot tell splits from classes: {_listed(marked)}" + (f" next to {others}" if others else "")
    splits = (marked & deep) or marked  # a flat one has no class
    names = ", ".join(f'"{printable(top)}"' for top in sorted(splits)[:SHOWN])
    hint = f'write in dataset.toml which are splits, splits = [{names}], or splits = ["all"] for none'
    raise SourceError(message, where=where, hint=hint)


def _below_splits(found: Mapping[Parts, tuple[str, Parts]]) -> dict[Parts, tuple[str, Parts]]:
    """Skip folders that are alone in their split: ``train/train/dog``, ``val/images/dog``."""
    by_split: defaultdict[str, dict[Parts, Parts]] = defaultdict(dict)
    for parts, (split, rest) in found.items():
        if not all(name.lower() in CONTAINERS for name in rest):
            by_split[split][parts] = rest
    for split, classes in by_split.items():
        while len(names := {rest[0] for rest in classes.values()}) == 1:
            (name,) = names
            if name != split and name.lower() not in CONTAINERS:
                break
            classes = {parts: rest[1:] for parts, rest in classes.items() if rest[1:]}
        by_split[split] = classes
    return {
        parts: (split, by_split[split][parts])
        for parts, (split, _) in found.items()
        if parts in by_split[split]
    }


def _share_classes(inner: Collection[Parts]) -> bool:
    """Return whether two outermost folders have a class of the same name, also in ``test_set/test_set``."""
    tops: defaultdict[Parts, set[str]] = defaultdict(set)
    for parts in inner:
        tops[parts[2:] if parts[1:2] == parts[:1] else parts[1:]].add(parts[0])
    return any(len(of_class) > 1 for of_class in tops.values())


def _refuse_inner_splits(found: Mapping[Parts, tuple[str, Parts]], where: str) -> None:
    """Raise SourceError where folders of splits lie in class folders; a last ``train`` may be a class."""
    inner = {
        name
        for _, rest in found.values()
        for at, name in enumerate(rest)
        if at and _is_split(name) and not (at == len(rest) - 1 and name.lower() == "train")
    }
    if inner:
        message = f"{_listed(inner)} in class folders: splits, or classes?"
        hint = 'move splits to the top, as in ROOT/train/dog/1.jpg, or write splits = ["all"] in dataset.toml'
        raise SourceError(message, where=where, hint=hint)


def _without_container(found: dict[Parts, tuple[str, Parts]]) -> dict[Parts, tuple[str, Parts]]:
    """Drop a last folder that all classes have, as in ``dog/images``."""
    lasts = {rest[-1] if len(rest) > 1 else "" for _, rest in found.values()}
    if len(found) > 1 and len(lasts) == 1 and next(iter(lasts)).lower() in CONTAINERS:
        return {parts: (split, rest[:-1]) for parts, (split, rest) in found.items()}
    return found


def _without_letters(found: dict[Parts, tuple[str, Parts]]) -> dict[Parts, tuple[str, Parts]]:
    """Drop outer folders of the first letter, as in ``a/airfield``."""
    sorted_by_letter = {
        parts
        for parts, (_, rest) in found.items()
        if len(rest) > 1 and len(rest[0]) == 1 and rest[1].casefold().startswith(rest[0].casefold())
    }
    letters = {parts for parts, (_, rest) in found.items() if len(rest[0]) == 1}
    if letters != sorted_by_letter:
        return found
    return {parts: (split, rest[1:] if parts in letters else rest) for parts, (split, rest) in found.items()}


def _one_spelling(found: Mapping[Parts, tuple[str, Parts]], where: str) -> dict[Parts, tuple[str, Parts]]:
    """Spell a class the same in all splits: ``golden_retriever`` is ``golden retriever``."""
    keys = {parts: tuple(map(same_spelling, rest)) for parts, (_, rest) in found.items()}
    spelt: dict[Parts, Parts] = {}
    taken: dict[tuple[str, Parts], Parts] = {}
    for parts, (split, rest) in found.items():
        key, composed = keys[parts], tuple(unicodedata.normalize("NFC", name) for name in rest)
        spelt[key] = min(spelt.get(key, composed), composed)
        if taken.setdefault((split, key), parts) != parts:
            names = f"{_path(taken[split, key])} and {_path(parts)}"
            raise SourceError(f"folders of the same class: {names}", where=where, hint="join or rename them")
    return {parts: (split, spelt[keys[parts]]) for parts, (split, _) in found.items()}


def _is_split(name: str) -> bool:
    """Return whether a name is the name of a split alone."""
    split = parse_split(name)
    return split is not None and not split.more


def _path(parts: Parts) -> str:
    return printable("/".join(parts)) or "the root"


def _listed(names: Iterable[str]) -> str:
    return listed(sorted(set(names)), SHOWN)
