"""Which columns of a table are the image, its class and its split: declared, or called as usual."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import SourceError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.catalog.declarations import Columns

IMAGES: Final = ("image", "img", "file", "file_name", "filename", "path", "image_path", "picture")
CLASSES: Final = ("class", "label", "category", "class_id", "class_name", "fine_label")
SPLITS: Final = ("split", "set", "subset", "partition")


def image_column(names: Sequence[str], declared: Columns, path: Path) -> str:
    """Return the column of images. Raises UnknownNameError, SourceError."""
    return _needed(names, declared.image, IMAGES, "image", path)


def class_column(names: Sequence[str], declared: Columns, path: Path) -> str:
    """Return the column of classes. Raises UnknownNameError, SourceError."""
    return _needed(names, declared.class_, CLASSES, "class", path)


def split_column(names: Sequence[str], declared: Columns, path: Path) -> str | None:
    """Return the column of splits, None without one. Raises UnknownNameError, SourceError."""
    return _column(names, declared.split, SPLITS, path)


def _column(names: Sequence[str], given: str | None, usual: Sequence[str], path: Path) -> str | None:
    if given is not None and given not in names:
        raise unknown("column", given, names, where=str(path))
    found = given or next((name for name in usual if name in names), None)
    if found is not None and (count := list(names).count(found)) > 1:
        raise SourceError(
            f"{count} columns are called {printable(found)}", where=str(path), hint="rename one"
        )
    return found


def _needed(names: Sequence[str], given: str | None, usual: Sequence[str], what: str, path: Path) -> str:
    found = _column(names, given, usual, path)
    if found is None:
        raise SourceError(
            f"no column of the {what} among {printable(', '.join(names))}",
            where=str(path),
            hint=f'name it in dataset.toml, as in columns = {{ {what} = "{usual[1]}" }}',
        )
    return found
