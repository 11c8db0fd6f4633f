"""Pictures in class folders: ``[split/][superclass/]class/picture``.

Folders above all classes alike (``images``) are passed over, and so is a folder of one letter (Places365's
``a/airfield``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.sources.layouts.walk import entries
from wordnet_splits.sources.own.layout import ALL, Image, without_extension
from wordnet_splits.sources.own.picture_files import PictureFiles
from wordnet_splits.sources.pixels import EXTENSIONS

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval"})
DEEPEST = 5
"""Folders between the root and the pictures."""

Parts = tuple[str, ...]


class Folders(PictureFiles):
    """A folder a class, below folders of splits where there are such."""

    about: ClassVar[str] = "[split/]class/picture"

    def images(self, note: Callable[[str], None]) -> Iterator[Image]:
        """Yield the pictures of every class folder."""
        folders = class_folders(self.root, self.declared.splits)
        splits = {split for split, _ in folders.values()}
        for parts, (split, class_parts) in folders.items():
            class_id = "/".join(class_parts)
            above = class_id if splits == {ALL} else f"{split}/{class_id}"
            for entry in entries(self.root.joinpath(*parts), self.root, is_picture):
                if entry.is_dir():
                    continue  # a class folder of its own
                stem = without_extension(entry.name)
                if stem is None:
                    note(printable("/".join((*parts, entry.name))))
                else:
                    yield Image(f"{above}/{stem}", class_id, split, ("/".join((*parts, entry.name)),))


def class_folders(root: Path, splits: Collection[str] | None = None) -> dict[Parts, tuple[str, Parts]]:
    """Return path -> (split, class) of every folder that holds pictures, or nothing at all, sorted.

    Parameters
    ----------
    splits : the folders of splits, where they are known: other folders beside them are passed over.

    Raises
    ------
    SourceError : no folder holds a picture, or none of a split does.
    """
    found = dict(_leaves(root, root, ()))
    if not any(found.values()):
        raise SourceError(
            "no class folders with pictures",
            where=str(root),
            hint="as in ROOT/dog/1.jpg or ROOT/train/dog/1.jpg; a list of names: --names FILE",
        )
    by_path = _by_split(found, None if splits is None or set(splits) == {ALL} else splits)
    if not by_path:
        raise SourceError(f"no class folders below {', '.join(splits or ())}", where=str(root))
    return by_path


def is_picture(name: str) -> bool:
    """Return whether a file is a picture by its name."""
    return name.rpartition(".")[2].lower() in EXTENSIONS


def _leaves(folder: Path, root: Path, parts: Parts) -> Iterator[tuple[Parts, bool]]:
    """Yield the folders that hold pictures or nothing, and whether it is pictures."""
    pictures, below = False, []
    for entry in entries(folder, root):
        if entry.is_dir():
            below.append(entry.name)
        else:
            pictures = pictures or is_picture(entry.name)
    if parts and (pictures or not below):
        yield parts, pictures
    if len(parts) < DEEPEST:
        for name in below:
            yield from _leaves(folder / name, root, (*parts, name))


def _by_split(found: Mapping[Parts, bool], splits: Collection[str] | None) -> dict[Parts, tuple[str, Parts]]:
    common = _common(list(found))
    inner = {parts: parts[common:] for parts in sorted(found)}
    if splits is None:
        tops = {parts[0] for parts in inner.values()}
        split = all(top.lower() in SPLITS for top in tops) and min(map(len, inner.values())) > 1
    else:
        split = True
        inner = {parts: rest for parts, rest in inner.items() if rest[0] in splits and len(rest) > 1}
    by_path = {}
    for parts, rest in inner.items():
        name, rest = (rest[0], rest[1:]) if split else (ALL, rest)
        by_path[parts] = (name, rest[1:] if len(rest) > 1 and len(rest[0]) == 1 else rest)
    return by_path


def _common(found: list[Parts]) -> int:
    """Return how many folders lie above all classes alike."""
    level = 0
    while len(found) > 1 and len({parts[level] for parts in found}) == 1 and min(map(len, found)) > level + 1:
        level += 1
    return level
