"""Usual names in declared datasets: files in shards, splits, columns of tables, and names of labels.

Classes stored as numbers have their names in ``classnames.txt`` at the root, one a line, from 0 on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from wordnet_splits.base.errors import SourceError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import check_link, read_text
from wordnet_splits.datasets.catalog.declarations import Columns
from wordnet_splits.datasets.sources.layouts.layout import ALL
from wordnet_splits.datasets.sources.layouts.walk import entries, subfolder

SPLIT_WORDS: Final = {
    **{word: word for word in ("train", "training", "val", "dev", "test", "testing", "eval", "evaluation")},
    **dict.fromkeys(("valid", "validation"), "val"),
}
"""Word in the name of a file or folder -> name of the split."""
USUAL: Final = frozenset({"instances", "annotations", "coco", "partial", "data", "shard"})
"""Words of file names that do not affect the split."""

_BETWEEN = re.compile(r"[-_.\s]+")
_NUMBERED = re.compile(r"([a-z]+)(\d*)")
_YEAR = re.compile(r"(19|20)\d\d")


class SplitName(NamedTuple):
    """The split in a name, a value of `SPLIT_WORDS`, and the other words in order.

    The first ``before`` of the words in ``more`` precede the word of the split.
    """

    kind: str
    more: tuple[str, ...] = ()
    before: int = 0

    def without(self, shared: frozenset[str]) -> str:
        """Return the name of the split without the words that all names share."""
        words = [*self.more[: self.before], self.kind, *self.more[self.before :]]
        return "_".join(word for word in words if word == self.kind or word not in shared)


def parse_split(name: str) -> SplitName | None:
    """Return the split in the name of a folder, or of a file without its extension; None without one.

    The number of a shard and all later words are ignored.
    """
    words = [word for word in _BETWEEN.split(name.lower()) if word]
    for at, word in enumerate(words):
        match = _NUMBERED.fullmatch(word)
        if match and match[1] in SPLIT_WORDS:
            before = [word for word in words[:at] if word not in USUAL]
            after = [match[2]] if _YEAR.fullmatch(match[2]) else []
            for word in words[at + 1 :]:
                if word[0].isdigit():
                    break
                after += [word] if word not in USUAL else []
            return SplitName(SPLIT_WORDS[match[1]], (*before, *after), len(before))
    return None


def splits_of(paths: Iterable[PurePath]) -> dict[PurePath, str]:
    """Return the split in the name of each file, else of the nearest folder above it; `ALL` without one.

    Words that all these names have are left out: ``instances_train2017.json`` and ``instances_val2017.json``
    are ``train`` and ``val``.
    """
    found = {}
    for path in paths:
        splits = (parse_split(name) for name in (path.stem, *(folder.name for folder in path.parents)))
        found[path] = next((split for split in splits if split is not None), None)
    names = [set(name.more) for name in found.values() if name is not None]
    shared = frozenset(set.intersection(*names)) if names else frozenset()
    return {path: ALL if name is None else name.without(shared) for path, name in found.items()}


DEEPEST: Final = 3
"""Largest number of folders between the root and its shards."""

FOLDERS = ("", "data", "default", "train", "validation", "val", "test")


def shards(root: Path, pattern: str | None, extension: str, kind: str) -> list[Path]:
    """Return the files below a root that have an extension and match a pattern, sorted.

    Parameters
    ----------
    kind : such a file in words, for the error.

    Raises SourceError if the folder has no shard.
    """
    paths = sorted(_files(root, root, extension))
    if pattern is not None:
        paths = [path for path in paths if path.relative_to(root).match(pattern)]
    if not paths:
        message = f"no {kind} matches {printable(pattern)}" if pattern else f"there is no {kind}"
        hint = f"as in ROOT/train{extension} or ROOT/data/train-00000-of-00001{extension}"
        raise SourceError(message, where=str(root), hint=hint)
    return paths


def _files(folder: Path, root: Path, extension: str, level: int = 0) -> Iterator[Path]:
    for entry in entries(folder, root, lambda name: name.endswith(extension)):
        if entry.is_dir():
            if level < DEEPEST:
                yield from _files(folder / entry.name, root, extension, level + 1)
        elif entry.name.endswith(extension) and not entry.name.endswith(".inventory.parquet"):
            yield folder / entry.name


def find_shards(base: Path, root: Path) -> dict[str, tuple[Path, ...]]:
    """Return split (train, val, test) -> its shards in order, for Parquet files in or just below ``base``."""
    shards: dict[str, list[Path]] = {}
    for folder in _shard_folders(base, root):
        names = (entry.name for entry in entries(folder, root, _is_shard))
        for name in sorted(filter(_is_shard, names)):
            split = _hub_split(name) or _hub_split(folder.name)
            if split is not None:
                shards.setdefault(split, []).append(folder / name)
    return {split: tuple(paths) for split, paths in shards.items()}


def _shard_folders(base: Path, root: Path) -> Iterator[Path]:
    outer = [folder for name in FOLDERS if (folder := subfolder(base, name, root))]
    inner = [f for top in outer[1:] for name in SPLIT_WORDS if (f := subfolder(top, name, root))]
    yield from dict.fromkeys((*outer, *inner))


def _is_shard(name: str) -> bool:
    return name.endswith(".parquet")


def _hub_split(name: str) -> str | None:
    split = parse_split(name.removesuffix(".parquet"))
    return split.kind if split is not None and not split.more and split.kind in FOLDERS else None


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
