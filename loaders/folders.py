"""Folders of prepared images: packed stores, and outputs of ``fix-resize``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fix_resize.output import OUTPUT, open_output
from wordnet_splits.base.errors import SourceError
from wordnet_splits.benchmark.images import open_store
from wordnet_splits.benchmark.images.raw_images import RAW_VIEW, PartImages, ResizedImages, spec_id
from wordnet_splits.benchmark.manifest import Manifest, Part


class FolderImages(NamedTuple):
    """Images of a part in a folder: the n-th image belongs to the n-th ``available`` row."""

    images: PartImages
    available: npt.NDArray[np.bool_]


class Folder(Protocol):
    """Folder that may hold images of a part."""

    path: Path

    def find(self, manifest: Manifest, part: Part, table: pa.Table) -> FolderImages | None:
        """Return the images of a part in the folder, or None if the folder lacks the part.

        Raises SourceError if the images have a different version or were resized by a different spec.
        """


def open_folder(path: Path) -> Folder:
    """Open a folder of prepared images.

    Raises
    ------
    SourceError : the folder lacks prepared images.
    DataError : the folder's description cannot be read.
    """
    return ResizedFolder(path) if (path / OUTPUT).is_file() else PackedFolder(path)


class PackedFolder:
    """A packed store; its parts are complete except for images that were missing when they were packed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._store = open_store(path)

    def find(self, manifest: Manifest, part: Part, table: pa.Table) -> FolderImages | None:
        """Return the images of a part in the store."""
        if part not in self._store.parts:
            return None
        images = self._store.images_of(manifest, part)
        available = np.zeros(len(table), bool)
        available[images.manifest_rows] = True
        return FolderImages(images, available)


class ResizedFolder:
    """An output of ``fix-resize``; it serves any group in its view."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._output = open_output(path)

    def find(self, manifest: Manifest, part: Part, table: pa.Table) -> FolderImages | None:
        """Return the images of a part in the output, by their ids."""
        if not len(table):
            return None
        view, source = (str(table[name][0].as_py()) for name in ("view", "source"))
        if view == RAW_VIEW:
            return None
        output_rows = self._output.table.select(["source", "image_id", "digest"])
        output_rows = output_rows.filter(pc.equal(output_rows["source"], source))
        index = pc.index_in(table["image_id"], value_set=output_rows["image_id"].combine_chunks())
        available = np.asarray(index.is_valid())
        if not available.any():
            return None
        if self._output.spec_id != spec_id(view):
            raise SourceError(
                f"built with the resize spec {self._output.spec.name!r} ({self._output.spec_id}), and group "
                f"{part[1]} is in view {view!r} ({spec_id(view)})",
                where=str(self.path),
                hint=f"build it with --spec {view}",
            )
        rows = table.filter(pa.array(available))
        self._check_digests(rows, output_rows["digest"].take(index.drop_null()))
        return FolderImages(ResizedImages(self._output, source, rows["image_id"].combine_chunks()), available)

    def _check_digests(self, rows: pa.Table, digests: Any) -> None:
        differ = pc.fill_null(pc.not_equal(rows["digest"], digests), False)
        if pc.any(differ).as_py():
            image_id = rows["image_id"].filter(differ)[0].as_py()
            raise SourceError(
                f"image {image_id!r} was built from another original than that of the manifest",
                where=str(self.path),
                hint="build it again from the publisher's files",
            )
