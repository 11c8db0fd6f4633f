"""A shard: images in a fixed order that one process reads, decodes, resizes, hashes and writes.

The same function runs in this process, in local processes and on a Dask cluster. A shard is finished if its
marker exists, describes the same images in the same files, and its checksums match; until then any process
may build it again, with the same bytes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from PIL import Image

from fix_resize.decode import Decoded, UndecodableImageError, decode
from fix_resize.output import IMAGE_SCHEMA
from fix_resize.pipeline.writing import (
    RESUME_HINT,
    UNFINISHED,
    WORK_FOLDER,
    BuildItem,
    as_utf8,
    checksum,
    encode_png,
    image_location,
    write_images,
    write_rows,
)
from fix_resize.resize import BACKENDS, apply_colour_rule, apply_many
from fix_resize.spec import ResizeSpec, libraries, plan
from wordnet_splits.base.digests import Pixels, as_rgb, digest_json, digest_pixels
from wordnet_splits.base.errors import DataError, MissingImageError, SourceError, SplitsError
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.text_formats import StrictModel, read_sealed, write_sealed
from wordnet_splits.datasets.sources import Raw, Source, open_source

MARKER_SCHEMA: Final = 2
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
"""Addresses of objects in Pillow's errors, which differ in every run."""


@dataclass(frozen=True)
class ShardJob:
    """A shard to build.

    Attributes
    ----------
    name : name of the shard and of its files.
    out : the output folder, absolute.
    items : the images, in order.
    sources : the opened source of each group among them.
    """

    name: str
    out: Path
    spec: ResizeSpec
    file_format: str
    backend: str
    items: tuple[BuildItem, ...]
    sources: dict[str, Source] = field(hash=False)

    @property
    def key(self) -> str:
        """SHA-256 over everything that determines the bytes of the shard, so without the backend."""
        rows = [{**i._asdict(), "digest": i.digest.hex() if i.digest else None} for i in self.items]
        header = {
            "schema": MARKER_SCHEMA,
            "name": self.name,
            "spec": self.spec.id,
            "format": self.file_format,
        }
        return digest_json({**header, "images": rows})

    @property
    def marker(self) -> str:
        """File that marks the shard as finished."""
        return f"{WORK_FOLDER}/{self.name}.json"

    @property
    def table(self) -> str:
        """File with the shard's part of the table of images."""
        return f"{WORK_FOLDER}/{self.name}.parquet"


class ShardOutcome(StrictModel):
    """The outcome of a shard: the content of its marker.

    Attributes
    ----------
    shard : name of the shard.
    key : key of its job.
    images : number of resized images.
    quarantined, missing : rows of these tables.
    table, data : SHA-256 of the shard's table, and over the files of its images.
    libraries : versions that the pixels depend on.
    """

    shard: str
    key: str
    images: int
    quarantined: list[dict[str, str]]
    missing: list[dict[str, str]]
    table: str
    data: str
    libraries: dict[str, str]

    @property
    def table_file(self) -> str:
        """File with the shard's part of the table of images."""
        return f"{WORK_FOLDER}/{self.shard}.parquet"


_LOCK: Final = threading.Lock()
"""A process has one handle of a source, which the threads of a Dask worker must not use at once."""


def run_shard(job: ShardJob) -> ShardOutcome:
    """Build a shard; safe to repeat, on any machine that reaches the roots and the output folder."""
    with _LOCK:
        return _build(job)


def finished_outcome(job: ShardJob) -> ShardOutcome | None:
    """Return the outcome of a finished, unaltered shard without missing or quarantined images, else None."""
    outcome = read_marker(job.out / job.marker)
    if outcome is None or outcome.key != job.key or outcome.missing or outcome.quarantined:
        return None  # unreadable images may have been repaired since
    if checksum(job.out, [job.table]) != outcome.table:
        return None
    try:
        files = read_table(job.out / job.table, ["file"])["file"].to_pylist()
    except DataError:
        return None
    return outcome if checksum(job.out, files) == outcome.data else None


def read_marker(marker: Path) -> ShardOutcome | None:
    """Return the content of a marker; None if it does not exist or was altered."""
    try:
        return read_sealed(marker, ShardOutcome)
    except DataError:
        return None


def _build(job: ShardJob) -> ShardOutcome:
    (job.out / job.marker).unlink(missing_ok=True)
    sources = {group: _reopened(source) for group, source in job.sources.items()}
    rows: list[dict[str, Any]] = []
    quarantined: list[dict[str, str]] = []
    missing: list[dict[str, str]] = []

    def images() -> Iterator[tuple[BuildItem, bytes]]:
        for item in job.items:
            try:
                pixels, columns = _resized(job, item, sources[item.group])
            except UndecodableImageError as error:
                detail = as_utf8(_ADDRESS.sub("", error.detail))
                quarantined.append({**item.key_columns(), "reason": error.reason, "detail": detail})
                continue
            except _UnreadableError as error:
                missing.append({**item.key_columns(), "kind": error.kind, "detail": as_utf8(error.detail)})
                continue
            file, row = image_location(job.file_format, item.path, job.name, len(rows))
            rows.append({**item.key_columns(), **columns, "label": item.label, "file": file, "row": row})
            yield item, encode_png(pixels, job.spec.id)

    write_images(job.out, job.file_format, job.name, job.spec.id, images())
    files = [row["file"] for row in rows]
    expected = {image_location(job.file_format, item.path, job.name, 0)[0] for item in job.items}
    for stale in expected - set(files):
        (job.out / stale).unlink(missing_ok=True)
    aside = job.out / UNFINISHED
    write_rows(job.out / job.table, IMAGE_SCHEMA, job.spec.id, rows, aside=aside)
    outcome = ShardOutcome(
        shard=job.name,
        key=job.key,
        images=len(rows),
        quarantined=quarantined,
        missing=missing,
        table=checksum(job.out, [job.table]) or "",
        data=checksum(job.out, files) or "",
        libraries=libraries(job.spec),
    )
    write_sealed(job.out / job.marker, outcome.model_dump(), hint=RESUME_HINT, aside=aside)
    return outcome


class _UnreadableError(Exception):
    """An image cannot be read from its root; ``kind`` as in the table of missing images."""

    def __init__(self, kind: str, detail: str) -> None:
        self.kind, self.detail = kind, detail


def _reopened(source: Source) -> Source:
    """Return a source; a memory-mapped source anew, whose pages count as used memory until it is closed."""
    return open_source(source.name, source.root) if source.layout == "lmdb" else source


def _resized(job: ShardJob, item: BuildItem, source: Source) -> tuple[Pixels, dict[str, Any]]:
    """Return a resized image, and its columns in the table of images."""
    where = f"{item.source}:{item.image_id}"
    try:
        raw = source.read([item.image_id])[0]
    except MissingImageError as error:
        raise _UnreadableError("missing", str(error)) from None
    except SourceError as error:
        raise _UnreadableError("unreadable", str(error)) from None
    image, mode, notes = _decoded(raw, where, job.spec)
    digest = source.digest(raw)
    if item.digest is not None and digest != item.digest:
        content = "pixels" if source.lossless else "bytes"
        raise _UnreadableError("altered", f"its {content} are not the published ones ({source.root})")
    pixels = _resizer(job.backend, job.spec)(image)
    columns = {
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
    return pixels, columns


def _decoded(raw: Raw, where: str, spec: ResizeSpec) -> Decoded:
    if isinstance(raw, np.ndarray):
        mode = "RGB" if raw.ndim == 3 and raw.shape[2] == 3 else "L"
        return Decoded(Image.fromarray(as_rgb(raw)), mode, ())
    try:
        return decode(raw, where, admit=partial(plan, spec))
    except MemoryError:
        raise SplitsError("not enough memory to decode it", where=where, hint="use fewer workers") from None


@lru_cache(maxsize=16)
def _resizer(backend: str, spec: ResizeSpec) -> Callable[[Image.Image], Pixels]:
    """Return a function that resizes one image; ``auto`` is numba if installed and able, else Pillow."""
    if backend == "auto":
        try:
            return _resizer("numba", spec)
        except SplitsError:
            return _resizer("pillow", spec)
    if backend not in BACKENDS:
        return lambda image: apply_many(spec, [image], backend)[0]
    apply_many(spec, np.zeros((1, 8, 8, 3), np.uint8), backend)  # raises if the backend is unusable
    apply_batch = import_module(BACKENDS[backend][0]).apply_batch
    return lambda image: cast(Pixels, apply_batch(spec, np.asarray(apply_colour_rule(spec, image))[None])[0])
