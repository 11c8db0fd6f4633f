"""Write packed stores part by part, each in one step, so that an interrupted run can continue."""

from __future__ import annotations

import hashlib
import os
import zlib
from array import array
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, MissingImageError, OutputError, Problem, SourceError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.benchmark.images.raw_images import (
    RAW_VIEW,
    AlteredImageError,
    RawImages,
    awaiting_parts,
    check_selection,
    is_selected,
    open_sources,
    require_roots,
    spec_id,
)
from wordnet_splits.benchmark.images.store import (
    INDEX_SCHEMA,
    PackedStore,
    PartEntry,
    is_store,
    open_store,
    part_paths,
)
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
        unfinished = [part for part in parts if not _finished(manifest, result.store, part, sources)]
        if not allow_missing:
            require_roots(manifest, unfinished, sources)
        for part in unfinished:
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


CHUNK = 64  # images a worker renders at a time: at 100 kB each, 6 MB travel back
SMALL = 96 * 96  # largest number of pixels for which image files of equal size are stored decoded
Shape = tuple[int, int, int]

Job = tuple[RawImages, Shape | None]
"""Some images, and the shape of their pixels, None for file bytes."""


@dataclass(frozen=True)
class PartTask:
    """One part to write: its image table, its source, and their identification in the entry.

    ``images``, ``pixels`` and ``files`` are as in `PartEntry`.
    """

    part: Part
    table: pa.Table
    source: Source
    images: str
    pixels: str | None
    files: str | None

    @property
    def view(self) -> str:
        """Return the view of the part's images."""
        return str(self.table["view"][0].as_py()) if len(self.table) else RAW_VIEW

    def rows(self, start: int, count: int) -> RawImages:
        """Return the images of some rows, which pickle to no more than those rows."""
        piece = self.table.slice(start, count)
        ids, digests = (pa.concat_arrays(piece[name].chunks) for name in ("image_id", "digest"))
        return RawImages(self.source, ids, digests, self.view)


def write_part(
    task: PartTask, bin_path: Path, index_path: Path, *, workers: int, progress: Progress
) -> tuple[PartEntry, list[Problem]]:
    """Write the two files of a part; return its entry and a problem for each image left out.

    Raises DataError if images that can only be kept as pixels differ in size.
    """
    shape, only_pixels = _layout(task)
    try:
        return _write(task, shape, bin_path, index_path, workers, progress)
    except _OtherShapeError as error:
        if only_pixels:
            message = f"image {str(error)!r} has another size than the first of its group"
            raise DataError(message, where=f"{task.part[1]} {task.part[0]}") from None
        return _write(task, None, bin_path, index_path, workers, progress)


def _layout(task: PartTask) -> tuple[Shape | None, bool]:
    """Return the shape of packed pixels, None for files; and whether only pixels can be packed."""
    for row in range(len(task.table)):  # the first readable image decides
        images = task.rows(row, 1)
        try:
            raw = images.read(0)
            height, width, _ = np.asarray(images.render(raw, images.image_id(0))).shape
        except (SourceError, OSError):
            continue
        only_pixels = task.view != RAW_VIEW or not isinstance(raw, bytes)
        return ((3, height, width) if only_pixels or height * width <= SMALL else None), only_pixels
    return None, False


def _write(
    task: PartTask, shape: Shape | None, bin_path: Path, index_path: Path, workers: int, progress: Progress
) -> tuple[PartEntry, list[Problem]]:
    split, group = task.part
    total = len(task.table)
    jobs = ((task.rows(start, CHUNK), shape) for start in range(0, total, CHUNK))
    index = array("q"), array("q"), array("q"), array("I")
    sha256, size = hashlib.sha256(), 0
    missing: list[Problem] = []
    with (
        bin_path.open("wb") as file,
        progress.task(f"packing {group} {split}", total) as bar,
        closing(run_jobs(_render, jobs, workers, name=_describe, ordered=True)) as batches,
    ):
        for row, packed in enumerate(chain.from_iterable(outcomes for _, outcomes in batches)):
            if isinstance(packed, bytes):
                indexed = (row, size, len(packed), zlib.crc32(packed, row))
                for column, value in zip(index, indexed, strict=True):
                    column.append(value)
                file.write(packed)
                sha256.update(packed)
                size += len(packed)
            else:
                kind, detail = packed
                image_id, class_id = (task.table[name][row].as_py() for name in ("image_id", "class_id"))
                if kind == OTHER_SHAPE:
                    raise _OtherShapeError(image_id)
                missing.append(Problem(kind, task.source.name, class_id, image_id, detail))
            bar.advance()
    _write_index(index_path, task, index)
    entry = PartEntry(
        split=split,
        group=group,
        source=task.source.name,
        view=task.view,
        spec=spec_id(task.view),
        layout="files" if shape is None else "pixels",
        shape=shape,
        rows=total - len(missing),
        missing=len(missing),
        bytes=size,
        images=task.images,
        pixels=task.pixels,
        files=task.files,
        sha256=sha256.hexdigest(),
        index_sha256=hashlib.sha256(index_path.read_bytes()).hexdigest(),
    )
    return entry, missing


class _OtherShapeError(Exception):
    """An image, whose id is the message, does not have the shape of the images before it."""


def _write_index(path: Path, task: PartTask, columns: tuple[array[int], ...]) -> None:
    """Write the index (id, row, offset, length and CRC of each packed image) in a single record batch."""
    numbers = [pa.array(np.frombuffer(column, column.typecode)) for column in columns]
    ids = pa.concat_arrays([pa.array([], pa.string()), *task.table["image_id"].chunks])
    arrays = [ids.take(numbers[0]), *numbers]
    batch = pa.RecordBatch.from_arrays(arrays, schema=INDEX_SCHEMA)
    with pa.OSFile(os.fsencode(path), "wb") as file, pa.ipc.new_file(file, INDEX_SCHEMA) as writer:
        writer.write_batch(batch)


# -- in the workers ------------------------------------------------------------------------------------------

OTHER_SHAPE = "other-shape"

Outcome = bytes | tuple[str, str]
"""The packed bytes of an image, or the kind of problem and its detail."""


def _describe(job: Job) -> str:
    images, _ = job
    return f"{images.source.name} {images.image_id(0)} to {images.image_id(len(images) - 1)}"


def _render(job: Job) -> list[Outcome]:
    images, shape = job
    return [_outcome(images, row, shape) for row in range(len(images))]


def _outcome(images: RawImages, row: int, shape: Shape | None) -> Outcome:
    try:
        raw = images.read(row)
        if shape is not None:
            pixels = np.asarray(images.render(raw, images.image_id(row))).transpose(2, 0, 1)
            return pixels.tobytes() if pixels.shape == shape else (OTHER_SHAPE, "")
        if not isinstance(raw, bytes):
            return "unreadable", "its source gives pixels, not a file"
        reason = images.source.check_image(raw)
        return raw if reason is None else ("unreadable", reason)
    except MissingImageError as error:
        return "missing", str(error)
    except AlteredImageError as error:
        return "altered", str(error)
    except (SourceError, OSError) as error:
        return "unreadable", str(error)
