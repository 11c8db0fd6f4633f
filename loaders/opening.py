"""Open the parts of a manifest: select them, find their images, list missing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fix_resize.output import OUTPUT, open_output
from wordnet_splits.base.errors import ManifestError, MissingImageError, SourceError, unknown
from wordnet_splits.benchmark.images import open_store
from wordnet_splits.benchmark.images.raw_images import (
    RAW_VIEW,
    PartImages,
    RawImages,
    ResizedImages,
    open_sources,
    present,
    require_roots,
    spec_id,
)
from wordnet_splits.benchmark.manifest import GroupRow, Manifest, Part
from wordnet_splits.benchmark.manifest.tables import IMAGE_SCHEMA, SPLITS
from wordnet_splits.datasets.sources.roots import Roots

MISSING_SCHEMA = pa.schema([*IMAGE_SCHEMA, ("reason", pa.string())])
PackedFolders = Path | str | Sequence[Path | str]


@dataclass(frozen=True)
class OpenedPart:
    """An opened part of a manifest.

    Attributes
    ----------
    table : rows of the images that were found.
    images : reader of the images, in the order of ``table``.
    missing : rows left out, with the reason (`MISSING_SCHEMA`).
    """

    part: Part
    table: pa.Table
    images: PartImages
    missing: pa.Table


def select_parts(
    manifest: Manifest, role: str | None, group: str | None, split: str, *, allow_missing: bool
) -> tuple[list[Part], list[str]]:
    """Return the parts to open, in table order, and the groups whose source is not available yet.

    Raises
    ------
    UnknownNameError : no such role, group or split.
    ManifestError : no image matches, or the source of a group is not available yet (with
        ``allow_missing``: the sources of all groups).
    """
    rows = [row for row in manifest.groups if row.split != "classes"]
    for kind, name, names in (
        ("split", split, set(SPLITS)),
        ("group", group, {row.group for row in manifest.groups}),
        ("role", role, {row.role for row in manifest.groups}),
    ):
        if name is not None and name not in names:
            raise unknown(kind, name, names, where=manifest.name)
    matching = [row for row in rows if row.role == (role or row.role)]
    matching = [row for row in matching if row.group == (group or row.group)]
    in_split = [row for row in matching if row.split == split]
    if not in_split:
        splits = ", ".join(sorted({row.split for row in matching})) or "no images of that role and group"
        raise ManifestError(f"no images in split {split!r}", where=_place(manifest, group), hint=splits)
    awaiting = [row for row in in_split if row.awaits]
    if awaiting and (not allow_missing or len(awaiting) == len(in_split)):
        raise _awaits(manifest, awaiting[0])
    groups = {row.group for row in in_split} - {row.group for row in awaiting}
    parts = [part for part in manifest.parts if part[0] == split and part[1] in groups]
    return parts, [row.group for row in awaiting]


def ready_groups(manifest: Manifest, split: str) -> list[str]:
    """Return the groups that have images in a split, in the recipe's order, less those awaiting a source."""
    rows = (row for row in manifest.groups if row.split == split)
    return [row.group for row in rows if (split, row.group) in manifest.parts]


def open_parts(
    manifest: Manifest,
    parts: Sequence[Part],
    *,
    roots: Roots | None,
    packed: PackedFolders | None,
    allow_missing: bool,
) -> list[OpenedPart]:
    """Open parts: from the first packed folder that holds them, else from the roots of their sources.

    A root is scanned, once, only with ``allow_missing``; otherwise a missing image is an error when it is
    read.

    Raises
    ------
    SourceError : a source has no root, a wrong one, or a packed folder does not fit.
    MissingImageError : a packed folder lacks some images of a part (not with ``allow_missing``).
    """
    folders = [open_folder(path) for path in _paths(packed)]
    tables = {part: manifest.parts[part]() for part in parts}
    opened: dict[Part, OpenedPart] = {}
    for part in parts:
        for folder in folders:
            if (images := folder.find(manifest, part, tables[part])) is not None:
                opened[part] = _from_folder(folder, images, part, tables[part], allow_missing)
                break
    others = {part: tables[part] for part in parts if part not in opened}
    opened |= _from_roots(manifest, others, roots, allow_missing, packed=bool(folders))
    return [opened[part] for part in parts]


def _paths(packed: PackedFolders | None) -> list[Path]:
    if packed is None:
        return []
    return [Path(packed)] if isinstance(packed, str | Path) else [Path(folder) for folder in packed]


def _from_folder(
    folder: Folder, folder_images: FolderImages, part: Part, table: pa.Table, allow_missing: bool
) -> OpenedPart:
    if not folder_images.available.all() and not allow_missing:
        image_id = table["image_id"][int(np.argmin(folder_images.available))].as_py()
        raise MissingImageError(
            f"{int((~folder_images.available).sum()):,} of the images of group {part[1]} are not here, "
            f"first {image_id!r}",
            where=str(folder.path),
            hint="complete the root and write it again, or give allow_missing=True",
        )
    return _split(part, table, folder_images.available, folder_images.images, f"not in {folder.path}")


def _from_roots(
    manifest: Manifest,
    tables: Mapping[Part, pa.Table],
    roots: Roots | None,
    allow_missing: bool,
    *,
    packed: bool,
) -> dict[Part, OpenedPart]:
    source_of = {part: manifest.source_of(part[1]) for part in tables}
    sources = open_sources(list(source_of.values()), roots, manifest.declarations)
    opened = {}
    if not allow_missing:
        more = ", and no packed folder holds them" if packed else ""
        require_roots(manifest, tables, sources, more=more)
    for name in sorted(set(source_of.values())):
        source_parts = [part for part in tables if source_of[part] == name]
        for part, available in zip(
            source_parts, _available(sources.get(name), source_parts, tables, allow_missing), strict=True
        ):
            reason = f"not under {sources[name].root}" if name in sources else f"{name} has no root"
            opened[part] = _raw(part, tables[part], available, sources.get(name), reason)
    return opened


def _available(
    source: Any, parts: Sequence[Part], tables: Mapping[Part, pa.Table], allow_missing: bool
) -> list[npt.NDArray[np.bool_]]:
    """Return for each part a mask of the rows that the source has, from one scan for all parts."""
    counts = [len(tables[part]) for part in parts]
    if source is None:
        return [np.zeros(count, bool) for count in counts]
    if not allow_missing:
        return [np.ones(count, bool) for count in counts]
    ids = pa.chunked_array([c for part in parts for c in tables[part]["image_id"].chunks], pa.string())
    return np.split(present(source, ids), np.cumsum(counts)[:-1])


def _raw(
    part: Part, table: pa.Table, available: npt.NDArray[np.bool_], source: Any, reason: str
) -> OpenedPart:
    rows = table if available.all() else table.filter(pa.array(available))
    ids, digests = (rows[name].combine_chunks() for name in ("image_id", "digest"))
    view = str(table["view"][0].as_py()) if len(table) else "raw"
    images = RawImages(source, ids, None if digests.null_count == len(digests) else digests, view)
    return _split(part, table, available, images, reason)


def _split(
    part: Part, table: pa.Table, available: npt.NDArray[np.bool_], images: PartImages, reason: str
) -> OpenedPart:
    if available.all():
        return OpenedPart(part, table, images, MISSING_SCHEMA.empty_table())
    missing_rows = table.filter(pa.array(~available))
    reasons = pa.repeat(pa.scalar(reason), len(missing_rows))
    missing = missing_rows.append_column("reason", reasons).cast(MISSING_SCHEMA)
    return OpenedPart(part, table.filter(pa.array(available)), images, missing)


def _place(manifest: Manifest, group: str | None) -> str:
    return manifest.name if group is None else f"{manifest.name}, group {group}"


def _awaits(manifest: Manifest, row: GroupRow) -> ManifestError:
    return ManifestError(
        f"its {row.split} images await {row.source}: {row.reason or 'their ids are not known yet'}",
        where=_place(manifest, row.group),
        hint=f"give the folder that `wordnet-splits build {manifest.name} --root {row.source}=DIR` writes "
        "(with --local where the publisher's counts are not known)",
    )


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
