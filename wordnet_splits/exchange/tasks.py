"""Tasks of a format: a list to read, or a benchmark to write with its rows, images, paths and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from wordnet_splits.base.errors import DataError, MissingImageError, Problem, SourceError
from wordnet_splits.base.files import writing
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import LARGEST_IMAGE, open_untrusted, read_image
from wordnet_splits.benchmark.images.raw_images import (
    MAGIC_BYTES,
    RAW_VIEW,
    AlteredImageError,
    RawImages,
    file_extension,
    no_root,
)
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.datasets.catalog.declarations import LOCAL, Sources
from wordnet_splits.datasets.sources import Source, source_class
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.exchange.paths import CaseClashes, disk_path, encoded_path, official_path, tree_path

DEFAULT_EXTENSION: Final = ".jpg"
"""Extension of an image whose file format is unknown."""
ROWS_PER_BATCH: Final = 4096
"""Rows of an image table converted to Python objects at a time."""

NEGATIVE, UNKNOWN = -1, -2
LABELS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {"openset-imagenet": {"external": NEGATIVE, "near": UNKNOWN, "far": UNKNOWN}}
)
"""Format -> role -> label, for formats with labels of their own for images that are not ID."""

ImageRow = dict[str, Any]
"""One row of an image table, by column."""


@dataclass(frozen=True)
class ImportTask:
    """A file or folder to read.

    Attributes
    ----------
    split : split of a file without a split in its name.
    datasets : the users' datasets that may be named.
    """

    path: Path
    split: str = "test"
    datasets: Sources = LOCAL


@dataclass(frozen=True)
class ImportOptions:
    """Roots to read images from, whether missing images are left out, and where progress is reported.

    Attributes
    ----------
    datasets : the users' datasets that may be named.
    """

    roots: Roots
    allow_missing: bool
    progress: Progress | None
    datasets: Sources = LOCAL


class Picture(NamedTuple):
    """An image to write: its row, and its bytes with their extension, or the file that holds them."""

    row: ImageRow
    data: bytes
    extension: str
    file: Path | None = None

    def write(self, path: Path, *, copies: bool) -> None:
        """Write the image to a new path: a link to its file, if it has one, or with ``copies`` a file."""
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.file is not None and not copies:
                path.symlink_to(self.file)
                return
            data = self.data if self.file is None else read_image(self.file, self.file.parent.resolve())
            with path.open("xb") as file:
                file.write(data)


@dataclass
class ExportTask:
    """A benchmark to write.

    Attributes
    ----------
    copies : write images even if a link to the root's file would do.
    ids_only : leave images out, if the format can.
    paths : paths in lists, of `disk_paths.PATHS`.
    links : write the images of lists below ``images/``, at their paths.
    problems : images missing from a root; filled while images are read.
    images : number of images written so far.
    """

    manifest: Manifest
    format: str
    sources: dict[str, Source]
    copies: bool = False
    ids_only: bool = False
    paths: str = "tree"
    links: bool = False
    allow_missing: bool = False
    progress: Progress = field(default_factory=Silent)
    problems: list[Problem] = field(default_factory=list)
    images: int = 0
    _case_clashes: dict[Part, CaseClashes] = field(default_factory=dict)

    @cached_property
    def _classes_of_sources(self) -> Mapping[str, type[Source]]:
        names = set(self.manifest.classes["source"].to_pylist())
        return {name: source_class(name, self.manifest.datasets) for name in names}

    def tables(self) -> Iterator[tuple[Part, pa.Table]]:
        """Yield the image table of each (split, group)."""
        for part, read_table in self.manifest.parts.items():
            yield part, read_table()

    def rows(self, table: pa.Table) -> Iterator[ImageRow]:
        """Yield the rows of an image table, counting them."""
        for batch in table.to_batches(max_chunksize=ROWS_PER_BATCH):
            self.images += batch.num_rows
            yield from batch.to_pylist()

    def pictures(self, part: Part, table: pa.Table, *, links: bool = False) -> Iterator[Picture]:
        """Yield the images of a part that the root has; ``links`` requests files, if the source has files.

        Images that are read are compared with their digests; linked files are not.

        Raises SourceError or MissingImageError if an image or root is missing, without ``allow_missing``.
        """
        split, group = part
        source = self.sources.get(self.manifest.source_of(group))
        if source is None and not self.allow_missing:
            raise no_root(self.manifest.source_of(group), group)
        reader = None if source is None else _PictureReader(source, table)
        with self.progress.task(f"writing {group} {split}", table.num_rows) as task:
            for number, row in enumerate(self.rows(table)):
                task.advance()
                try:
                    if reader is None:
                        raise SourceError(f"{row['source']} has no root")
                    yield reader.picture(number, row, links=links)
                except (SourceError, OSError) as error:
                    self.leave_out(row, error)

    def path(self, row: ImageRow, extension: str = "") -> str:
        """Return the other project's own path of an image if it is known, else its path in our tree.

        With ``paths="disk"``, return its path on disk. With ``links``, return its path in our tree if it has
        no file of its own. Without ``extension``, the extension of a path in our tree follows the content as
        far as possible without decoding: PNG for images that are rendered or stored losslessly, the format of
        the file under a root, JPEG otherwise.

        Raises
        ------
        DataError : ``paths="disk"`` without ``links``, and no file has the path.
        SourceError, MissingImageError : ``paths="disk"``, and the root or the file is absent.
        """
        if self.paths == "disk" and (path := self._disk_path(row)) is not None:
            return path
        extension = extension or self._extension(row) or DEFAULT_EXTENSION
        if self.paths == "disk":
            return self.tree_path(row, extension)
        return self._official_path(row) or self.tree_path(row, extension)

    def _disk_path(self, row: ImageRow) -> str | None:
        """Return the path of an image on disk as the format holds it, None if it has no file of its own."""
        source = self.sources.get(row["source"])
        if source is None and self._classes_of_sources[row["source"]].rooted:
            raise no_root(row["source"], row["group"])
        raw = source is not None and row["view"] == RAW_VIEW
        path = disk_path(source, row["image_id"]) if source is not None and raw else None
        encoded = None if path is None else encoded_path(path, self.format)
        if not self.links and encoded is None:
            reason = f"{printable(row['image_id'])} of {row['source']} has no file of its own on disk"
            hint = "write the pictures with --links, or leave out the group"
            raise DataError(reason, where=row["group"], hint=hint)
        if not self.links and encoded != path:
            reason = f"{self.format} cannot hold the path {printable(path)!r}, which has a blank"
            hint = "write the pictures with --links, or rename the file"
            raise DataError(reason, where=row["group"], hint=hint)
        return encoded

    def _official_path(self, row: ImageRow) -> str | None:
        if row["view"] != RAW_VIEW:
            return None
        return official_path(self.format, row["source"], row["image_id"], row["class_id"])

    def _extension(self, row: ImageRow) -> str:
        """Return the extension of an image in our tree, "" if its format is unknown."""
        if row["view"] != RAW_VIEW or self._classes_of_sources[row["source"]].lossless:
            return ".png"
        source = self.sources.get(row["source"])
        with suppress(KeyError, OSError):  # lists can be written without the image
            if source and (file := source.file(row["image_id"])) is not None:
                return _extension(file)
        return ""

    def label(self, row: ImageRow) -> int:
        """Return the label that the other project gives an image."""
        label: int = LABELS.get(self.format, {}).get(row["role"], row["label"])
        return label

    def tree_path(self, row: ImageRow, extension: str) -> str:
        """Return the path of an image in the tree of an export."""
        part = row["split"], row["group"]
        if part not in self._case_clashes:
            self._case_clashes[part] = CaseClashes.of(self.manifest.parts[part]())
        return tree_path(*part, row["class_id"], row["image_id"], extension, self._case_clashes[part])

    def leave_out(self, row: ImageRow, error: Exception) -> None:
        """Note an image that is missing; raise the error without ``allow_missing``."""
        if not self.allow_missing:
            raise error
        self.images -= 1
        kind = "altered" if isinstance(error, AlteredImageError) else "unreadable"
        kind = "missing" if isinstance(error, MissingImageError | FileNotFoundError) else kind
        self.problems.append(Problem(kind, row["source"], row["class_id"], row["image_id"], str(error)))


def _extension(file: Path) -> str:
    """Return the extension that fits the content of a file, "" for an unknown format."""
    with open_untrusted(file, largest=LARGEST_IMAGE, error=SourceError) as stream:
        return file_extension(stream.read(MAGIC_BYTES))


class _PictureReader:
    """Reader of the images of a table, in the order of its rows."""

    def __init__(self, source: Source, table: pa.Table) -> None:
        ids, digests = (table[name].combine_chunks() for name in ("image_id", "digest"))
        self._source, self._view = source, str(table["view"][0].as_py()) if len(table) else RAW_VIEW
        self._images = RawImages(source, ids, digests, self._view)

    def picture(self, number: int, row: ImageRow, *, links: bool) -> Picture:
        if links and self._view == RAW_VIEW and (file := self._source.file(row["image_id"])) is not None:
            return Picture(row, b"", _extension(file), file)
        return Picture(row, *self._images.encoded(number))
