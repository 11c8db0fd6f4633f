"""The classes of a dataset from its folders: ``[split/][superclass/]class/picture``.

Folders above all classes alike (``images``) are passed over, and so is a folder of one letter (Places365's
``a/airfield``). Where a class folder lies in another, the outer one is its superclass, unless the inner names
recur under many outer ones: ``church/indoor`` and ``hangar/indoor`` are qualified names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from wordnet_splits.errors import SourceError
from wordnet_splits.propose.classes import ALL, FoundClasses, NamedClass, checked
from wordnet_splits.sources.layouts.names import IMAGE_EXTENSIONS
from wordnet_splits.sources.layouts.walk import check_root, entries
from wordnet_splits.untrusted import printable

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval"})
PICTURES = IMAGE_EXTENSIONS | {"bmp", "webp", "tif", "tiff", "ppm", "pgm", "pbm"}
DEEPEST = 5
"""Folders between the root and the pictures."""
SHOWN = 3

Parts = tuple[str, ...]


def folder_classes(root: Path) -> FoundClasses:
    """Return the classes of a folder, sorted, with their pictures counted by split.

    Raises
    ------
    SourceError : it is absent, unreadable, or holds no class folders with pictures.
    DataError : a class folder's name cannot stand in a table.
    """
    folder = check_root(root, "to be read")
    found = dict(_leaves(folder, folder, ()))
    if not any(found.values()):
        raise SourceError(
            "no class folders with pictures",
            where=str(root),
            hint="as in ROOT/dog/1.jpg or ROOT/train/dog/1.jpg; a list of names: --names FILE",
        )
    found = _without_common(found)
    by_class, splits = _by_split(found)
    superclasses = _has_superclasses(list(by_class))
    classes, empty = [], []
    for parts, counts in sorted(by_class.items()):
        class_id = "/".join(parts)
        if not sum(counts.values()):
            empty.append(class_id)
        elif superclasses and len(parts) > 1:
            classes.append(NamedClass(class_id, parts[-1], parts[-2], counts))
        else:
            classes.append(NamedClass(class_id, class_id, "", counts))
    return checked(classes, splits, where=str(root), notes=_said_of(empty))


def _said_of(empty: list[str]) -> list[str]:
    if not empty:
        return []
    some = ", ".join(printable(name) for name in empty[:SHOWN]) + (", ..." if len(empty) > SHOWN else "")
    return [f"{len(empty):,} class folders hold no picture and are left out: {some}"]


def _leaves(folder: Path, root: Path, parts: Parts) -> Iterator[tuple[Parts, int]]:
    """Yield the folders that hold pictures or nothing, and how many pictures are directly in each."""
    pictures, below = 0, []
    for entry in entries(folder, root):
        if entry.is_dir():
            below.append(entry.name)
        elif entry.name.rpartition(".")[2].lower() in PICTURES:
            pictures += 1
    if parts and (pictures or not below):
        yield parts, pictures
    if len(parts) < DEEPEST:
        for name in below:
            yield from _leaves(folder / name, root, (*parts, name))


def _without_common(found: dict[Parts, int]) -> dict[Parts, int]:
    while len(found) > 1 and len({parts[0] for parts in found}) == 1 and min(map(len, found)) > 1:
        found = {parts[1:]: count for parts, count in found.items()}
    return found


def _by_split(found: dict[Parts, int]) -> tuple[dict[Parts, dict[str, int]], tuple[str, ...]]:
    tops = dict.fromkeys(parts[0] for parts in found)
    split = all(top.lower() in SPLITS for top in tops) and min(map(len, found)) > 1
    splits = tuple(sorted(tops)) if split else (ALL,)
    by_class: dict[Parts, dict[str, int]] = {}
    for parts, count in found.items():
        name, rest = (parts[0], parts[1:]) if split else (ALL, parts)
        rest = rest[1:] if len(rest) > 1 and len(rest[0]) == 1 else rest
        counts = by_class.setdefault(rest, dict.fromkeys(splits, 0))
        counts[name] += count
    return by_class, splits


def _has_superclasses(classes: list[Parts]) -> bool:
    """Return whether outer folders are superclasses: no inner name recurs, or few do."""
    inner = Counter(parts[-1] for parts in classes if len(parts) > 1)
    return 2 * sum(n for n in inner.values() if n > 1) < sum(inner.values())
