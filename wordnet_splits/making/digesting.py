"""Reading what a manifest names: digests of images under a root, and what is absent, damaged or altered.

Work is cut into chunks, done here or by worker processes, and journalled, so that Ctrl-C loses at most
the chunks in flight. What is wrong with one image is a problem of the list; what is wrong with the root
(a truncated pickle, an archive that leaves its folder) is an error and ends the reading.
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
"""What a source raises where an image is absent."""


ReadImage = tuple[str, bytes | None, str]
"""Of one image: problem kind or "", digest, detail."""


def read_digests(
    source: Source,
    classes: Mapping[str, str],
    known: Mapping[str, bytes],
    *,
    workers: int = 1,
    journal: Path | None = None,
    progress: Progress | None = None,
) -> tuple[dict[str, bytes], list[Problem]]:
    """Read every image and return the digests, and a problem for each image that is not as it should be.

    Parameters
    ----------
    classes : class id by image id: what to read.
    known : 32-byte digests known beforehand; other pixels under that id are ``altered``.
    workers : processes; the result does not depend on it.
    journal : file that remembers digests between interrupted runs, while the files that they are of keep
        their sizes and times; the caller removes it.

    Raises
    ------
    SourceError : the root, or a file of it that holds many images, cannot be read, or is unsafe to read.
    OutputError : the journal cannot be written.
    """
    ids = sorted(classes)
    written = _Journal(journal, source, [i for i in ids if i not in known])
    digests = written.replay()
    # an altered image is read again: it may have been repaired since
    digests = {i: d for i, d in digests.items() if i in classes and known.get(i, d) == d}
    todo = [i for i in ids if i not in digests]
    problems: list[Problem] = []
    chunks = [todo[n : n + CHUNK] for n in range(0, len(todo), CHUNK)]
    task_name = f"reading {source.name}"
    written.begin(digests)
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
            written.add(chunk, digests)
            task.advance(len(chunk))
    for image_id, digest in known.items():
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
    """Return what to call some images of a source."""
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
    """Digests on disk as soon as they are known; those of ``ids`` with the stamp of the file they are of."""

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
        """Start the file anew with what is known."""
        if self._path is not None:
            write_text(self._path, "".join([self._header + "\n", *self._lines(digests, digests)]))

    def add(self, ids: Iterable[str], digests: Mapping[str, bytes]) -> None:
        """Enter the digests of some images."""
        if self._path is not None:
            append_text(self._path, "".join(self._lines(ids, digests)))

    def _lines(self, ids: Iterable[str], digests: Mapping[str, bytes]) -> Iterator[str]:
        return (f"{i}\t{digests[i].hex()}\t{self._stamps.get(i, 0)}\n" for i in ids if i in digests)
