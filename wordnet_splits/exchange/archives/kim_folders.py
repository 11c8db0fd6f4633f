"""Folders of the archives of Kim et al.: the pictures of each set and split, and their class folders.

``<bench>/{train,valid,test}/<set>/{labels,no-labels}/...``, and ``<bench>/train/<ID set>/<class>/...``. Only
the ID sets have class folders; their ``no-labels`` repeats ``labels``. The other sets have no classes: the
folders below their ``no-labels`` exist only for torchvision's reader, and their names are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import read_toml
from wordnet_splits.catalog import load_catalog
from wordnet_splits.recipe import Group, Recipe, load_recipe
from wordnet_splits.sources.layouts.walk import entries, folders, subfolder
from wordnet_splits.sources.pixels import EXTENSIONS

TABLE: Final = Path(__file__).parent.parent.parent / "data" / "exchange" / "kim-archive.toml"
SPLIT_FOLDERS: Final = {"train": "train", "valid": "val", "test": "test"}


@dataclass(frozen=True)
class Bench:
    """One of the two archives.

    Attributes
    ----------
    folder, name : the authors' name of the archive, and our name of the benchmark in it.
    like : the shipped benchmark that has roles, sources and publisher's splits of the groups.
    sets : group of ``like`` by the name of the set's folder.
    """

    folder: str
    name: str
    like: str
    sets: Mapping[str, str]

    @property
    def recipe(self) -> Recipe:
        """Return the recipe of ``like``."""
        return load_recipe(self.like)

    @property
    def id_set(self) -> str:
        """Return the folder of the ID set."""
        ids = {group.name for group in self.recipe.groups_with_role("id")}
        return next(folder for folder, group in self.sets.items() if group in ids)


@dataclass(frozen=True)
class ArchivePicture:
    """A picture: the class of its folder, None if the folder is not a class, and its path in the bench."""

    class_id: str | None
    path: str


@dataclass(frozen=True)
class ArchivePart:
    """One set of one split; ``group`` is None for an unknown set.

    ``classes`` are those with a class folder, even an empty one.
    """

    folder: str
    split: str
    group: Group | None
    classes: tuple[str, ...]
    pictures: tuple[ArchivePicture, ...]


@dataclass(frozen=True)
class Archive:
    """An unpacked archive in ``root``, inside which links are followed; ``base`` is its bench folder."""

    bench: Bench
    root: Path
    base: Path
    parts: tuple[ArchivePart, ...]


@cache
def benches() -> tuple[Bench, ...]:
    """Return the two archives."""
    return tuple(Bench(folder, **row) for folder, row in read_toml(TABLE).items())


def open_archive(path: Path) -> Archive:
    """List an unpacked archive; no picture is read.

    Parameters
    ----------
    path : ``cifar-bench`` or ``imagenet-bench`` under any name, or a folder that contains one of them.

    Raises
    ------
    DataError : no such folder, not the archive, both of them, or a set without its folders.
    SourceError : a folder cannot be listed, or links form a cycle.
    UnsafeDataError : a link that leaves ``path``.
    """
    if not path.is_dir():
        raise DataError("no such folder", where=printable(path))
    root = path.resolve()
    candidates = [(bench, base) for bench in benches() if (base := _base(bench, root)) is not None]
    names = [bench.folder for bench in benches()]
    if len(candidates) > 1:
        raise DataError(f"holds both {' and '.join(names)}", where=printable(path), hint="give one of them")
    if not candidates:
        folders_needed = " or ".join(f"{{train,valid,test}}/{bench.id_set}" for bench in benches())
        reason = f"is not an archive of Kim et al.: no folder {folders_needed} here"
        hint = f"unpack {' or '.join(names)} and give that folder"
        raise DataError(reason, where=printable(path), hint=hint)
    bench, base = candidates[0]
    groups = {group.name: group for group in bench.recipe.group}
    parts = []
    for split in SPLIT_FOLDERS:
        top = subfolder(base, split, root)
        for name in folders(top, root) if top is not None else ():
            group = groups[bench.sets[name]] if name in bench.sets else None
            parts.append(_part(f"{split}/{name}", group, base, root))
    if not any(part.pictures for part in parts):
        raise DataError("holds no picture", where=printable(path))
    return Archive(bench, root, base, tuple(parts))


def _base(bench: Bench, root: Path) -> Path | None:
    for base in (root, root / bench.folder):
        if any(subfolder(base, f"{split}/{bench.id_set}", root) is not None for split in SPLIT_FOLDERS):
            return base
    return None


def _part(folder: str, group: Group | None, base: Path, root: Path) -> ArchivePart:
    path, split = base / folder, folder.partition("/")[0]
    of_classes = group is not None and group.role == "id"
    labels = subfolder(path, "labels", root) if of_classes else None
    bare = subfolder(path, "no-labels", root)
    if labels is None and bare is None:
        if group is not None and not (of_classes and split == "train"):
            reason = "neither labels nor no-labels" if of_classes else "no folder no-labels"
            raise DataError(f"holds {reason}", where=printable(path), hint="unpack the archive again")
        labels = path
    if group is None or labels is None:
        class_folders: tuple[str, ...] = ()
    else:
        class_folders = tuple(name for name in folders(labels, root) if name in load_catalog(group.source))
    top = labels or bare or path
    pictures = []
    for file in _pictures(top, root):
        top_folder = Path(file).relative_to(top).parts[0]
        class_id = top_folder if top_folder in class_folders else None
        pictures.append(ArchivePicture(class_id, Path(file).relative_to(base).as_posix()))
    pictures.sort(key=lambda picture: picture.path)
    return ArchivePart(folder, SPLIT_FOLDERS[split], group, class_folders, tuple(pictures))


def _pictures(folder: Path | str, root: Path) -> Iterator[str]:
    for entry in entries(folder, root):
        if entry.is_dir():
            yield from _pictures(entry.path, root)
        elif entry.name.rpartition(".")[2].lower() in EXTENSIONS:
            yield entry.path
