"""Digests of the images under a root, and problems of absent, damaged or altered images.

Work is cut into chunks, done here or by worker processes, and journalled, so that Ctrl-C loses at most
the chunks in flight. A fault of an image is a problem in the result; a fault of the root (a truncated pickle,
an archive that leaves its folder) is an error and ends the reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import MissingImageError, Problem, SourceError, SplitsError
from wordnet_splits.base.files import append_text, write_text
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.benchmark.construct.population import NO_POSITIONS
from wordnet_splits.benchmark.construct.selection import Selection
from wordnet_splits.benchmark.recipe import Group
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.sources import Source, open_source, source_class

CHUNK = 128
AT_ONCE = 32
"""Images held in memory together: each may have 128 MiB."""
_LINE = re.compile("(.+)\t([0-9a-f]{64})\t([0-9]{1,20})")
ABSENT = (KeyError, FileNotFoundError, NotADirectoryError, type(None))
"""Exceptions that a source raises for an absent image."""


ReadImage = tuple[str, bytes | None, str]
"""Kind of problem or "", digest, and detail of an image."""


def unreadable_by_position(
    selections: Sequence[Selection], sources: Mapping[str, Source], *, local: bool
) -> dict[str, str]:
    """Return the sources whose positions do not identify images, with the reason."""
    reasons = {}
    for name, source in sources.items():
        is_used = any(s.group.source == name and s.awaiting is None for s in selections)
        if is_used and source.order != "published":
            if not local:
                raise SourceError(
                    f"cannot read images of {name}: {NO_POSITIONS}",
                    where=str(source.root),
                    hint="fetch the publisher's files, or leave this root out, or build with --local",
                )
            reasons[name] = NO_POSITIONS
    return reasons


def read_pixels(
    selections: Sequence[Selection],
    sources: Mapping[str, Source],
    datasets: Sources,
    *,
    keep: bool = False,
    workers: int = 1,
    journal: Path | None = None,
    progress: Progress | None = None,
) -> list[Problem]:
    """Read the selected images of roots and generators, and set their digests.

    Parameters
    ----------
    keep : compare the images with their digests, of embedded images, too, and keep those with problems.
    workers, journal, progress : as in `read_digests`; ``journal`` is a folder.

    Returns
    -------
    A problem for each image that is missing, unreadable or altered; without ``keep`` it is left out.
    """
    problems: list[Problem] = []
    batches: dict[str, tuple[Source, list[Selection]]] = {}
    for selection in selections:
        name = selection.group.source
        source = sources.get(name) or generated_source(selection.group, datasets)
        if source is not None and selection.awaiting is None:
            key = name if selection.group.noise is None else f"{name}-{selection.group.name}"
            batches.setdefault(key, (source, []))[1].append(selection)
    for key, (source, of_source) in sorted(batches.items()):
        classes = {i: c for s in of_source for c, ids in s.images.items() for i in ids}
        known = {i: d for s in of_source for i, d in s.digests.items()}
        if not keep and not source.rooted and known.keys() == classes.keys():
            continue  # embedded images, whose digests are in an inventory
        digests, bad = read_digests(
            source,
            classes,
            known,
            workers=workers,
            journal=journal / f"{key}.tsv" if journal else None,
            progress=progress,
        )
        problems += bad
        bad_ids = {p.image_id for p in bad}
        for selection in of_source:
            if keep:
                of_images = digests if selection.group.noise is not None else known
                selection.compared = frozenset(
                    i for ids in selection.images.values() for i in ids if i in digests and i in of_images
                )
            if not keep or selection.group.noise is not None:
                selection.images = {
                    c: [i for i in ids if i not in bad_ids] for c, ids in selection.images.items()
                }
                selection.digests = {i: digests[i] for ids in selection.images.values() for i in ids}
    return problems


def generated_source(group: Group, datasets: Sources) -> Source | None:
    """Return the opened source of an embedded or generated group, None for others."""
    if source_class(group.source, datasets).rooted:
        return None
    if group.noise is None:
        return open_source(group.source)
    return open_source(group.source, shape=group.noise.shape, seed=group.noise.seed)


def unexpected_names(sources: Mapping[str, Source], incomplete: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the names under each root that are not ids of its source, and how often each.

    The roots of ``incomplete`` sources are scanned, unless they have been: files with other names often
    explain why images are missing.
    """
    for name in sorted(sources.keys() & incomplete):
        if not sources[name].unexpected:
            with suppress(SplitsError):
                sources[name].count()
    return {n: dict(sorted(s.unexpected.items())) for n, s in sources.items() if s.unexpected}


def read_digests(
    source: Source,
    classes: Mapping[str, str],
    published: Mapping[str, bytes],
    *,
    workers: int = 1,
    journal: Path | None = None,
    progress: Progress | None = None,
) -> tuple[dict[str, bytes], list[Problem]]:
    """Read images and return their digests, and a problem for each absent, damaged or altered image.

    Parameters
    ----------
    classes : class id of each image to read, by image id.
    published : known 32-byte digests; an image with another digest is ``altered``.
    workers : number of processes; the result does not depend on it.
    journal : file with the digests of interrupted runs, used while image files keep their sizes and times;
        the caller removes it.

    Raises
    ------
    SourceError : the root, or a file with many images, cannot be read or is unsafe to read.
    OutputError : the journal cannot be written.
    """
    ids = sorted(classes)
    journalled = _Journal(journal, source, [i for i in ids if i not in published])
    digests = journalled.replay()
    # an altered image is read again: it may have been repaired since
    digests = {i: d for i, d in digests.items() if i in classes and published.get(i, d) == d}
    todo = [i for i in ids if i not in digests]
    problems: list[Problem] = []
    chunks = [todo[n : n + CHUNK] for n in range(0, len(todo), CHUNK)]
    task_name = f"reading {source.name}"
    journalled.begin(digests)
    with (
        (progress or Silent()).task(task_name, len(todo)) as task,
        closing(run_jobs(digest_chunk, ((source, c) for c in chunks), workers, name=chunk_name)) as done,
    ):
        for (_, chunk), outcomes in done:
            for image_id, (kind, digest, detail) in zip(chunk, outcomes, strict=True):
                if digest is not None:
                    digests[image_id] = digest
                if kind:
                    problems.append(Problem(kind, source.name, classes[image_id], image_id, detail))
            journalled.add(chunk, digests)
            task.advance(len(chunk))
    content = "pixels" if source.lossless else "bytes"
    detail = f"its {content} are not the published ones ({source.root})"
    for image_id, digest in published.items():
        if image_id in digests and digests[image_id] != digest:
            problems.append(Problem("altered", source.name, classes[image_id], image_id, detail))
            del digests[image_id]
    return digests, sorted(problems, key=lambda p: (p.source, p.image_id or "", p.kind))


def digest_chunk(job: tuple[Source, list[str]]) -> list[ReadImage]:
    """Read, check and digest some images of a source; runs in a worker."""
    source, ids = job
    parts = (ids[n : n + AT_ONCE] for n in range(0, len(ids), AT_ONCE))
    if source.rooted:
        return [outcome for part in parts for outcome in _read(source, part)]
    return [outcome for part in parts for outcome in _generated(source.name, tuple(part))]


def chunk_name(job: tuple[Source, list[str]]) -> str:
    """Return the name of a chunk for errors."""
    source, ids = job
    return f"{source.name} {ids[0]} to {ids[-1]}"


@lru_cache(maxsize=1 << 10)  # 25 kB each: several benchmarks have the same noise
def _generated(source: str, ids: tuple[str, ...]) -> list[ReadImage]:
    return _read(open_source(source), ids)


def _read(source: Source, ids: Sequence[str]) -> list[ReadImage]:
    try:
        raws = source.read(ids)
    except MissingImageError as error:
        if len(ids) > 1:
            return [outcome for image_id in ids for outcome in _read(source, [image_id])]
        kind = "missing" if isinstance(error.__cause__, ABSENT) else "unreadable"
        return [(kind, None, f"{error.what} (under {source.root})")]
    outcomes: list[ReadImage] = []
    for raw in raws:
        reason = None if isinstance(raw, np.ndarray) else source.check_image(raw)
        outcomes.append(("", source.digest(raw), "") if reason is None else ("unreadable", None, reason))
    return outcomes


class _Journal:
    """File of digests, written chunk by chunk, with the stamp of each image file in ``ids``."""

    def __init__(self, path: Path | None, source: Source, ids: Sequence[str]) -> None:
        self._path = path
        self._header = json.dumps({"source": source.name, "root": str(source.root), "layout": source.layout})
        self._stamps: dict[str, int] = {}
        if path is not None and source.root is not None and ids:
            from wordnet_splits.datasets.sources.image_set import stamps  # it reads all layouts of folders

            self._stamps = dict(zip(ids, stamps(source.root, pa.array(ids)).tolist(), strict=True))

    def replay(self) -> dict[str, bytes]:
        """Return the digests of an interrupted run over the same files, ignoring a torn last line."""
        if self._path is None or not self._path.is_file():
            return {}
        lines = self._path.read_text(encoding="utf-8", errors="replace").split("\n")
        if lines[0] != self._header:
            return {}
        return {
            match[1]: bytes.fromhex(match[2])
            for match in map(_LINE.fullmatch, lines[1:-1])
            if match and self._stamps.get(match[1], 0) == int(match[3])
        }

    def begin(self, digests: Mapping[str, bytes]) -> None:
        """Start the file again with the digests so far."""
        if self._path is not None:
            write_text(self._path, "".join([self._header + "\n", *self._lines(digests, digests)]))

    def add(self, ids: Iterable[str], digests: Mapping[str, bytes]) -> None:
        """Append the digests of a chunk."""
        if self._path is not None:
            append_text(self._path, "".join(self._lines(ids, digests)))

    def _lines(self, ids: Iterable[str], digests: Mapping[str, bytes]) -> Iterator[str]:
        return (f"{i}\t{digests[i].hex()}\t{self._stamps.get(i, 0)}\n" for i in ids if i in digests)
