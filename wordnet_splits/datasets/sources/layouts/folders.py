"""Images in class folders: ``[split/][superclass/]class/picture``."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.datasets.sources.layouts.folder_tree import Parts, read_tree
from wordnet_splits.datasets.sources.layouts.layout import (
    ALL,
    DVC,
    Image,
    ImageFiles,
    Note,
    register_layout,
    without_extension,
)
from wordnet_splits.datasets.sources.layouts.walk import entries

IGNORED: Final = frozenset({"__macosx", "@eadir", "lost+found", "$recycle.bin", "#recycle"})
"""Names, in lower case, of folders that programs create next to images."""
ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".rar", ".7z")
"""Ends, in lower case, of files that may hold the class folders."""
COMPANIONS: Final = frozenset({"readme", "readme.md", "readme.txt", "desktop.ini", "thumbs.db"})
"""Files expected next to images, in lower case."""


@register_layout("folders")
class Folders(ImageFiles):
    """One folder a class, below folders of splits if there are any."""

    about: ClassVar[str] = "[split/]class/picture"

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images of every class folder."""
        tree = class_folders(self.root, self.declaration.splits)
        folder_splits = {split for split, _ in tree.classes.values()}
        for parts in tree.unclassed:
            for picture in filter(None, picture_names(self.root.joinpath(*parts), self.root).values()):
                note(printable("/".join((*parts, picture))))
        for parts, (split, class_parts) in tree.classes.items():
            class_id = "/".join(class_parts)
            above = class_id if folder_splits == {ALL} else f"{split}/{class_id}"
            for name, picture in picture_names(self.root.joinpath(*parts), self.root).items():
                stem = without_extension(picture) if picture else None
                if stem is None:
                    note(printable("/".join((*parts, name))))
                else:
                    yield Image(f"{above}/{stem}", class_id, split, ("/".join((*parts, picture)),))


class ClassFolders(NamedTuple):
    """The class folders below a root, as of `FolderTree`, and the folders without images or subfolders."""

    classes: dict[Parts, tuple[str, Parts]]
    unclassed: tuple[Parts, ...]
    empty: tuple[Parts, ...]


def class_folders(root: Path, splits: Collection[str] | None = None) -> ClassFolders:
    """Return the folders that hold images, with their splits and classes, sorted.

    Parameters
    ----------
    splits : the folders of splits, if they are declared: other folders at their level are ignored.

    Raises SourceError as `read_tree`, and where no folder has an image.
    """
    folders = dict(_folders(root, root, ()))
    archives = sorted(e.name for e in entries(root, root) if e.name.lower().endswith(ARCHIVES))
    if archives and not any(folders.values()):
        hint = 'unpack it; shards of images and labels: layout = "webdataset" in dataset.toml'
        raise SourceError("no class folders, only an archive", where=str(root / archives[0]), hint=hint)
    tree = read_tree((parts for parts, filled in folders.items() if filled), splits, where=str(root))
    return ClassFolders(*tree, tuple(sorted(parts for parts, filled in folders.items() if not filled)))


def picture_names(folder: Path, root: Path) -> dict[str, str]:
    """Return file name -> image name ("" for none) in a class folder, without companions.

    An image may be a link to contents that are not here, or be named by a DVC file alone.
    """
    names = [e.name for e in entries(folder, root, is_picture, broken_links=True) if not e.is_dir()]
    present = set(names)
    pictures = {name: name if is_picture(name) else "" for name in names if name.lower() not in COMPANIONS}
    for name in names:
        if name.endswith(DVC):
            picture = name.removesuffix(DVC)
            if picture in present or not is_picture(picture):
                del pictures[name]
            else:
                pictures[name] = picture
    return pictures


def is_picture(name: str) -> bool:
    """Return whether a file has an extension of an image."""
    return name.rpartition(".")[2].lower() in EXTENSIONS


def _folders(folder: Path, root: Path, parts: Parts) -> Iterator[tuple[Parts, bool]]:
    """Yield the folders that hold images, or no folder, and whether they hold images."""
    has_pictures, subfolders = False, []
    for entry in entries(folder, root, broken_links=True):
        if entry.is_dir():
            subfolders.append(entry.name)
        else:
            has_pictures = has_pictures or is_picture(entry.name.removesuffix(DVC))
    if has_pictures or not subfolders:
        yield parts, has_pictures
    for name in subfolders:
        if name.lower() in IGNORED:
            yield (*parts, name), False
        else:
            yield from _folders(folder / name, root, (*parts, name))
