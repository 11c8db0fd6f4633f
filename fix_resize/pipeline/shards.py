"""A shard: images in a fixed order that one process reads, decodes, resizes, hashes and writes.

The same function runs in this process, in local ones and on a Dask cluster. A shard is done when its marker
exists, describes the same images in the same files, and its checksums match; until then any process may
start it again, and gets the same bytes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
from PIL import Image

from fix_resize.decode import Decoded, QuarantinedImageError, decode
from fix_resize.pipeline.formats import checksum, encode_png, get_format
from fix_resize.pipeline.tables import GO_ON, IMAGE_SCHEMA, UNFINISHED, WORK, BuildItem, plain, write_rows
from fix_resize.resize import BACKENDS, apply_many, coloured
from fix_resize.spec import ResizeSpec, libraries, plan
from wordnet_splits.base.digests import Pixels, digest_json, digest_pixels
from wordnet_splits.base.errors import DataError, MissingImageError, SourceError, SplitsError
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.schemas import StrictModel, read_sealed, write_sealed
from wordnet_splits.sources import Raw, Source, open_source
from wordnet_splits.sources.base import as_rgb

MARKER_SCHEMA: Final = 2
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
"""Pillow puts addresses of objects into some errors, and they differ in every run."""


def marker_of(shard: str) -> str:
    """Return the file that says that a shard is done."""
    return f"{WORK}/{shard}.json"


def table_of(shard: str) -> str:
    """Return the file that holds a shard's part of the table of images."""
    return f"{WORK}/{shard}.parquet"


@dataclass(frozen=True)
class ShardJob:
    """A shard to be done.

    Attributes
    ----------
    run : id of the run, in which a process opens each source once.
    name : of the shard, and of its files.
    out : the output folder, absolute.
    items : the images that the root holds, in order.
    sources : the opened source of each group among them.
    """

    run: str
    name: str
    out: Path
    spec: ResizeSpec
    file_format: str
    backend: str
    items: tuple[BuildItem, ...]
    sources: dict[str, Source] = field(hash=False)

    @property
    def key(self) -> str:
        """SHA-256 of all that determines the shard's bytes, which backend and executor do not."""
        rows = [{**i._asdict(), "digest": i.digest.hex() if i.digest else None} for i in self.items]
        what = {"schema": MARKER_SCHEMA, "name": self.name, "spec": self.spec.id, "format": self.file_format}
        return digest_json({**what, "images": rows})

    @property
    def marker(self) -> str:
        """File that says the shard is done."""
        return marker_of(self.name)

    @property
    def table(self) -> str:
        """File that holds the shard's part of the table of images."""
        return table_of(self.name)


class ShardOutcome(StrictModel):
    """The outcome of a shard: the content of its marker.

    Attributes
    ----------
    shard : its name.
    key : of the job that made it.
    images : how many pictures it holds.
    quarantined, missing : rows of those tables.
    table, data : SHA-256 of the shard's table, and over its files.
    libraries : versions that its pixels depend on.
    """

    shard: str
    key: str
    images: int
    quarantined: list[dict[str, str]]
    missing: list[dict[str, str]]
    table: str
    data: str
    libraries: dict[str, str]


_ONE_AT_A_TIME: Final = threading.Lock()
"""Sources keep one handle per process that threads must not share, and a Dask worker may have threads."""


def run_shard(job: ShardJob) -> ShardOutcome:
    """Make a shard; safe to repeat, on any machine that sees the roots and the output folder.

    Raises
    ------
    OutputError : it cannot be written.
    SplitsError : a backend or library is missing.
    """
    with _ONE_AT_A_TIME:
        return _make(job)


def finished(job: ShardJob) -> ShardOutcome | None:
    """Return the record of a shard that is done and whole, else None."""
    record = read_record(job.out / job.marker)
    if record is None or record.key != job.key or record.missing or record.quarantined:
        return None  # what could not be read or decoded may have been repaired
    if checksum(job.out, [job.table]) != record.table:
        return None
    try:
        files = read_table(job.out / job.table, ["file"])["file"].to_pylist()
    except DataError:
        return None
    return record if checksum(job.out, files) == record.data else None


def read_record(marker: Path) -> ShardOutcome | None:
    """Return the content of a marker, None where there is none or it was altered."""
    try:
        return read_sealed(marker, ShardOutcome)
    except DataError:
        return None


def _make(job: ShardJob) -> ShardOutcome:
    (job.out / job.marker).unlink(missing_ok=True)
    keep = get_format(job.file_format)
    rows: list[dict[str, Any]] = []
    quarantined: list[dict[str, str]] = []
    missing: list[dict[str, str]] = []

    def pictures() -> Iterator[tuple[BuildItem, bytes]]:
        for item in job.items:
            try:
                picture = _picture(job, item)
            except QuarantinedImageError as error:
                detail = plain(_ADDRESS.sub("", error.detail))
                quarantined.append({**item.about(), "reason": error.reason, "detail": detail})
                continue
            except _Absent as error:
                missing.append({**item.about(), "kind": error.kind, "detail": plain(error.detail)})
                continue
            file, row = keep.place(item.path, job.name, len(rows))
            rows.append({**item.about(), **picture.row, "label": item.label, "file": file, "row": row})
            yield item, encode_png(picture.pixels, job.spec.id)

    keep.write(job.out, job.name, job.spec.id, pictures())
    files = [row["file"] for row in rows]
    for stale in {keep.place(item.path, job.name, 0)[0] for item in job.items} - set(files):
        (job.out / stale).unlink(missing_ok=True)
    aside = job.out / UNFINISHED
    write_rows(job.out / job.table, IMAGE_SCHEMA, job.spec.id, rows, aside=aside)
    record = ShardOutcome(
        shard=job.name,
        key=job.key,
        images=len(rows),
        quarantined=quarantined,
        missing=missing,
        table=checksum(job.out, [job.table]) or "",
        data=checksum(job.out, files) or "",
        libraries=_libraries(job.spec),
    )
    write_sealed(job.out / job.marker, record.model_dump(), hint=GO_ON, aside=aside)
    return record


class _Absent(Exception):
    """An image that cannot be read from its root."""

    def __init__(self, kind: str, detail: str) -> None:
        self.kind, self.detail = kind, detail


class _Picture(NamedTuple):
    pixels: Pixels
    row: dict[str, Any]


def _picture(job: ShardJob, item: BuildItem) -> _Picture:
    source = _opened(job, item.group)
    where = f"{item.source}:{item.image_id}"
    try:
        raw = source.read([item.image_id])[0]
    except MissingImageError as error:
        raise _Absent("missing", str(error)) from None
    except SourceError as error:
        raise _Absent("unreadable", str(error)) from None
    image, mode, notes = _decoded(raw, where, job.spec)
    digest = source.digest(raw)
    if item.digest is not None and digest != item.digest:
        what = "pixels" if source.lossless else "bytes"
        raise _Absent("altered", f"its {what} are not the published ones ({source.root})")
    pixels = _resizer(job.backend, job.spec)(image)
    row = {
        "digest": digest,
        "pixel_sha256": digest_pixels(pixels),
        "width": pixels.shape[1],
        "height": pixels.shape[0],
        "mode": "RGB",
        "spec": job.spec.id,
        "source_width": image.width,
        "source_height": image.height,
        "source_mode": mode,
        "notes": ",".join(notes),
    }
    return _Picture(pixels, row)


def _decoded(raw: Raw, where: str, spec: ResizeSpec) -> Decoded:
    if isinstance(raw, np.ndarray):
        mode = "RGB" if raw.ndim == 3 and raw.shape[2] == 3 else "L"
        return Decoded(Image.fromarray(as_rgb(raw)), mode, ())
    try:
        return decode(raw, where, admit=partial(plan, spec))
    except MemoryError:
        raise SplitsError("not enough memory to decode it", where=where, hint="use fewer workers") from None


_OPENED: dict[tuple[str, str], Source] = {}

_MAPPED: Final = frozenset({"lmdb"})
"""Layouts with memory-mapped files: what was read of one counts as memory until it is closed."""


def _opened(job: ShardJob, group: str) -> Source:
    """Return this process's handle of a source in this run; a mapped one is reopened for each shard."""
    mapped = job.sources[group].layout in _MAPPED
    key = (f"{job.run} {job.name}" if mapped else job.run, group)
    if key not in _OPENED:
        for old in [old for old in _OPENED if old[0] not in (job.run, key[0])]:
            del _OPENED[old]
        source = job.sources[group]
        _OPENED[key] = open_source(source.name, source.root) if mapped else source
    return _OPENED[key]


@lru_cache(maxsize=16)
def _resizer(backend: str, spec: ResizeSpec) -> Callable[[Image.Image], Pixels]:
    """Return a function that resizes one image; ``auto`` is numba where it is installed and can do the spec.

    Raises
    ------
    UnknownNameError : no such backend.
    SplitsError : it is not installed, or the spec has arithmetic of its own.
    """
    if backend == "auto":
        try:
            return _resizer("numba", spec)
        except SplitsError:
            return _resizer("pillow", spec)
    if backend not in BACKENDS:
        return lambda image: apply_many(spec, [image], backend)[0]
    apply_many(spec, np.zeros((1, 8, 8, 3), np.uint8), backend)  # raises if it cannot
    apply_batch = import_module(BACKENDS[backend][0]).apply_batch
    return lambda image: cast(Pixels, apply_batch(spec, np.asarray(coloured(spec, image))[None])[0])


@lru_cache(maxsize=4)
def _libraries(spec: ResizeSpec) -> dict[str, str]:
    return libraries(spec)
