"""What a format is given to write: a benchmark, its sources, and each image as it is to be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from wordnet_splits.base.errors import MissingImageError, Problem, SourceError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import LARGEST_IMAGE, open_untrusted
from wordnet_splits.exchange.naming import Ambiguous, tree_path
from wordnet_splits.exchange.paths import official_path
from wordnet_splits.manifest import Manifest, Part
from wordnet_splits.packed.reading import (
    FILE_EXTENSIONS,
    MAGIC_BYTES,
    RAW_VIEW,
    AlteredImageError,
    RawImages,
    file_extension,
    no_root,
)
from wordnet_splits.sources import Source, source_class

JPEG = ".jpg"
"""Extension of a picture of which nothing tells what its file holds."""
AT_ONCE = 4096
"""Rows of an image table held as objects."""

NEGATIVE, UNKNOWN = -1, -2
LABELS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {"openset-imagenet": {"external": NEGATIVE, "near": UNKNOWN, "far": UNKNOWN}}
)
"""Format -> role -> label, where a project has labels of its own for what is not ID."""

ImageRow = dict[str, Any]
"""One row of an image table, by column."""


class Picture(NamedTuple):
    """An image to be written: its row, its bytes and their extension, or the file that holds them."""

    row: ImageRow
    data: bytes
    extension: str
    file: Path | None = None


@dataclass
class Export:
    """What a format is given to write.

    Attributes
    ----------
    copies : write pictures where a link to the root's file would do.
    ids_only : leave pictures out, where the format can.
    problems : images that a root lacked, filled while pictures are read.
    """

    manifest: Manifest
    format: str
    sources: dict[str, Source]
    copies: bool = False
    ids_only: bool = False
    allow_missing: bool = False
    progress: Progress = field(default_factory=Silent)
    problems: list[Problem] = field(default_factory=list)
    images: int = 0
    _ambiguous: dict[Part, Ambiguous] = field(default_factory=dict)

    def tables(self) -> Iterator[tuple[Part, pa.Table]]:
        """Yield the image table of each (split, group)."""
        for part, read_table in self.manifest.parts.items():
            yield part, read_table()

    def rows(self, table: pa.Table) -> Iterator[ImageRow]:
        """Yield the rows of an image table, counting them."""
        for batch in table.to_batches(max_chunksize=AT_ONCE):
            self.images += batch.num_rows
            yield from batch.to_pylist()

    def pictures(self, part: Part, table: pa.Table, *, links: bool = False) -> Iterator[Picture]:
        """Yield the images of a part that the root holds; ``links``: as files, where they are files.

        An image that is read is compared with its digest; one that is only linked to is not.

        Raises
        ------
        SourceError, MissingImageError : what is not there, without ``allow_missing``.
        """
        split, group = part
        source = self.sources.get(self.manifest.source_of(group))
        if source is None and not self.allow_missing:
            raise no_root(self.manifest.source_of(group), group)
        reader = _Reader(source, table) if source is not None else None
        with self.progress.task(f"writing {group} {split}", table.num_rows) as task:
            for number, row in enumerate(self.rows(table)):
                task.advance()
                try:
                    if reader is None:
                        raise SourceError(f"{row['source']} has no root")
                    yield reader.picture(number, row, links=links)
                except (SourceError, OSError) as error:
                    self._leave_out(row, error)

    def path(self, row: ImageRow) -> str:
        """Return where the other project keeps an image: its own path for it, else that of our tree.

        In our tree a file is called by what it holds, as far as that is known without decoding it: a picture
        that is rendered or stored without loss is PNG, a file under a root says it itself, others are JPEG.
        """
        return self._official(row) or self.tree_path(row, self._extension(row) or JPEG)

    def paths(self, row: ImageRow) -> tuple[str, ...]:
        """Return every path that an export writes for an image, whatever roots it was given."""
        if official := self._official(row):
            return (official,)
        extension = self._extension(row)
        return tuple(self.tree_path(row, e) for e in ([extension] if extension else FILE_EXTENSIONS))

    def _official(self, row: ImageRow) -> str | None:
        if row["view"] != RAW_VIEW:
            return None
        return official_path(self.format, row["source"], row["image_id"], row["class_id"])

    def _extension(self, row: ImageRow) -> str:
        """Return the extension of a file of our tree, "" where nothing tells it."""
        if row["view"] != RAW_VIEW or source_class(row["source"]).lossless:
            return ".png"
        source = self.sources.get(row["source"])
        with suppress(KeyError, OSError):  # a list needs no picture
            if source and (file := source.file(row["image_id"])) is not None:
                return _extension(file)
        return ""

    def label(self, row: ImageRow) -> int:
        """Return the label that the other project gives an image."""
        label: int = LABELS.get(self.format, {}).get(row["role"], row["label"])
        return label

    def tree_path(self, row: ImageRow, extension: str) -> str:
        """Return where the tree of an export has an image."""
        part = row["split"], row["group"]
        if part not in self._ambiguous:
            self._ambiguous[part] = Ambiguous.of(self.manifest.parts[part]())
        return tree_path(*part, row["class_id"], row["image_id"], extension, self._ambiguous[part])

    def _leave_out(self, row: ImageRow, error: Exception) -> None:
        if not self.allow_missing:
            raise error
        self.images -= 1
        kind = "altered" if isinstance(error, AlteredImageError) else "unreadable"
        kind = "missing" if isinstance(error, MissingImageError | FileNotFoundError) else kind
        self.problems.append(Problem(kind, row["source"], row["class_id"], row["image_id"], str(error)))


def _extension(file: Path) -> str:
    """Return the extension that fits what a file holds, "" for an unknown format."""
    with open_untrusted(file, largest=LARGEST_IMAGE, error=SourceError) as stored:
        return file_extension(stored.read(MAGIC_BYTES))


class _Reader:
    """Reads the images of one table, in its order."""

    def __init__(self, source: Source, table: pa.Table) -> None:
        ids, digests = (table[name].combine_chunks() for name in ("image_id", "digest"))
        view = str(table["view"][0].as_py()) if len(table) else RAW_VIEW
        self._source, self._view = source, view
        self._images = RawImages(source, ids, digests, view)

    def picture(self, number: int, row: ImageRow, *, links: bool) -> Picture:
        if links and self._view == RAW_VIEW:
            file = self._source.file(row["image_id"])
            if file is not None:
                return Picture(row, b"", _extension(file), file)
        data, extension = self._images.encoded(number)
        return Picture(row, data, extension)
