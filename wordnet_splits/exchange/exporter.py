"""Export of benchmarks in other projects' formats, into a new folder and in one step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import (
    DataError,
    MissingImageError,
    OutputError,
    Problem,
    SourceError,
    SplitsError,
    unknown,
)
from wordnet_splits.base.files import locked, replacing_folder, writing
from wordnet_splits.base.jsonable import to_json
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import LARGEST_IMAGE, open_untrusted, read_image
from wordnet_splits.benchmark.images.raw_images import (
    MAGIC_BYTES,
    RAW_VIEW,
    AlteredImageError,
    RawImages,
    awaiting_parts,
    check_selection,
    file_extension,
    is_selected,
    no_root,
    open_sources,
    require_roots,
)
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.benchmark.manifest.carried import write_carried
from wordnet_splits.benchmark.manifest.metadata import Carried
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources import Source, source_class
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.exchange.formats import FORMATS
from wordnet_splits.exchange.paths import (
    PATHS,
    CaseClashes,
    disk_path,
    encoded_path,
    official_path,
    tree_path,
)

DEFAULT_EXTENSION: Final = ".jpg"
"""Extension of an image whose file format is unknown."""
ROWS_PER_BATCH: Final = 4096
"""Rows of an image table converted to Python objects at a time."""

ImageRow = dict[str, Any]
"""One row of an image table, by column."""


class ExportImage(NamedTuple):
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
    paths : paths in lists, one of `PATHS`.
    links : write the images of lists below ``images/``, at their paths.
    problems, images : images missing from a root, and number of images written; updated as they are read.
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

    def read_images(self, part: Part, table: pa.Table, *, links: bool = False) -> Iterator[ExportImage]:
        """Yield the images of a part that the root has; ``links`` requests files, if the source has files.

        Images that are read are compared with their digests; linked files are not.
        """
        split, group = part
        source = self.sources.get(self.manifest.source_of(group))
        view = str(table["view"][0].as_py()) if len(table) else RAW_VIEW
        ids, digests = (table[name].combine_chunks() for name in ("image_id", "digest"))
        images = None if source is None else RawImages(source, ids, digests, view)
        with self.progress.task(f"writing {group} {split}", table.num_rows) as task:
            for number, row in enumerate(self.rows(table)):
                task.advance()
                try:
                    if source is None or images is None:
                        raise SourceError(f"{row['source']} has no root")
                    file = source.file(row["image_id"]) if links and view == RAW_VIEW else None
                    if file is None:
                        yield ExportImage(row, *images.encoded(number))
                    else:
                        yield ExportImage(row, b"", _extension(file), file)
                except (SourceError, OSError) as error:
                    self.leave_out(row, error)

    def path(self, row: ImageRow, extension: str = "") -> str:
        """Return the other project's own path of an image if it is known, else its path in our tree.

        With ``paths="disk"``, return its path on disk. With ``links``, return its path in our tree if it has
        no file of its own. Without ``extension``, the extension of a path in our tree follows the content as
        far as possible without decoding: PNG for images that are rendered or stored losslessly, the format of
        the file under a root, JPEG otherwise.
        """
        if self.paths == "disk" and (path := self._disk_path(row)) is not None:
            return path
        extension = extension or self._extension(row) or DEFAULT_EXTENSION
        if self.paths == "disk":
            return self.tree_path(row, extension)
        official = None
        if row["view"] == RAW_VIEW:
            official = official_path(self.format, row["source"], row["image_id"], row["class_id"])
        return official or self.tree_path(row, extension)

    def _disk_path(self, row: ImageRow) -> str | None:
        """Return the path of an image on disk as the format holds it, None if it has no file of its own."""
        source = self.sources.get(row["source"])
        if source is None and self._classes_of_sources[row["source"]].rooted:
            raise no_root({row["source"]: row["group"]})
        raw = source is not None and row["view"] == RAW_VIEW
        path = disk_path(source, row["image_id"]) if source is not None and raw else None
        encoded = None if path is None else encoded_path(path, self.format)
        if not self.links and encoded is None:
            reason = f"{printable(row['image_id'])} of {row['source']} has no file of its own on disk"
            hint = "write the images with --links, or leave out the group"
            raise DataError(reason, where=row["group"], hint=hint)
        if not self.links and encoded != path:
            reason = f"a path of {self.format} must have no blank, got {printable(path)!r}"
            hint = "write the images with --links, or rename the file"
            raise DataError(reason, where=row["group"], hint=hint)
        return encoded

    def _extension(self, row: ImageRow) -> str:
        """Return the extension of an image in our tree, "" if its format is unknown."""
        if row["view"] != RAW_VIEW or self._classes_of_sources[row["source"]].lossless:
            return ".png"
        source = self.sources.get(row["source"])
        with suppress(KeyError, OSError):  # lists can be written without the image
            if source and (file := source.file(row["image_id"])) is not None:
                return _extension(file)
        return ""

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


@dataclass
class Exported:
    """The result of `export_benchmark`; ``images`` : number of images written.

    ``problems`` has one for each image that was left out, ``awaiting`` the "group split" of the parts whose
    images are not known yet.
    """

    name: str
    format: str
    folder: Path
    images: int
    problems: list[Problem] = field(default_factory=list)
    awaiting: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether no image was left out."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return what ``export --json`` prints."""
        return {
            "name": self.name,
            "format": self.format,
            "out": str(self.folder),
            "images": self.images,
            "awaiting": self.awaiting,
            "missing": to_json(self.problems),
        }


def export_benchmark(
    benchmark: Manifest | str | Path,
    format: str,
    out: Path | str,
    *,
    roots: Roots | None = None,
    copies: bool = False,
    paths: str = "tree",
    links: bool = False,
    ids_only: bool = False,
    allow_missing: bool = False,
    groups: Collection[str] = (),
    splits: Collection[str] = (),
    manifests: Path | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write a benchmark, or some groups and splits, in another project's format.

    Parameters
    ----------
    benchmark : name or folder of a manifest, or the manifest.
    format : one of `format_names`.
    out : folder to create; it must not exist, or be empty.
    roots : folder of each source, for formats with images; in lists, they decide the extensions of paths.
    copies : copy files instead of linking to them (``imagefolder``, ``links``).
    paths : in lists of paths, ``disk`` for ``<source>/<path below its root>`` as stored; ``tree`` for the
        paths of ``imagefolder``, or the other project's own if these are known.
    links : also write ``images/`` next to lists of paths, with a link at each path, or a file for an image
        without a file of its own.
    ids_only : write no images (``hub``).
    allow_missing : leave out images missing from a root, or whose source has no root, instead of raising.
    groups, splits : write only these; all when empty.

    Raises
    ------
    UnknownNameError : no such benchmark, format, source, group or split.
    OutputError : ``out`` is not empty, or cannot be written.
    SourceError, MissingImageError : images are missing, without ``allow_missing``.
    """
    exchange_format = FORMATS[format]()
    if paths not in PATHS:
        raise unknown("kind of paths", paths, PATHS)
    if not exchange_format.paths and (links or paths != "tree"):
        lists = [name for name, kind in FORMATS.entries().items() if kind.paths]
        hint = f"leave out paths and links, or export as {' or '.join(lists)}"
        raise SplitsError("paths and links only apply to lists of paths", where=format, hint=hint)
    manifest = load_manifest(benchmark, manifests)
    if groups or splits:
        manifest = _part(manifest, groups, splits)
    out = Path(out).absolute()
    needs_images = (exchange_format.has_images and not ids_only) or links or paths == "disk"
    names = {manifest.source_of(group) for _, group in manifest.parts}
    if not needs_images:  # only these roots, so that a list is the same on every machine
        names &= set(roots or {})
    sources = open_sources(sorted(names), roots, manifest.declarations)
    if needs_images and not allow_missing:
        require_roots(manifest, manifest.parts, sources)
    task = ExportTask(
        manifest,
        format,
        sources,
        copies=copies,
        paths=paths,
        links=links,
        ids_only=ids_only,
        allow_missing=allow_missing,
        progress=progress or Silent(),
    )
    with locked(out, busy="another process is exporting here", hint="wait, or give another --out"):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise OutputError("already exists", where=str(out), hint="give --out a new or empty folder")
        with replacing_folder(out) as folder:
            exchange_format.write(task, folder)
            exported = set(manifest.classes["source"].to_pylist())
            prints = manifest.data.fingerprints
            rows = [row for row in prints.sources if row.name in exported]
            carried = Carried(sources=rows, hierarchy=prints.hierarchy if rows else None)
            write_carried(carried, folder, manifest.declarations, hierarchy=manifest.own_hierarchy)
    awaiting = awaiting_parts(manifest, groups, splits)
    return Exported(manifest.name, format, out, task.images, task.problems, awaiting)


def _part(manifest: Manifest, groups: Collection[str], splits: Collection[str]) -> Manifest:
    """Return a manifest of some groups and splits: their classes, and their images if these are known."""
    check_selection(manifest, groups, splits)
    parts = {(row.split, row.group) for row in manifest.groups if row.split != "classes"}
    if not any(is_selected(part, groups, splits) for part in parts):
        reason = f"{', '.join(groups) or 'the benchmark'} has no {' and no '.join(splits) or 'images'}"
        raise SplitsError(reason, where=manifest.name, hint="see `wordnet-splits list`")
    in_groups = pc.is_in(manifest.classes["group"], pa.array(list(groups), pa.string()))
    classes = manifest.classes.filter(in_groups) if groups else manifest.classes
    selected = {part: read for part, read in manifest.parts.items() if is_selected(part, groups, splits)}
    return replace(manifest, classes=classes, parts=selected)
