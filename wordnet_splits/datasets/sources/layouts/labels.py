"""Columns and class names of labelled tables.

Columns are declared, or have a usual name. Classes that are stored as numbers have their names in
``classnames.txt`` at the root, one a line, from 0 on. Two labels may not have the same name: their classes
would be mixed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from wordnet_splits.base.errors import SourceError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import check_link, read_text
from wordnet_splits.datasets.catalog.declarations import Columns

CLASS_NAMES: Final = "classnames.txt"

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|[+-]?inf")
"""An integer or float: pandas writes ``1.0`` and ``nan`` where labels are missing."""
Names = tuple[str, ...]
IMAGES: Final = ("image", "img", "file", "file_name", "filename", "path", "image_path", "picture")
CLASSES: Final = ("class", "label", "category", "class_id", "class_name", "fine_label")
SPLITS: Final = ("split", "set", "subset", "partition")


class TableColumns(NamedTuple):
    """The columns of images, classes and splits of a table, the last None where it has none."""

    image: str
    label: str
    split: str | None


def table_columns(names: Sequence[str], declared: Columns, path: Path) -> TableColumns:
    """Return the columns of a table among ``names``. Raises UnknownNameError, SourceError."""
    image = _required(names, declared.image, IMAGES, "image", path)
    label = class_column(names, declared, path)
    return TableColumns(image, label, _column(names, declared.split, SPLITS, path))


def class_column(names: Sequence[str], declared: Columns, path: Path) -> str:
    """Return the column of classes. Raises UnknownNameError, SourceError."""
    return _required(names, declared.class_, CLASSES, "class", path)


def _column(names: Sequence[str], declared: str | None, usual: Sequence[str], path: Path) -> str | None:
    if declared is not None and declared not in names:
        raise unknown("column", declared, names, where=str(path))
    column = declared or next((name for name in usual if name in names), None)
    if column is not None and (count := list(names).count(column)) > 1:
        message = f"{count} columns are called {printable(column)}"
        raise SourceError(message, where=str(path), hint="rename one")
    return column


def _required(names: Sequence[str], declared: str | None, usual: Sequence[str], key: str, path: Path) -> str:
    column = _column(names, declared, usual, path)
    if column is None:
        message = f"no column of the {key} among {printable(', '.join(names))}"
        hint = f'name it in dataset.toml, as in columns = {{ {key} = "{usual[1]}" }}'
        raise SourceError(message, where=str(path), hint=hint)
    return column


def class_names(root: Path) -> Names:
    """Return the lines of ``classnames.txt``, none if it is absent; an empty line has no class.

    Raises SourceError if the file cannot be read, or two lines are equal.
    """
    path = root / CLASS_NAMES
    if not path.is_file():
        return ()
    if path.is_symlink():
        check_link(path, root)
    lines = (line.strip() for line in read_text(path, error=SourceError).splitlines())
    return distinct_names(lines, where=str(path))


def distinct_names(names: Iterable[str], *, where: str) -> Names:
    """Return the names of labels 0, 1, ..., which must differ, except for empty ones.

    Raises SourceError if two labels have one name.
    """
    labels = tuple(names)
    numbers: dict[str, int] = {}
    for number, name in enumerate(labels):
        if name and numbers.setdefault(name, number) != number:
            raise same_name(name, numbers[name], number, where=where)
    return labels


def same_name(name: str, label: object, second_label: object, *, where: str) -> SourceError:
    """Build the error for two labels with the same name."""
    return SourceError(
        f"the labels {printable(label)} and {printable(second_label)} have the same name, {printable(name)}",
        where=where,
        hint="give them different names, as in `crane (bird)` and `crane (machine)`",
    )


def class_of(label: object, names: Names, where: str) -> str | None:
    """Return the class of a label, or None if it has none, such as -1 in a hidden test set.

    Raises SourceError if the label is a number, also as text, without a name: a class called "3" would be
    read as the number.
    """
    is_text = isinstance(label, int | float | str) and not isinstance(label, bool)
    text = str(label).strip() if is_text else ""
    if not _NUMBER.fullmatch(text):
        return text or None
    number = float(text)
    if number < 0 or math.isnan(number):
        return None
    if not number.is_integer() or number >= len(names):
        hint = f"{CLASS_NAMES} at the root has one class name a line, from 0 on"
        raise SourceError(f"the label {printable(text)} is a number without a name", where=where, hint=hint)
    return names[int(number)] or None
