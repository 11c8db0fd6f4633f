"""A packed store: a benchmark's images in one folder, memory-mapped, checked by row.

``packed.json`` lists the parts; it is rewritten whenever a part is finished. A part holds the images of a
(split, group) pair in two files:

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

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import Problem, SourceError, SplitsError
from wordnet_splits.base.schemas import BenchmarkName, StrictModel, read_sealed, write_sealed
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.benchmark.images.packed_part import (
    LARGEST_PART,
    REPACK,
    PackedImages,
    PartEntry,
    part_paths,
)
from wordnet_splits.benchmark.images.raw_images import RAW_VIEW, spec_id
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.datasets.sources import source_class

SCHEMA: Final = 1
NAME: Final = "packed.json"


class StoreFile(StrictModel):
    """The content of ``packed.json`` without its checksum."""

    schema_: Literal[1] = Field(alias="schema", default=SCHEMA)
    benchmark: BenchmarkName
    version: Annotated[int, Field(ge=1)]
    parts: list[PartEntry]

    @model_validator(mode="after")
    def _parts_differ(self) -> StoreFile:
        if len({entry.part for entry in self.parts}) != len(self.parts):
            raise ValueError("a part is there twice")
        return self


def read_store_file(folder: Path) -> StoreFile:
    """Return the content of ``packed.json``.

    Raises SourceError if the file is absent, malformed or altered.
    """
    path = folder / NAME
    if not path.exists():
        hint = "write one with `wordnet-splits pack BENCHMARK --out DIR`"
        raise SourceError(f"no packed images here: no {NAME}", where=str(folder), hint=hint)
    return read_sealed(path, StoreFile, error=SourceError, hint=REPACK)


@dataclass
class PackedStore:
    """An open packed store: its parts by (split, group); no image is read yet."""

    folder: Path
    benchmark: str
    version: int
    parts: dict[Part, PartEntry] = field(default_factory=dict)

    def images(self, part: Part) -> PackedImages:
        """Open one (split, group); KeyError where the store has no such part.

        Raises SourceError if its files are absent, truncated or not packed images.
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
    """Open a packed store by reading ``packed.json``.

    Raises SourceError if ``packed.json`` is absent, malformed or altered.
    """
    folder = Path(folder)
    content = read_store_file(folder)
    return PackedStore(
        folder, content.benchmark, content.version, {entry.part: entry for entry in content.parts}
    )


def check_store(folder: Path | str, manifest: Manifest | None = None) -> list[Problem]:
    """Read every byte of a packed store; return a problem for each damaged image or file.

    Parameters
    ----------
    manifest : the benchmark of the images: its rows, ids, views and digests are compared, too.

    Raises
    ------
    SourceError : the store's ``packed.json`` is absent, malformed or altered.
    """
    store = open_store(folder)
    problems = [p for part in sorted(store.parts) for p in _check_part(store, part, manifest)]
    if not store.parts:
        problems.append(Problem("damaged", "", None, None, f"{store.folder} has no images"))
    if manifest is not None and store.version != manifest.version:
        detail = f"packed from version {store.version} of {store.benchmark}, not {manifest.version}"
        problems.append(Problem("damaged", "", None, None, detail))
    return problems


def _check_part(store: PackedStore, part: Part, manifest: Manifest | None) -> list[Problem]:
    entry = store.parts[part]
    bin_path, _ = part_paths(store.folder, part)
    try:
        if manifest is not None and part not in manifest.parts:
            message = f"{manifest.name} has no images of {part[1]} {part[0]}"
            raise SplitsError(message, where=str(store.folder))
        images = store.images(part) if manifest is None else store.images_of(manifest, part)
        images.check_index()
        problems = [
            Problem("damaged", entry.source, None, images.image_id(row), f"its bytes in {bin_path} differ")
            for row in images.damaged()
        ]
        if not problems and sha256_of(bin_path, largest=LARGEST_PART, error=SourceError) != entry.sha256:
            problems.append(Problem("damaged", entry.source, None, None, f"{bin_path} has another SHA-256"))
        if not problems and manifest is not None and entry.view == RAW_VIEW:
            problems += _altered_pictures(images, manifest, part)
    except SplitsError as error:
        return [Problem("damaged", entry.source, None, None, str(error))]
    return problems


def _altered_pictures(images: PackedImages, manifest: Manifest, part: Part) -> Iterator[Problem]:
    """Yield a problem for each image whose digest is not the manifest's."""
    digests = manifest.parts[part]()["digest"].take(pa.array(images.manifest_rows))
    lossless = source_class(images.entry.source, manifest.datasets).lossless
    if not lossless and images.entry.layout == "pixels":
        return  # the digest is of the file, and only pixels of small images are kept
    for row, digest in enumerate(digests):
        if digest.as_py() is None:
            continue
        actual = digest_pixels(np.asarray(images.picture(row))) if lossless else digest_file(images.raw(row))
        if actual != digest.as_py():
            detail = "is not the manifest's image"
            yield Problem("altered", images.entry.source, None, images.image_id(row), detail)
