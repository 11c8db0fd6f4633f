"""The classes of a user's dataset: from a list of names, class folders, or a declaration.

In ``[split/][superclass/]class/image`` a folder around class folders is their superclass or domain
(``clipart/zebra``), unless few inner names recur under many outer ones: ``church/indoor`` and
``hangar/indoor`` are qualified names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import check_name, counted, listed, printable, same_spelling
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.datasets.catalog.declarations import LOCAL, declared_name, register_declaration
from wordnet_splits.datasets.sources.layouts import open_layout
from wordnet_splits.datasets.sources.layouts.conventions import class_names, class_of
from wordnet_splits.datasets.sources.layouts.folders import Folders, Parts, class_folders, image_names
from wordnet_splits.datasets.sources.layouts.walk import check_root
from wordnet_splits.linking.gathering import INSIDE, OUTSIDE

ALL = "all"
"""The split of a dataset without splits."""
SHOWN = 3
"""Names in a note."""


@dataclass(frozen=True)
class NamedClass:
    """A class as its publisher names it; ``counts`` has its number of images by split, where counted."""

    class_id: str
    name: str
    superclass: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetClasses:
    """The classes of a dataset in order, its splits, and notes for the reader, in sentences."""

    classes: tuple[NamedClass, ...]
    splits: tuple[str, ...]
    notes: tuple[str, ...]


def listed_classes(names: Iterable[str]) -> DatasetClasses:
    """Return the classes of a list of names; a name may be followed by a tab and its superclass."""
    classes = []
    for text in names:
        name, _, superclass = (part.strip() for part in text.partition("\t"))
        if name:
            classes.append(NamedClass(name, name, superclass))
    return check_classes(classes, (ALL,), where="names")


def read_names(path: Path) -> DatasetClasses:
    """Return the classes of a text file, one a line; blank lines are ignored. Raises DataError."""
    try:
        return listed_classes(read_text(path).splitlines())
    except DataError as error:
        raise error if error.where == str(path) else error.within(str(path)) from None


def check_classes(
    classes: Sequence[NamedClass], splits: tuple[str, ...], *, where: str, notes: Sequence[str] = ()
) -> DatasetClasses:
    """Return the classes and splits of a catalog, with a note for names that differ in spelling only."""
    for split in splits:
        check_name("split", split, where=where)
    if not classes:
        raise DataError("found no class", where=where, hint="one class name a line, or a folder a class")
    class_ids: set[str] = set()
    folded: dict[str, str] = {}
    all_notes = list(notes)
    for item in classes:
        check_name("class", item.class_id, where=where)
        if item.superclass:
            check_name("superclass", item.superclass, where=where)
        if item.class_id in class_ids:
            raise DataError(f"the class {item.class_id!r} occurs twice", where=where, hint="remove one")
        class_ids.add(item.class_id)
        earlier = folded.setdefault(same_spelling(item.class_id).casefold(), item.class_id)
        if earlier != item.class_id:
            all_notes.append(
                f"{earlier!r} and {item.class_id!r} differ in spelling only: are they one class?"
            )
    return DatasetClasses(tuple(classes), splits, tuple(all_notes))


def folder_classes(root: Path, splits: Collection[str] | None = None) -> DatasetClasses:
    """Return the classes of a folder, sorted, with the number of their images by split."""
    folder = check_root(root, None)
    folders = class_folders(folder, splits)
    all_splits = tuple(sorted({split for split, _ in folders.classes.values()}))
    by_class: dict[Parts, dict[str, int]] = {}
    for parts, (split, class_parts) in folders.classes.items():
        counts = by_class.setdefault(class_parts, dict.fromkeys(all_splits, 0))
        counts[split] += _count_images(folder.joinpath(*parts), folder)
    superclasses = _has_superclasses(list(by_class))
    classes, names = [], class_names(folder)
    for parts, counts in sorted(by_class.items()):
        class_id = "/".join(parts)
        name, superclass = (parts[-1], parts[-2]) if superclasses and len(parts) > 1 else (class_id, "")
        name = (class_of(name, names, str(root)) if names else None) or name
        classes.append(NamedClass(class_id, name, superclass, counts))
    lasts = {same_spelling(parts[-1]) for parts in by_class}
    empty = ["/".join(parts) for parts in folders.empty if parts and same_spelling(parts[-1]) not in lasts]
    notes = _notes("folder", empty)
    for parts in folders.unclassed:
        count = _count_images(folder.joinpath(*parts), folder)
        where = printable("/".join(parts)) or "the folder itself"
        notes.append(f"left out {counted(count, 'image')} outside class folders: {where}")
    return check_classes(classes, all_splits, where=str(root), notes=notes)


def classes_below(root: Path, dataset: str | None = None) -> DatasetClasses:
    """Return the classes of a folder: of the declared ``dataset``, otherwise from its class folders."""
    name = dataset or declared_name(root)
    return folder_classes(root) if name is None else declared_classes(name, root)


def origin_of(root: Path, dataset: str | None = None) -> str:
    """Return where the classes below a folder come from, for the first line of a catalog."""
    folder, name = printable(root.name or root), dataset or declared_name(root)
    return f"the folders of {folder}" if name is None else f"{name}, in {folder}"


def declared_classes(name: str, root: Path) -> DatasetClasses:
    """Return the classes of a declared dataset in a folder, as `folder_classes`."""
    folder = check_root(root, name)
    register_declaration(folder, name)
    declaration = LOCAL.by_name[name]
    layout = open_layout(folder, declaration)
    if isinstance(layout, Folders):
        return folder_classes(root, declaration.splits)
    skipped: list[str] = []
    counts: Counter[tuple[str, str]] = Counter()
    for image in layout.images(skipped.append, declaration.splits or ()):
        counts[image.class_id, image.split] += 1
    splits = declaration.splits or tuple(sorted({split for _, split in counts}))
    with_images = {class_id for class_id, _ in counts}
    superclasses = layout.classes()
    ids = [*(c for c in superclasses if c in with_images), *sorted(with_images - superclasses.keys())]
    classes = [NamedClass(c, c, superclasses.get(c, ""), {s: counts[c, s] for s in splits}) for c in ids]
    notes = _notes("class", sorted(superclasses.keys() - with_images))
    if skipped:
        notes.append(f"left out {counted(len(skipped), 'row')} without image or class, such as {skipped[0]}")
    return check_classes(classes, splits, where=str(root), notes=notes)


def _count_images(folder: Path, root: Path) -> int:
    return sum(map(bool, image_names(folder, root).values()))


def _notes(noun: str, empty: list[str]) -> list[str]:
    """Return the note on classes without images, if there are any."""
    if not empty:
        return []
    return [f"left out {counted(len(empty), noun)} without an image: {listed(empty, SHOWN)}"]


def _has_superclasses(classes: list[Parts]) -> bool:
    """Return whether outer folders are superclasses or domains, and the inner names are the classes.

    They are where fewer than half of the inner names recur, or where they are more than the outer folders
    (domains share their classes). Places seen from inside or outside are qualified.
    """
    deep = [parts for parts in classes if len(parts) > 1]
    inner = Counter(parts[-1] for parts in deep)
    if not (OUTSIDE | INSIDE).isdisjoint(map(str.lower, inner)):
        return False
    recurring = sum(n for n in inner.values() if n > 1)
    return 2 * recurring < len(deep) or len({parts[:-1] for parts in deep}) < len(inner)
