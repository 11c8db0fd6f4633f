"""Trees for torchvision's ``ImageFolder``: ``<split>/<group>/<class>/<image>``, one dataset per part.

Files of the root are linked to by default; images that are generated, resized or in an archive are written.
The extension follows the content (``.png``, ``.jpg``), whatever the name in the root.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.benchmark.manifest.tables import SPLITS
from wordnet_splits.exchange.exporter import DEFAULT_EXTENSION, ExportTask
from wordnet_splits.exchange.formats import ExchangeFormat, ImportTask, ListEntry, register_format, slug


@register_format("imagefolder")
class ImageFolderTree(ExchangeFormat):
    """Class folders of links or files."""

    about = "torchvision ImageFolder trees: split/group/class/image, links unless --copies"
    has_images = True

    def write(self, task: ExportTask, folder: Path) -> None:
        """Write the tree, with absolute links: the tree can be moved, the root cannot."""
        for part, table in task.tables():
            (folder / part[0] / part[1]).mkdir(parents=True)
            for image in task.read_images(part, table, links=True):
                path = folder / task.tree_path(image.row, image.extension or DEFAULT_EXTENSION)
                image.write(path, copies=task.copies)

    def read(self, task: ImportTask) -> Iterator[ListEntry]:
        """Yield the files of ``<split>/<group>/<class>/``, or of a dataset's ``<class>/``.

        Only names are read; links are not followed.
        """
        root = task.path
        if not root.is_dir():
            raise DataError("no such folder", where=printable(root))
        splits = [(root / split, split) for split in SPLITS if (root / split).is_dir()]
        tops = [(top, split, slug(top.name)) for at, split in splits for top in _folders(at)]
        for top, split, group in tops or [(root, task.split, slug(root.name))]:
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
