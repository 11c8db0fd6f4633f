"""Write packed stores part by part, each in one step, so that an interrupted run can continue."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from wordnet_splits.base import files
from wordnet_splits.base.errors import MissingImageError, OutputError, Problem
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.benchmark.images.packed_part import part_paths
from wordnet_splits.benchmark.images.part_writer import PartTask, write_part
from wordnet_splits.benchmark.images.raw_images import (
    awaiting_parts,
    check_selection,
    is_selected,
    no_root,
    open_sources,
    spec_id,
)
from wordnet_splits.benchmark.images.store import PackedStore, is_store, open_store
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.benchmark.manifest.tables import SPLITS
from wordnet_splits.datasets.sources import Source
from wordnet_splits.datasets.sources.image_set import stamps
from wordnet_splits.datasets.sources.roots import Roots


@dataclass
class Packed:
    """The result of `pack`.

    Attributes
    ----------
    store : the store with all its parts.
    missing : one problem for each image left out.
    missing_of : number of missing images in each (split, group) of this run, including parts without a root.
    awaiting : "group split" of the parts whose images are not known yet.
    """

    store: PackedStore
    missing: list[Problem] = field(default_factory=list)
    missing_of: dict[Part, int] = field(default_factory=dict)
    awaiting: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether no image was left out."""
        return not self.missing


def pack(
    manifest: Manifest,
    out: Path,
    *,
    roots: Roots | None = None,
    groups: Collection[str] = (),
    splits: Collection[str] = (),
    allow_missing: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Packed:
    """Write a benchmark's images into the packed store ``out``.

    Finished parts are kept. Parts are packed again if another version of the benchmark changed them, if they
    lacked images, or if their files have changed. The bytes do not depend on the number of workers.

    Parameters
    ----------
    roots : folder of each source.
    groups, splits : groups and splits to pack; everything if empty.
    allow_missing : leave out images that a root lacks, or cannot give, instead of raising.
    workers : processes that read, decode and resize.

    Raises
    ------
    UnknownNameError : no such group, split or source.
    SourceError : a source has no root, or not that dataset's.
    MissingImageError : images are absent, damaged or altered, without ``allow_missing``.
    OutputError : ``out`` cannot be written, is in use, or holds another benchmark.
    """
    check_selection(manifest, groups, splits)
    parts = [part for part in manifest.parts if is_selected(part, groups, splits)]
    names = {manifest.source_of(group) for _, group in parts}
    sources = open_sources(sorted(names), roots, manifest.declarations)
    out = Path(out).absolute()
    with (
        files.writing(out),
        files.locked(out, busy="another process packs here", hint="wait for it, or give another --out"),
    ):
        for split in SPLITS:
            files.clear_parts(out / split)
        out.mkdir(parents=True, exist_ok=True)
        result = Packed(_open_or_new_store(manifest, out), awaiting=awaiting_parts(manifest, groups, splits))
        _drop_stale(manifest, result.store)
        for part in parts:
            if not _finished(manifest, result.store, part, sources):
                _pack_part(manifest, part, sources, result, allow_missing, workers, progress or Silent())
        result.store.write()
    return result


def _open_or_new_store(manifest: Manifest, out: Path) -> PackedStore:
    store = PackedStore(out, manifest.name, manifest.version)
    if is_store(out):
        before = open_store(out)
        if before.benchmark != manifest.name:
            message = f"holds the packed images of {before.benchmark}, not of {manifest.name}"
            raise OutputError(message, where=str(out), hint="give another --out")
        store.parts = before.parts
    return store


def _drop_stale(manifest: Manifest, store: PackedStore) -> None:
    """Remove parts that this manifest does not have, their files last."""
    stale = [part for part in store.parts if part not in manifest.parts]
    for part in stale:
        _forget(store, part)
        for path in part_paths(store.folder, part):
            path.unlink(missing_ok=True)


def _forget(store: PackedStore, part: Part) -> None:
    if store.parts.pop(part, None) is not None:
        store.write()


def _finished(manifest: Manifest, store: PackedStore, part: Part, sources: Mapping[str, Source]) -> bool:
    entry = store.parts.get(part)
    if entry is None or entry.missing or entry.images != manifest.images_fingerprint(part):
        return False
    if entry.pixels != manifest.pixels_fingerprint(part):
        return False
    source = sources.get(entry.source)
    if source is not None and entry.files != _files_hash(manifest, part, source):
        return False
    bin_path, index_path = part_paths(store.folder, part)
    whole = bin_path.is_file() and bin_path.stat().st_size == entry.bytes and index_path.is_file()
    return whole and entry.spec == spec_id(entry.view)


def _files_hash(manifest: Manifest, part: Part, source: Source) -> str | None:
    """Return a hash of the sizes and times of a root's files, None if the images' digests are known."""
    if source.root is None or manifest.pixels_fingerprint(part) is not None:
        return None
    ids = [pa.array([], pa.string()), *manifest.parts[part]()["image_id"].chunks]
    return hashlib.sha256(stamps(source.root, pa.concat_arrays(ids)).astype("<u8").tobytes()).hexdigest()


def _pack_part(
    manifest: Manifest,
    part: Part,
    sources: Mapping[str, Source],
    result: Packed,
    allow_missing: bool,
    workers: int,
    progress: Progress,
) -> None:
    table = manifest.parts[part]()
    name = manifest.source_of(part[1])
    if name not in sources:
        if not allow_missing:
            raise no_root(name, part[1])
        pairs = zip(table["class_id"].to_pylist(), table["image_id"].to_pylist(), strict=True)
        missing = [Problem("missing", name, c, i, f"{name} has no root") for c, i in pairs]
        result.missing += missing
        result.missing_of[part] = len(missing)
        return
    bin_path, index_path = part_paths(result.store.folder, part)
    with files.replacing(bin_path) as partial, files.replacing(index_path) as partial_index:
        task = PartTask(
            part,
            table,
            sources[name],
            images=manifest.images_fingerprint(part),
            pixels=manifest.pixels_fingerprint(part),
            files=_files_hash(manifest, part, sources[name]),
        )
        entry, missing = write_part(task, partial, partial_index, workers=workers, progress=progress)
        if missing and not allow_missing:
            raise _incomplete(missing, manifest.name)
        _forget(result.store, part)  # between the two renames the files fit no entry
    result.missing += missing
    result.missing_of[part] = len(missing)
    result.store.parts[part] = entry
    result.store.write()


def _incomplete(missing: list[Problem], where: str) -> MissingImageError:
    kinds = sorted({problem.kind for problem in missing})
    examples = "; ".join(f"{p.source}:{p.image_id} {p.kind} ({p.detail})" for p in missing[:3])
    rest = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
    return MissingImageError(
        f"{len(missing):,} images are {' or '.join(kinds)}: {examples}{rest}",
        where=where,
        hint="complete the root, or leave them out with --allow-missing",
    )
