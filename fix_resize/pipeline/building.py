"""Build a selection into an output folder: the shards, then the tables and ``output.json``.

A build can be interrupted at any time (Ctrl-C, kill -9, a full disk): finished shards are reused, and the
same command continues. The result does not depend on who runs the shards, or how often.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fix_resize.output import IMAGE_SCHEMA, IMAGES, OUTPUT, SCHEMA, Description
from fix_resize.pipeline import writing as files
from fix_resize.pipeline.cluster import on_dask
from fix_resize.pipeline.selection import Identify, Selection
from fix_resize.pipeline.shards import (
    ShardJob,
    ShardOutcome,
    finished_outcome,
    read_marker,
    run_shard,
)
from fix_resize.pipeline.writing import RESUME_HINT, UNFINISHED, WORK_FOLDER, BuildItem
from fix_resize.spec import ResizeSpec
from wordnet_splits.base.errors import DataError, MissingImageError, OutputError
from wordnet_splits.base.files import is_lock, locked, write_json, writing
from wordnet_splits.base.parquet import read_table
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import read_json, write_sealed
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.benchmark.construct.selection import Shortfall
from wordnet_splits.datasets.sources.image_set import ImageFolder

SHARD_SIZE: Final = 1000
"""Images per shard: a few seconds of work, so that an interruption loses little."""

_BUILD: Final = f"{WORK_FOLDER}/build.json"
_ROWS: Final = 65_536
"""Rows per row group of the table of images, and in memory at a time."""


@dataclass(frozen=True)
class PipelineSettings:
    """Options of a build.

    Attributes
    ----------
    spec : the resize spec.
    file_format : ``png`` or ``parquet`` (`writing.FORMATS`).
    backend : code that resizes; all give the same bytes. ``auto`` is numba if installed, else Pillow.
    shard_size : images per shard.
    identify : how to notice a changed source image: ``stat`` or ``digest``.
    allow_missing : report images that a root lacks instead of raising MissingImageError.
    workers : number of processes on this machine.
    scheduler : address of a Dask scheduler to use instead.
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
class BuildResult(Tabular):
    """The result of a build; its rows are the images that were left out.

    Attributes
    ----------
    folder : the output folder.
    about : the content of ``output.json``.
    quarantined, missing : rows of these tables.
    shortfalls : classes with fewer images than the draw requires.
    built_shards, reused_shards : number of shards built by this call, and finished before.
    """

    folder: Path
    about: Description
    quarantined: tuple[dict[str, str], ...]
    missing: tuple[dict[str, str], ...]
    shortfalls: tuple[Shortfall, ...]
    built_shards: int
    reused_shards: int

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the resized images (`writing.IDENTITY`)."""
        return self.about.fingerprint

    @property
    def complete(self) -> bool:
        """Whether no image is missing; quarantined images do not count as missing."""
        return self.about.complete

    def rows(self) -> list[dict[str, str]]:
        """Return a row per image that was left out, with the reason as ``kind``."""
        kinds = [{**row, "kind": row["reason"]} for row in self.quarantined]
        return [{name: row[name] for name in files.MISSING_SCHEMA.names} for row in (*kinds, *self.missing)]


class _Span(NamedTuple):
    """The rows of the selection that form a shard."""

    name: str
    rows: slice


def build(selection: Selection, out: Path, settings: PipelineSettings) -> BuildResult:
    """Build a selection into a folder, or continue an interrupted build.

    Raises
    ------
    MissingImageError : a root lacks images, and ``allow_missing`` is false.
    OutputError : the folder cannot be written, is in use, or contains anything else.
    SplitsError : a worker, a cluster or a library fails.
    """
    out = out.resolve()
    hint = "wait for it, or give another --out"
    with locked(out, busy="another build is writing here", hint=hint), _unfinished_files_removed(out):
        _claim_folder(out, selection, settings)
        available = selection.available()
        if not available.any():
            raise _nothing_available(selection)
        not_under_root = _missing_rows(selection, available)
        if not_under_root and not settings.allow_missing:
            raise _missing_error(not_under_root, selection.name)
        spans = list(_spans(selection.table["split"], settings.shard_size))
        job_of = _job_factory(selection, available, out, settings)
        finished = _finished(map(job_of, spans), len(spans), settings.progress)
        todo = [span for span in spans if span.name not in finished]
        images = sum(int(available[span.rows].sum()) for span in todo)
        built = _run(map(job_of, todo), images, selection.name, settings)
        outcomes = [(finished | built)[span.name] for span in spans]
        unreadable = [row for outcome in outcomes for row in outcome.missing]
        if unreadable and not settings.allow_missing:
            raise _missing_error(unreadable, selection.name)
        about = _write_output(out, selection, settings, outcomes, not_under_root)
    return BuildResult(
        folder=out,
        about=about,
        quarantined=tuple(row for outcome in outcomes for row in outcome.quarantined),
        missing=(*not_under_root, *unreadable),
        shortfalls=tuple(selection.shortfalls),
        built_shards=len(todo),
        reused_shards=len(spans) - len(todo),
    )


@contextmanager
def _unfinished_files_removed(out: Path) -> Iterator[None]:
    """Remove unfinished files of killed writers, before and after."""
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    yield
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)


def _claim_folder(out: Path, selection: Selection, settings: PipelineSettings) -> None:
    """Claim a folder that is new, empty, or of the same build; OutputError for any other folder."""
    build_record = {
        "schema": SCHEMA,
        "what": selection.name,
        "spec": settings.spec.id,
        "format": settings.file_format,
        "shard_size": settings.shard_size,
        "selection": selection.fingerprint,
    }
    if settings.file_format == "png":
        files.check_paths(selection.table["path"].combine_chunks())
    for source in selection.sources.values():
        if isinstance(source, ImageFolder) and source.root and out.resolve().is_relative_to(source.root):
            raise OutputError(
                "is inside the folder of images and would become part of it",
                where=str(out),
                hint="give an --out outside it",
            )
    existing = _existing_record(out)
    for name in build_record if existing else ():
        if existing.get(name) != build_record[name]:
            raise OutputError(
                f"has a build with another {name}: {existing.get(name)}, not {build_record[name]}",
                where=str(out),
                hint="give another --out, or remove this one",
            )
    with writing(out, hint=RESUME_HINT):
        (out / UNFINISHED).mkdir(parents=True, exist_ok=True)
    if not existing:
        write_json(out / _BUILD, build_record, hint=RESUME_HINT)


def _existing_record(out: Path) -> dict[str, Any]:
    """Return the record of the build in a folder; empty if the folder is new or empty."""
    if (out / _BUILD).exists():
        try:
            record = read_json(out / _BUILD)
        except DataError as error:
            raise OutputError("cannot be read: the folder stays as it is", where=str(out / _BUILD)) from error
        return record if isinstance(record, dict) and record else {"schema": None}
    with writing(out):
        names = [path.name for path in out.iterdir()] if out.exists() else []
    foreign = sorted(name for name in names if name != WORK_FOLDER and not is_lock(name))
    if foreign:
        raise OutputError(
            f"must be empty or an output of fix-resize, but contains {foreign[0]!r}",
            where=str(out),
            hint="give another --out",
        )
    return {}


def _missing_rows(selection: Selection, available: npt.NDArray[np.bool_]) -> list[dict[str, str]]:
    rows = selection.table.select(files.KEY_COLUMNS).filter(pa.array(~available)).to_pylist()
    details = {group: files.as_utf8(f"not under {s.root}") for group, s in selection.sources.items()}
    return [{**row, "kind": "missing", "detail": details[row["group"]]} for row in rows]


def _nothing_available(selection: Selection) -> MissingImageError:
    roots = ", ".join(sorted({str(source.root) for source in selection.sources.values()}))
    return MissingImageError(
        f"none of the images of {selection.name} is under its root",
        where=roots,
        hint="is it the right root? `wordnet-splits sources check` describes the content of a root",
    )


def _missing_error(missing: Sequence[Mapping[str, str]], name: str) -> MissingImageError:
    kinds = " or ".join(sorted({m["kind"] for m in missing}))
    examples = "; ".join(f"{m['source']}:{m['image_id']} {m['kind']}" for m in missing[:3])
    more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
    return MissingImageError(
        f"{len(missing):,} images are {kinds}: {examples}{more}",
        where=name,
        hint="complete the root, or leave them out with --allow-missing",
    )


def _spans(splits: pa.ChunkedArray, size: int) -> Iterator[_Span]:
    """Cut the table into shards: runs of at most ``size`` rows with the same split."""
    runs = pc.run_end_encode(splits.combine_chunks(), run_end_type=pa.int64())
    start_of_split = 0
    for split, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        starts = range(start_of_split, end, size)
        for n, start in enumerate(starts):
            name = f"{split}-{n:05d}-of-{len(starts):05d}"
            yield _Span(name, slice(start, min(start + size, end)))
        start_of_split = end


def _job_factory(
    selection: Selection, available: npt.NDArray[np.bool_], out: Path, settings: PipelineSettings
) -> Callable[[_Span], ShardJob]:
    stamps = selection.stamps(settings.identify, settings.progress)

    def job_of(span: _Span) -> ShardJob:
        mask = available[span.rows]
        rows = selection.table.slice(span.rows.start, len(mask)).filter(pa.array(mask)).to_pylist()
        items = tuple(
            BuildItem(**row, stamp=stamp)
            for row, stamp in zip(rows, stamps[span.rows][mask].tolist(), strict=True)
        )
        return ShardJob(
            name=span.name,
            out=out,
            spec=settings.spec,
            file_format=settings.file_format,
            backend=settings.backend,
            items=items,
            sources={group: selection.sources[group] for group in {item.group for item in items}},
        )

    return job_of


def _finished(jobs: Iterable[ShardJob], count: int, progress: Progress) -> dict[str, ShardOutcome]:
    """Return the outcomes of the shards that an earlier call finished, by name."""
    outcomes = {}
    with progress.task("looking for finished shards", count) as task:
        for job in jobs:
            if (outcome := finished_outcome(job)) is not None:
                outcomes[job.name] = outcome
            task.advance()
    return outcomes


def _run(
    jobs: Iterable[ShardJob], images: int, name: str, settings: PipelineSettings
) -> dict[str, ShardOutcome]:
    """Run the shards, locally or on a cluster; return their outcomes by name."""
    outcomes = {}
    if settings.scheduler is not None:
        results = on_dask(jobs, settings.scheduler)
    else:
        results = run_jobs(run_shard, jobs, settings.workers, name=lambda job: f"shard {job.name}")
    with closing(results), settings.progress.task(f"resizing {name}", images) as task:
        for job, outcome in results:
            marker = read_marker(job.out / job.marker)
            if marker is None or (marker.key, marker.data) != (outcome.key, outcome.data):
                raise OutputError(
                    "a worker wrote to another folder",
                    where=str(job.out),
                    hint="give an --out that all workers reach under the same path",
                )
            outcomes[job.name] = outcome
            task.advance(len(job.items))
    return outcomes


def _write_output(
    out: Path,
    selection: Selection,
    settings: PipelineSettings,
    outcomes: Sequence[ShardOutcome],
    not_under_root: Sequence[dict[str, str]],
) -> Description:
    """Join the tables of all shards, in order, and write ``output.json``; return its content."""
    spec, file_format = settings.spec, settings.file_format
    with writing(out, hint=RESUME_HINT):
        (out / OUTPUT).unlink(missing_ok=True)  # until the tables are complete again
    missing = [*not_under_root, *(row for outcome in outcomes for row in outcome.missing)]
    quarantined = [row for outcome in outcomes for row in outcome.quarantined]
    fingerprint = files.Fingerprint()
    with files.table_writer(out / IMAGES, IMAGE_SCHEMA, spec.id) as writer:
        for table in _joined(out, outcomes):
            fingerprint.add(table)
            writer.write_table(table, row_group_size=_ROWS)
    files.write_rows(out / files.QUARANTINE, files.QUARANTINE_SCHEMA, spec.id, quarantined)
    files.write_rows(out / files.MISSING, files.MISSING_SCHEMA, spec.id, missing)
    checksums = {file: files.checksum(out, [file]) for file in files.TABLES}
    if file_format == "parquet":
        checksums |= {
            files.image_location(file_format, "", o.shard, 0)[0]: o.data for o in outcomes if o.images
        }
    description: dict[str, Any] = {
        "schema": SCHEMA,
        "name": selection.name,
        "spec": {**spec.describe(), "libraries": _libraries(outcomes)},
        "format": file_format,
        "images": sum(outcome.images for outcome in outcomes),
        "quarantined": len(quarantined),
        "missing": len(missing),
        "shortfalls": [vars(short) for short in selection.shortfalls],
        "complete": not missing and not selection.shortfalls,
        "population": selection.population,
        "unexpected": {name: sum(counts.values()) for name, counts in selection.unexpected.items()},
        "selection": selection.fingerprint,
        "fingerprint": fingerprint.hexdigest(),
        "tables": checksums,
        "provenance": {"wordnet-splits": version("wordnet-splits")},
    }
    write_sealed(out / OUTPUT, description, hint=RESUME_HINT)
    return Description.model_validate(description)


def _joined(out: Path, outcomes: Iterable[ShardOutcome]) -> Iterator[pa.Table]:
    """Yield the tables of the shards, joined to row groups."""
    group: list[pa.Table] = []
    for outcome in outcomes:
        group.append(read_table(out / outcome.table_file, error=OutputError).cast(IMAGE_SCHEMA))
        if sum(map(len, group)) >= _ROWS:
            yield pa.concat_tables(group).combine_chunks()
            group = []
    if group:
        yield pa.concat_tables(group).combine_chunks()


def _libraries(outcomes: Iterable[ShardOutcome]) -> dict[str, str]:
    """Return the versions of libraries that the pixels depend on; if workers differed, all versions."""
    versions: dict[str, set[str]] = {}
    for outcome in outcomes:
        for name, number in outcome.libraries.items():
            versions.setdefault(name, set()).add(number)
    return {name: " + ".join(sorted(numbers)) for name, numbers in sorted(versions.items())}
