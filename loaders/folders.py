"""Folders of prepared images: packed stores, and outputs of ``fix-resize``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import SourceError
from wordnet_splits.manifest import Manifest, Part
from wordnet_splits.packed import open_store
from wordnet_splits.packed.reading import RAW_VIEW, PartImages, spec_id
from wordnet_splits.packed.resized import ResizedImages, is_resized, open_resized


class Held(NamedTuple):
    """The images that a folder has of a part: the n-th is that of the n-th row that is ``held``."""

    images: PartImages
    held: npt.NDArray[np.bool_]


class Folder(Protocol):
    """A folder that may hold images of a part."""

    path: Path

    def find(self, manifest: Manifest, part: Part, table: pa.Table) -> Held | None:
        """Return what the folder has of a part, None where it has nothing of it.

        Raises SourceError where what it has is of another version, or resized by another spec.
        """


def open_folder(path: Path) -> Folder:
    """Open a folder of prepared images.

    Raises
    ------
    SourceError : it holds no prepared images.
    DataError : its description cannot be read.
    """
    return ResizedFolder(path) if is_resized(path) else PackedFolder(path)


class PackedFolder:
    """A packed store; its parts are complete but for what was missing when they were packed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._store = open_store(path)

    def find(self, manifest: Manifest, part: Part, table: pa.Table) -> Held | None:
        """Return what the store has of a part."""
        if part not in self._store.parts:
            return None
        images = self._store.images_of(manifest, part)
        held = np.zeros(len(table), bool)
        held[images.manifest_rows] = True
        return Held(images, held)


class ResizedFolder:
    """An output of ``fix-resize``; it serves any group in its view, whatever it was built for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._output = open_resized(path)

    def find(self, manifest: Manifest, part: Part, table: pa.Table) -> Held | None:
        """Return what the output has of a part: the images of its ids."""
        if not len(table):
            return None
        view, source = (str(table[name][0].as_py()) for name in ("view", "source"))
        if view == RAW_VIEW:
            return None
        built = self._output.table.select(["source", "image_id", "digest"])
        built = built.filter(pc.equal(built["source"], source))
        places = pc.index_in(table["image_id"], value_set=built["image_id"].combine_chunks())
        held = np.asarray(places.is_valid())
        if not held.any():
            return None
        if self._output.spec_id != spec_id(view):
            raise SourceError(
                f"built with the resize spec {self._output.spec.name!r} ({self._output.spec_id}), and group "
                f"{part[1]} is in view {view!r} ({spec_id(view)})",
                where=str(self.path),
                hint=f"build it with --spec {view}",
            )
        kept = table.filter(pa.array(held))
        self._check_digests(kept, built["digest"].take(places.drop_null()))
        return Held(ResizedImages(self._output, source, kept["image_id"].combine_chunks()), held)

    def _check_digests(self, kept: pa.Table, built: Any) -> None:
        differ = pc.fill_null(pc.not_equal(kept["digest"], built), False)
        if pc.any(differ).as_py():
            first = kept["image_id"].filter(differ)[0].as_py()
            raise SourceError(
                f"image {first!r} was built from another original than that of the manifest",
                where=str(self.path),
                hint="build it again from the publisher's files",
            )
