"""Digests of the images under a root, and problems of absent, damaged or altered images.

Work is cut into chunks, done here or by worker processes, and journalled, so that Ctrl-C loses at most
the chunks in flight. A fault of an image is a problem in the result; a fault of the root (a truncated pickle,
an archive that leaves its folder) is an error and ends the reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path

import pyarrow as pa

from wordnet_splits.base.errors import MissingImageError, Problem
from wordnet_splits.base.files import append_text, write_text
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.sources import Source, open_source
from wordnet_splits.sources.stamps import stamps

CHUNK = 128
_LINE = re.compile("(.+)\t([0-9a-f]{64})\t([0-9]{1,20})")
ABSENT = (KeyError, FileNotFoundError, NotADirectoryError, type(None))
"""Exceptions that a source raises for an absent image."""


ReadImage = tuple[str, bytes | None, str]
"""Kind of problem or "", digest, and detail of an image."""


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
    SourceError : the root, or a file of it that holds many images, cannot be read, or is unsafe to read.
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
    for image_id, digest in published.items():
        if image_id in digests and digests[image_id] != digest:
            problems.append(_altered(source, classes[image_id], image_id))
            del digests[image_id]
    return digests, sorted(problems, key=lambda p: (p.source, p.image_id or "", p.kind))


def _altered(source: Source, class_id: str, image_id: str) -> Problem:
    content = "pixels" if source.lossless else "bytes"
    return Problem(
        "altered",
        source.name,
        class_id,
        image_id,
        f"its {content} are not the published ones ({source.root})",
    )


def digest_chunk(job: tuple[Source, list[str]]) -> list[ReadImage]:
    """Read, check and digest some images of a source; runs in a worker."""
    source, ids = job
    return [_outcome(source, image_id) for image_id in ids]


def chunk_name(job: tuple[Source, list[str]]) -> str:
    """Return the name of a chunk for errors."""
    source, ids = job
    return f"{source.name} {ids[0]} to {ids[-1]}"


def _outcome(source: Source, image_id: str) -> ReadImage:
    return _read(source, image_id) if source.rooted else _generated(source.name, image_id)


@lru_cache(maxsize=1 << 17)  # two hundred bytes each: several benchmarks have the same noise
def _generated(source: str, image_id: str) -> ReadImage:
    return _read(_opened(source), image_id)


@cache
def _opened(source: str) -> Source:
    return open_source(source)


def _read(source: Source, image_id: str) -> ReadImage:
    try:
        raw = source.read([image_id])[0]
    except MissingImageError as error:
        kind = "missing" if isinstance(error.__cause__, ABSENT) else "unreadable"
        return kind, None, f"{error.what} (under {source.root})"
    reason = source.check_image(raw)
    if reason is not None:
        return "unreadable", None, reason
    return "", source.digest(raw), ""


class _Journal:
    """File of digests, written chunk by chunk; those of ``ids`` have the stamp of their image file."""

    def __init__(self, path: Path | None, source: Source, ids: Sequence[str]) -> None:
        self._path = path
        self._header = json.dumps({"source": source.name, "root": str(source.root), "layout": source.layout})
        self._stamps: dict[str, int] = {}
        if path is not None and source.root is not None and ids:
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
