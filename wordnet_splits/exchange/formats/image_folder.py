"""Trees for torchvision's ``ImageFolder``: ``<split>/<group>/<class>/<image>``, one dataset a part.

A file is called by what it holds (``.png``, ``.jpg``), whatever the root calls it. Links to the root's files
by default, where the source has files; a picture that is drawn, resized or kept in an archive is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import writing
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.exchange.entries import ImportTask, ListEntry, slug
from wordnet_splits.exchange.outgoing import JPEG, Export
from wordnet_splits.manifest.tables import SPLITS
from wordnet_splits.sources.pixels import EXTENSIONS


class ImageFolderTree:
    """Class folders of links or files."""

    about = "torchvision ImageFolder trees: split/group/class/image, links unless --copies"
    pictures = True

    def write(self, export: Export, folder: Path) -> None:
        """Write the tree. Links are absolute, so that the tree may be moved and the root may not."""
        for part, table in export.tables():
            (folder / part[0] / part[1]).mkdir(parents=True)
            for picture in export.pictures(part, table, links=True):
                path = folder / export.tree_path(picture.row, picture.extension or JPEG)
                data = picture.data
                with writing(path):
                    path.parent.mkdir(exist_ok=True)
                    if picture.file is not None and not export.copies:
                        path.symlink_to(picture.file)
                        continue
                    if picture.file is not None:
                        data = read_image(picture.file, picture.file.parent.resolve())
                    with path.open("xb") as file:
                        file.write(data)

    def read(self, reading: ImportTask) -> Iterator[ListEntry]:
        """Yield the files of ``<split>/<group>/<class>/``, or of one dataset's ``<class>/``.

        Only names are read; a link counts as the file that it is called.
        """
        root = reading.path
        if not root.is_dir():
            raise DataError("no such folder", where=printable(root))
        splits = [(root / split, split) for split in SPLITS if (root / split).is_dir()]
        tops = [(top, split, slug(top.name)) for at, split in splits for top in _folders(at)]
        for top, split, group in tops or [(root, reading.split, slug(root.name))]:
            for folder in _folders(top):
                for name in _images(folder):
                    yield ListEntry(split, group, f"{folder.name}/{name}")


def _folders(path: Path) -> list[Path]:
    with os.scandir(path) as scan:
        return sorted(Path(entry.path) for entry in scan if entry.is_dir() and entry.name[0] != ".")


def _images(path: Path) -> list[str]:
    with os.scandir(path) as scan:
        names = [entry.name for entry in scan if not entry.is_dir() and entry.name[0] != "."]
    return sorted(name for name in names if name.rpartition(".")[2].lower() in EXTENSIONS)
