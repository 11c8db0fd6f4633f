"""The classes of a dataset from its folders, ``[split/][superclass/]class/picture``, or as it declares them.

Where a class folder lies in another, the outer one is its superclass, unless the inner names recur under many
outer ones: ``church/indoor`` and ``hangar/indoor`` are qualified names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path

from wordnet_splits.base.names import printable
from wordnet_splits.catalog.declarations import declared_name, declared_sources, register_declaration
from wordnet_splits.propose.classes import FoundClasses, NamedClass, checked
from wordnet_splits.rules.evidence import counted
from wordnet_splits.sources.layouts.walk import check_root, entries
from wordnet_splits.sources.own import open_layout
from wordnet_splits.sources.own.folders import Folders, Parts, class_folders, is_picture

SHOWN = 3


def folder_classes(root: Path, splits: Collection[str] | None = None) -> FoundClasses:
    """Return the classes of a folder, sorted, with their pictures counted by split.

    Parameters
    ----------
    splits : as `wordnet_splits.sources.own.folders.class_folders` takes them.

    Raises
    ------
    SourceError : it is absent, unreadable, or holds no class folders with pictures.
    DataError : a class folder's name cannot stand in a table.
    """
    folder = check_root(root, "to be read")
    found = class_folders(folder, splits)
    held = tuple(sorted({split for split, _ in found.values()}))
    by_class: dict[Parts, dict[str, int]] = {}
    for parts, (split, class_parts) in found.items():
        counts = by_class.setdefault(class_parts, dict.fromkeys(held, 0))
        counts[split] += _pictures(folder.joinpath(*parts), folder)
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
    return checked(classes, held, where=str(root), notes=_said_of(empty))


def classes_below(root: Path) -> FoundClasses:
    """Return the classes of a folder: as its ``dataset.toml`` declares them, else those of its class folders.

    Raises as `folder_classes` and `declared_classes`.
    """
    name = declared_name(root)
    return folder_classes(root) if name is None else declared_classes(name, root)


def declared_classes(name: str, root: Path) -> FoundClasses:
    """Return the classes of the dataset that ``dataset.toml`` declares in a folder, as `folder_classes`.

    Raises
    ------
    SourceError : its images cannot be read, or there is none.
    """
    folder = check_root(root, name)
    register_declaration(folder, name)
    declared = declared_sources()[name]
    layout = open_layout(folder, declared)
    if isinstance(layout, Folders):
        return folder_classes(root, declared.splits)
    odd: list[str] = []
    counts: Counter[tuple[str, str]] = Counter()
    for image in layout.images(odd.append):
        counts[image.class_id, image.split] += 1
    splits = declared.splits or tuple(sorted({split for _, split in counts}))
    held = {class_id for class_id, _ in counts}
    above = layout.classes()
    ids = [*(c for c in above if c in held), *sorted(held - above.keys())]
    classes = [NamedClass(c, c, above.get(c, ""), {s: counts[c, s] for s in splits}) for c in ids]
    empty = sorted(above.keys() - held)
    said = [f"{counted(len(empty), 'class')} without a picture left out: {_some(empty)}"] if empty else []
    said += [f"{counted(len(odd), 'row')} without a picture of a class, such as {odd[0]}"] if odd else []
    return checked(classes, splits, where=str(root), notes=said)


def _pictures(folder: Path, root: Path) -> int:
    found = entries(folder, root, is_picture)
    return sum(not entry.is_dir() and is_picture(entry.name) for entry in found)


def _said_of(empty: list[str]) -> list[str]:
    if not empty:
        return []
    return [f"{counted(len(empty), 'class folder')} without a picture left out: {_some(empty)}"]


def _some(names: list[str]) -> str:
    return ", ".join(printable(name) for name in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


def _has_superclasses(classes: list[Parts]) -> bool:
    """Return whether outer folders are superclasses: no inner name recurs, or few do."""
    inner = Counter(parts[-1] for parts in classes if len(parts) > 1)
    return 2 * sum(n for n in inner.values() if n > 1) < sum(inner.values())
