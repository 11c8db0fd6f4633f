"""From a selection to an output folder: the shards, then the tables and ``output.json``.

A build can be interrupted at any moment (Ctrl-C, kill -9, a full disk): finished shards are kept, and the
same command continues. The result is the same whatever ran the shards, and however often.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fix_resize.pipeline.cluster import on_dask
from fix_resize.pipeline.finish import finish
from fix_resize.pipeline.formats import get_format
from fix_resize.pipeline.image_folder import ImageFolder
from fix_resize.pipeline.output import SCHEMA, Description
from fix_resize.pipeline.selection import Identify, Worklist
from fix_resize.pipeline.shards import ShardJob, ShardOutcome, finished, marker_of, read_record, run_shard
from fix_resize.pipeline.tables import ABOUT, GO_ON, MISSING_SCHEMA, UNFINISHED, WORK, BuildItem, plain
from fix_resize.spec import ResizeSpec
from wordnet_splits.base.errors import DataError, MissingImageError, OutputError
from wordnet_splits.base.files import is_lock, locked, write_json, writing
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.making.images import Shortfall

SHARD_SIZE: Final = 1000
"""Images of a shard: a few seconds of work, so that little has to be repeated."""

_BUILD: Final = f"{WORK}/build.json"


@dataclass(frozen=True)
class PipelineSettings:
    """How to build.

    Attributes
    ----------
    spec : what the images are taken through.
    file_format : ``png`` or ``parquet`` (`formats.FORMATS`).
    backend : the code that resizes; all give the same bytes. ``auto``: numba where it is installed.
    shard_size : images of a shard.
    identify : how a changed source image is noticed: ``stat`` or ``digest``.
    allow_missing : leave out what a root lacks, and say so, instead of raising.
    workers : processes on this machine; 1 is this one alone.
    scheduler : address of a Dask scheduler that is used instead.
    """

    spec: ResizeSpec
    file_format: str = "png"
    backend: str = "auto"
    shard_size: int = SHARD_SIZE
    identify: Identify = "stat"
    allow_missing: bool = False
    workers: int = 1
    scheduler: str | None = None
    progress: Progress = field(default_factory=Silent)


@dataclass(frozen=True)
class Built(Tabular):
    """The result of a build; its rows are the images that had to be left out.

    Attributes
    ----------
    about : the content of ``output.json``.
    quarantined, missing : the rows of those tables.
    shortfalls : classes of which a root held fewer images than were to be drawn.
    made, kept : shards made by this call, and found finished.
    """

    folder: Path
    about: Description
    quarantined: tuple[dict[str, str], ...]
    missing: tuple[dict[str, str], ...]
    shortfalls: tuple[Shortfall, ...]
    made: int
    kept: int

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the pictures (`tables.IDENTITY`)."""
        return self.about.fingerprint

    @property
    def complete(self) -> bool:
        """Whether no wanted image is missing; quarantined images do not count."""
        return self.about.complete

    def rows(self) -> list[dict[str, str]]:
        """Return a row for each image that was left out, with the ``kind`` of reason."""
        kinds = [{**row, "kind": row["reason"]} for row in self.quarantined]
        return [{name: row[name] for name in MISSING_SCHEMA.names} for row in (*kinds, *self.missing)]


class _Span(NamedTuple):
    """The rows of the selection that form a shard."""

    name: str
    first: int
    rows: int


def build(selection: Worklist, out: Path, settings: PipelineSettings) -> Built:
    """Build a selection into a folder, or continue an interrupted build.

    Raises
    ------
    MissingImageError : a root lacks images, without ``allow_missing``.
    OutputError : the folder cannot be written, is in use, or holds something else.
    SplitsError : a worker, a cluster or a library fails; see the message.
    """
    out = out.resolve()
    hint = "wait for it, or give another --out"
    with locked(out, busy="another build is writing here", hint=hint), _workplace(out):
        _claim(out, selection, settings)
        held = selection.held()
        if not held.any():
            raise _none_held(selection)
        absent = [_absent(selection, row) for row in np.flatnonzero(~held).tolist()]
        if absent and not settings.allow_missing:
            raise _missing_error(absent, selection.name)
        spans = list(_spans(selection.table["split"], settings.shard_size))
        jobs = _jobs(selection, held, out, settings)
        todo = _unfinished(spans, jobs, settings.progress)
        images = sum(int(held[span.first : span.first + span.rows].sum()) for span in todo)
        _run(map(jobs, todo), images, selection.name, settings)
        records = [_recorded(out / marker_of(span.name)) for span in spans]
        lost = [row for record in records for row in record.missing]
        if lost and not settings.allow_missing:
            raise _missing_error(lost, selection.name)
        about = finish(out, selection, settings.spec, settings.file_format, records, absent)
    return Built(
        folder=out,
        about=about,
        quarantined=tuple(row for record in records for row in record.quarantined),
        missing=(*absent, *lost),
        shortfalls=tuple(selection.shortfalls),
        made=len(todo),
        kept=len(spans) - len(todo),
    )


@contextmanager
def _workplace(out: Path) -> Iterator[None]:
    """Remove what killed writers left unfinished, before and after."""
    unfinished = out / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    yield
    shutil.rmtree(unfinished, ignore_errors=True)


def _recorded(marker: Path) -> ShardOutcome:
    record = read_record(marker)
    if record is None:  # it was there a moment ago
        raise OutputError("was changed while the build ran", where=str(marker), hint="run it again")
    return record


def _claim(out: Path, selection: Worklist, settings: PipelineSettings) -> None:
    """Claim a folder that is new, empty, or of the same build; refuse any other."""
    ours = {
        "schema": SCHEMA,
        "what": selection.name,
        "spec": settings.spec.id,
        "format": settings.file_format,
        "shard_size": settings.shard_size,
        "selection": selection.fingerprint,
    }
    get_format(settings.file_format).check(selection.table["path"].combine_chunks())
    for source in selection.sources.values():
        if isinstance(source, ImageFolder) and source.root and out.resolve().is_relative_to(source.root):
            raise OutputError(
                "lies inside the folder of images and would become part of it",
                where=str(out),
                hint="give an --out beside it",
            )
    theirs = _begun(out)
    for name in ours if theirs else ():
        if theirs.get(name) != ours[name]:
            raise OutputError(
                f"holds a build with another {name}: {theirs.get(name)}, not {ours[name]}",
                where=str(out),
                hint="give another --out, or remove this one",
            )
    with writing(out, hint=GO_ON):
        (out / UNFINISHED).mkdir(parents=True, exist_ok=True)
    if not theirs:
        write_json(out / _BUILD, ours, hint=GO_ON)


def _begun(out: Path) -> dict[str, Any]:
    """Return the description of the build begun in a folder; nothing where it is new or empty."""
    if (out / _BUILD).exists():
        try:
            said = read_json(out / _BUILD)
        except DataError as error:
            raise OutputError("cannot be read: the folder is left alone", where=str(out / _BUILD)) from error
        return said if isinstance(said, dict) and said else {"schema": None}
    with writing(out):
        held = [path.name for path in out.iterdir()] if out.exists() else []
    foreign = sorted(name for name in held if name != WORK and not is_lock(name))
    if foreign:
        raise OutputError(
            f"is neither empty nor an output of fix-resize: it holds {foreign[0]!r}",
            where=str(out),
            hint="give another --out",
        )
    return {}


def _absent(selection: Worklist, row: int) -> dict[str, str]:
    item = selection.table.select(ABOUT).slice(row, 1).to_pylist()[0]
    root = selection.sources[item["group"]].root
    return {**item, "kind": "missing", "detail": plain(f"not under {root}")}


def _none_held(selection: Worklist) -> MissingImageError:
    roots = ", ".join(sorted({str(source.root) for source in selection.sources.values()}))
    return MissingImageError(
        f"none of the images of {selection.name} is under its root",
        where=roots,
        hint="is it the right root? 'wordnet-splits sources check' says what a root holds",
    )


def _missing_error(missing: Sequence[Mapping[str, str]], name: str) -> MissingImageError:
    kinds = " or ".join(sorted({m["kind"] for m in missing}))
    first = "; ".join(f"{m['source']}:{m['image_id']} {m['kind']}" for m in missing[:3])
    more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
    return MissingImageError(
        f"{len(missing):,} images are {kinds}: {first}{more}",
        where=name,
        hint="complete the root, or leave them out with --allow-missing",
    )


def _spans(splits: pa.ChunkedArray, size: int) -> Iterator[_Span]:
    """Cut the table into shards of at most ``size`` rows, none of two splits."""
    runs = pc.run_end_encode(splits.combine_chunks(), run_end_type=pa.int64())
    first = 0
    for split, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        count = -(-(end - first) // size)
        for n in range(count):
            start = first + n * size
            yield _Span(f"{split}-{n:05d}-of-{count:05d}", start, min(size, end - start))
        first = end


def _jobs(
    selection: Worklist, held: npt.NDArray[np.bool_], out: Path, settings: PipelineSettings
) -> Callable[[_Span], ShardJob]:
    run, stamps = uuid4().hex, selection.stamps(settings.identify, settings.progress)

    def job(span: _Span) -> ShardJob:
        at = slice(span.first, span.first + span.rows)
        rows = selection.table.slice(span.first, span.rows).filter(pa.array(held[at])).to_pylist()
        items = tuple(
            BuildItem(**row, stamp=stamp)
            for row, stamp in zip(rows, stamps[at][held[at]].tolist(), strict=True)
        )
        return ShardJob(
            run=run,
            name=span.name,
            out=out,
            spec=settings.spec,
            file_format=settings.file_format,
            backend=settings.backend,
            items=items,
            sources={group: selection.sources[group] for group in {item.group for item in items}},
        )

    return job


def _unfinished(spans: Sequence[_Span], jobs: Callable[[_Span], ShardJob], progress: Progress) -> list[_Span]:
    """Return the shards still to be done: without a marker, or with checksums that do not match."""
    todo = []
    with progress.task("looking for finished shards", len(spans)) as task:
        for span in spans:
            if finished(jobs(span)) is None:
                todo.append(span)
            task.advance()
    return todo


def _run(jobs: Iterable[ShardJob], images: int, name: str, settings: PipelineSettings) -> None:
    """Run the shards, here or on a cluster."""
    if settings.scheduler is not None:
        records = on_dask(jobs, settings.scheduler)
    else:
        records = run_jobs(run_shard, jobs, settings.workers, name=lambda job: f"shard {job.name}")
    with closing(records), settings.progress.task(f"resizing {name}", images) as task:
        for job, record in records:
            seen = read_record(job.out / job.marker)
            if seen is None or (seen.key, seen.data) != (record.key, record.data):
                raise OutputError(
                    "a worker wrote to another place",
                    where=str(job.out),
                    hint="give an --out that all workers see under the same path",
                )
            task.advance(len(job.items))
