"""The classes of a user's dataset, from a list of names; `class_folders` finds them in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import check_name
from wordnet_splits.base.untrusted import read_text

ALL = "all"
"""The split of a dataset that has none."""


@dataclass(frozen=True)
class NamedClass:
    """A class as its publisher names it; ``counts`` has its pictures by split, where they were counted."""

    class_id: str
    name: str
    superclass: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundClasses:
    """The classes of a dataset in order, its splits, and what a reader should know of them, in sentences."""

    classes: tuple[NamedClass, ...]
    splits: tuple[str, ...]
    notes: tuple[str, ...]


def listed_classes(names: Iterable[str]) -> FoundClasses:
    """Return the classes of a list of names; after a tab a name may have its superclass.

    Raises
    ------
    DataError : there is none, one occurs twice, or one cannot stand in a table.
    """
    classes = []
    for text in names:
        name, _, superclass = (part.strip() for part in text.partition("\t"))
        if name:
            classes.append(NamedClass(name, name, superclass))
    return checked(classes, (ALL,), where="names")


def read_names(path: Path) -> FoundClasses:
    """Return the classes of a text file, one a line; blank lines are passed over. Raises DataError."""
    try:
        return listed_classes(read_text(path).splitlines())
    except DataError as error:
        raise error if error.where == str(path) else error.within(str(path)) from None


def checked(
    classes: Sequence[NamedClass], splits: tuple[str, ...], *, where: str, notes: Sequence[str] = ()
) -> FoundClasses:
    """Return classes and splits that can stand in a catalog, with a note for names that differ in case only.

    Raises
    ------
    DataError : there is no class, one occurs twice, or a name cannot stand in a table.
    """
    for split in splits:
        check_name("split", split, where=where)
    if not classes:
        raise DataError("there is no class", where=where, hint="one class name a line, or a folder a class")
    seen: dict[str, str] = {}
    folded: dict[str, str] = {}
    said = list(notes)
    for item in classes:
        check_name("class", item.class_id, where=where)
        if item.superclass:
            check_name("superclass", item.superclass, where=where)
        if item.class_id in seen:
            raise DataError(f"the class {item.class_id!r} occurs twice", where=where, hint="remove one")
        seen[item.class_id] = item.class_id
        other = folded.setdefault(item.class_id.casefold(), item.class_id)
        if other != item.class_id:
            said.append(f"{other!r} and {item.class_id!r} differ in case only: are they one class?")
    return FoundClasses(tuple(classes), splits, tuple(said))
