"""Reading what a manifest names: digests of images under a root, and what is absent, damaged or other.

Work is cut into chunks, done here or by worker processes, and journalled, so that Ctrl-C loses at most
the chunks in flight. What is wrong with one image is a problem of the list; what is wrong with the root
(a truncated pickle, an archive that leaves its folder) is an error and ends the reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from wordnet_splits.errors import MissingImageError, OutputError, Problem
from wordnet_splits.progress import Progress, Silent
from wordnet_splits.sources import Source
from wordnet_splits.workers import run_jobs

CHUNK = 128
DIGEST = re.compile("[0-9a-f]{64}")
ABSENT = (KeyError, FileNotFoundError, NotADirectoryError, type(None))
"""What a source meets where an image is not there at all."""


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
    """Read every image and return the digests, and a problem for each image that is not as it must be.

    Parameters
    ----------
    classes : class id by image id: what to read.
    known : 32-byte digests known beforehand; other pixels under that id are ``altered``.
    workers : processes; the result does not depend on it.
    journal : file that remembers digests between interrupted runs; the caller removes it.

    Raises
    ------
    SourceError : the root, or a file of it that holds many images, cannot be read, or is unsafe to read.
    OutputError : the journal cannot be written.
    """
    ids = sorted(classes)
    digests = _replay(journal, source)
    # an altered image is read again: it may have been mended since
    digests = {i: d for i, d in digests.items() if i in classes and known.get(i, d) == d}
    todo = [i for i in ids if i not in digests]
    problems: list[Problem] = []
    chunks = [todo[n : n + CHUNK] for n in range(0, len(todo), CHUNK)]
    what = f"reading {source.name}"
    written = _Journal(journal, source, digests)
    with (
        (progress or Silent()).task(what, len(todo)) as task,
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
    what = "pixels" if source.lossless else "bytes"
    return Problem(
        "altered", source.name, class_id, image_id, f"its {what} are not the published ones ({source.root})"
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
    try:
        raw = source.read([image_id])[0]
    except MissingImageError as error:
        kind = "missing" if isinstance(error.__cause__, ABSENT) else "unreadable"
        return kind, None, f"{error.what} (under {source.root})"
    reason = source.check_image(raw)
    if reason is not None:
        return "unreadable", None, reason
    return "", source.digest(raw), ""


def _header(source: Source) -> str:
    return json.dumps({"source": source.name, "root": str(source.root), "layout": source.layout})


def _replay(journal: Path | None, source: Source) -> dict[str, bytes]:
    """Return the digests of an interrupted run over the same root, ignoring a torn last line."""
    if journal is None or not journal.is_file():
        return {}
    lines = journal.read_text(encoding="utf-8", errors="replace").split("\n")
    if lines[0] != _header(source):
        return {}
    pairs = (line.split("\t") for line in lines[1:-1])
    return {p[0]: bytes.fromhex(p[1]) for p in pairs if len(p) == 2 and DIGEST.fullmatch(p[1])}


class _Journal:
    """Digests on disk as soon as they are known; a full disk is one clear error."""

    def __init__(self, path: Path | None, source: Source, done: Mapping[str, bytes]) -> None:
        self._path = path
        if path is not None:
            self._write("w", [_header(source) + "\n", *_lines(list(done), done)])

    def add(self, ids: Sequence[str], digests: Mapping[str, bytes]) -> None:
        self._write("a", _lines(ids, digests))

    def _write(self, mode: str, lines: Iterable[str]) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open(mode, encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            raise OutputError(
                f"cannot be written: {error.strerror or error}",
                where=str(self._path),
                hint="check that the folder may be written to and has space left",
            ) from None


def _lines(ids: Sequence[str], digests: Mapping[str, bytes]) -> list[str]:
    return [f"{i}\t{digests[i].hex()}\n" for i in ids if i in digests]
