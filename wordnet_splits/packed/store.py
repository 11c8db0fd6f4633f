"""A packed store: a benchmark's images in one folder, memory-mapped, checked by row.

``packed.json`` lists the parts, and is written anew when a part is finished; a part, the images of one
(split, group), is two files:

``<split>/<group>.bin``
    the images one after the other: uint8 (3, h, w) each (layout ``pixels``), or an image file each (layout
    ``files``).
``<split>/<group>.arrow``
    Arrow IPC, not compressed, so that it is mapped, not read: image_id, row (position in the manifest's
    image table), offset and length in bytes, crc32.

The CRC-32 of an image starts from its row number, so bytes that belong to another row are noticed too. It
is compared when an image is first read in a process. ``packed.json`` holds the SHA-256 of both files, which
`check_store` compares, and a checksum over itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.schemas import write_sealed
from wordnet_splits.manifest import Manifest, Part
from wordnet_splits.packed.entry import NAME, REPACK, PartEntry, StoreFile, read_store_file
from wordnet_splits.packed.images import PackedImages
from wordnet_splits.packed.reading import RAW_VIEW, spec_id


@dataclass
class PackedStore:
    """A packed store that was opened: what it holds, by (split, group); the images are not touched yet."""

    folder: Path
    benchmark: str
    version: int
    parts: dict[Part, PartEntry] = field(default_factory=dict)

    def images(self, part: Part) -> PackedImages:
        """Open one (split, group); KeyError where the store has no such part.

        Raises
        ------
        SourceError : its files are absent, truncated or no packed images.
        """
        return PackedImages(self.folder, self.parts[part])

    def images_of(self, manifest: Manifest, part: Part) -> PackedImages:
        """Open one (split, group) as images of a manifest. Raises as `images`, and

        SourceError : they are not the manifest's images, by benchmark, rows, ids, view or resize spec.
        """
        entry = self.parts[part]
        table = manifest.parts[part]()
        source, view = (table[name][0].as_py() if len(table) else None for name in ("source", "view"))
        what = None
        if self.benchmark != manifest.name:
            what = f"holds the images of {self.benchmark}, not of {manifest.name}"
        elif entry.images != manifest.images_fingerprint(part):
            what = f"packed from other rows than those of {manifest.name} version {manifest.version}"
        elif (pixels := manifest.pixels_fingerprint(part)) is not None and entry.pixels != pixels:
            what = f"not packed from the pictures that {manifest.name} version {manifest.version} means"
        elif len(table) != entry.rows + entry.missing:
            what = f"{entry.rows:,} images and {entry.missing:,} missing are not the group's {len(table):,}"
        elif len(table) and (entry.source, entry.view) != (source, view):
            what = f"holds {entry.source} in view {entry.view}, not {source} in view {view}"
        elif entry.spec != (None if entry.view == RAW_VIEW else spec_id(entry.view)):
            what = f"packed with another resize spec ({entry.spec}) than {entry.view} is now"
        if what is None:
            images = self.images(part)
            rows = images.manifest_rows
            inside = not len(rows) or rows[-1] < len(table)
            if inside and table["image_id"].take(pa.array(rows)).equals(pa.chunked_array([images.ids])):
                return images
            what = "the ids of its index are not those of the group"
        raise SourceError(what, where=f"{part[1]} {part[0]} in {self.folder}", hint=REPACK)

    def write(self) -> None:
        """Write ``packed.json`` in one step; OutputError where it cannot be."""
        entries = [self.parts[part] for part in sorted(self.parts)]
        said = StoreFile(benchmark=self.benchmark, version=self.version, parts=entries)
        write_sealed(self.folder / NAME, said.model_dump(mode="json", by_alias=True))


def is_store(folder: Path) -> bool:
    """Say whether a folder holds a packed store."""
    return (folder / NAME).is_file()


def open_store(folder: Path | str) -> PackedStore:
    """Open a packed store: one small file is read.

    Raises
    ------
    SourceError : there is none, or its ``packed.json`` is malformed or was altered.
    """
    folder = Path(folder)
    said = read_store_file(folder)
    return PackedStore(folder, said.benchmark, said.version, {entry.part: entry for entry in said.parts})
