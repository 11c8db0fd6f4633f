"""The scores of image files as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import DataError, SourceError, SplitsError
from wordnet_splits.base.parquet import schema_of, write_table_file
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.untrusted import unreadable
from wordnet_splits.datasets.sources.layouts.folders import is_image

from .shipped_detector import BATCH, ShippedDetector

IMAGES = schema_of("image confidence:float32 p_value:float64 in_distribution:bool problem")


@dataclass(frozen=True)
class FileScore:
    """The score of a file; if the file cannot be scored, nulls and the ``problem``.

    Undecodable bytes of the file name are written as ``\\xff``.
    """

    image: str
    confidence: float | None = None
    p_value: float | None = None
    in_distribution: bool | None = None
    problem: str | None = None


@dataclass(frozen=True)
class ImageTable(Tabular):
    """The scores of files, in order.

    Attributes
    ----------
    passed_over : files of folders without the extension of an image, and links to folders.
    """

    scores: tuple[FileScore, ...]
    passed_over: tuple[str, ...]

    @property
    def problems(self) -> tuple[FileScore, ...]:
        """The files that could not be scored."""
        return tuple(score for score in self.scores if score.problem is not None)

    @property
    def flagged(self) -> int:
        """The number of images that are not in-distribution."""
        return sum(score.in_distribution is False for score in self.scores)

    def rows(self) -> Sequence[dict[str, Any]]:
        """Return a row for each file."""
        return [dict(vars(score)) for score in self.scores]

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        return pa.Table.from_pylist(self.rows(), schema=IMAGES)

    def write(self, path: str | Path) -> None:
        """Write the rows as ``.csv`` or ``.parquet``."""
        write_table_file(self.to_table(), Path(path))


def score_files(
    detector: ShippedDetector,
    paths: Sequence[str | Path],
    *,
    batch_size: int = BATCH,
    progress: Progress | None = None,
) -> ImageTable:
    """Score image files, and the images of folders and of the folders inside them, by name.

    Raises
    ------
    SourceError : a path does not exist, or a folder cannot be listed. DataError : the paths hold zero images.
    """
    images: list[str] = []
    passed_over: list[str] = []
    for path in map(Path, paths):
        if not path.is_dir():
            if not path.exists():
                raise SourceError("no such file or folder", where=str(path))
            images.append(str(path))
            continue
        for file in _files(path):
            (images if is_image(file) else passed_over).append(file)
    if not images:
        names = f": {len(passed_over):,} files have other extensions" if passed_over else ""
        raise DataError(f"there are no images{names}", where=", ".join(map(str, paths)))
    scores = []
    with (progress or Silent()).task("images", len(images)) as task:
        outcomes = detector.stream(images, batch_size=batch_size)
        for image, outcome in zip(images, outcomes, strict=True):
            if isinstance(outcome, SplitsError):
                scores.append(FileScore(_as_text(image), problem=outcome.what))
            else:
                scores.append(FileScore(_as_text(image), *outcome))
            task.advance()
    return ImageTable(tuple(scores), tuple(map(_as_text, passed_over)))


def _as_text(path: str) -> str:
    """Return a path as text, with undecodable bytes as ``\\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _files(folder: Path) -> Iterator[str]:
    """Yield the files of a folder and its subfolders, and links to folders, which are not followed."""

    def refuse(error: OSError) -> None:
        raise unreadable("the folder", str(error.filename or folder), error) from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        yield from (str(Path(parent, name)) for name in sorted(links))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (str(Path(parent, name)) for name in sorted(names) if not name.startswith("."))
