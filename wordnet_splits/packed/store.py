"""A packed store: a benchmark's images in one folder, memory-mapped, checked by row.

``packed.json`` lists the parts, and is written anew when a part is finished; a part, the images of one
(split, group), is two files:

``<split>/<group>.bin``
    the images one after the other: uint8 (3, h, w) each (layout ``pixels``), or an image file each (layout
    ``files``).
``<split>/<group>.arrow``
    Arrow IPC, not compressed, so that it is mapped, not read: image_id, row (position in the manifest's
    image table), offset and length in bytes, crc32.

The CRC-32 of an image starts from its row number, so bytes of another row do not match either. It is
compared when a process first reads an image. ``packed.json`` holds the SHA-256 of both files, which
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
    """An open packed store: its parts by (split, group); no image is read yet."""

    folder: Path
    benchmark: str
    version: int
    parts: dict[Part, PartEntry] = field(default_factory=dict)

    def images(self, part: Part) -> PackedImages:
        """Open one (split, group); KeyError where the store has no such part.

        Raises
        ------
        SourceError : its files are absent, truncated or not packed images.
        """
        return PackedImages(self.folder, self.parts[part])

    def images_of(self, manifest: Manifest, part: Part) -> PackedImages:
        """Open one (split, group) as images of a manifest. Raises as `images`, and

        SourceError : they are not the manifest's images, by benchmark, rows, ids, view or resize spec.
        """
        entry = self.parts[part]
        table = manifest.parts[part]()
        source, view = (table[name][0].as_py() if len(table) else None for name in ("source", "view"))
        problem = None
        if self.benchmark != manifest.name:
            problem = f"holds the images of {self.benchmark}, not of {manifest.name}"
        elif entry.images != manifest.images_fingerprint(part):
            problem = f"packed from other rows than those of {manifest.name} version {manifest.version}"
        elif (pixels := manifest.pixels_fingerprint(part)) is not None and entry.pixels != pixels:
            problem = f"not packed from the pictures that {manifest.name} version {manifest.version} means"
        elif len(table) != entry.rows + entry.missing:
            problem = (
                f"{entry.rows:,} images and {entry.missing:,} missing are not the group's {len(table):,}"
            )
        elif len(table) and (entry.source, entry.view) != (source, view):
            problem = f"holds {entry.source} in view {entry.view}, not {source} in view {view}"
        elif entry.spec != (None if entry.view == RAW_VIEW else spec_id(entry.view)):
            problem = f"packed with another resize spec ({entry.spec}) than {entry.view} is now"
        if problem is None:
            images = self.images(part)
            rows = images.manifest_rows
            inside = not len(rows) or rows[-1] < len(table)
            if inside and table["image_id"].take(pa.array(rows)).equals(pa.chunked_array([images.ids])):
                return images
            problem = "the ids of its index are not those of the group"
        raise SourceError(problem, where=f"{part[1]} {part[0]} in {self.folder}", hint=REPACK)

    def write(self) -> None:
        """Write ``packed.json`` in one step; OutputError where it cannot be."""
        entries = [self.parts[part] for part in sorted(self.parts)]
        content = StoreFile(benchmark=self.benchmark, version=self.version, parts=entries)
        write_sealed(self.folder / NAME, content.model_dump(mode="json", by_alias=True))


def is_store(folder: Path) -> bool:
    """Return whether a folder holds a packed store."""
    return (folder / NAME).is_file()


def open_store(folder: Path | str) -> PackedStore:
    """Open a packed store: one small file is read.

    Raises
    ------
    SourceError : there is none, or its ``packed.json`` is malformed or was altered.
    """
    folder = Path(folder)
    content = read_store_file(folder)
    return PackedStore(
        folder, content.benchmark, content.version, {entry.part: entry for entry in content.parts}
    )
