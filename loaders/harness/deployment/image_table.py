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
from wordnet_splits.metrics.conformal import BatchGuarantee

from .shipped_detector import ShippedDetector, in_batch

SCORED = "image confidence:float32 p_value:float64 in_distribution:bool"
IMAGES = schema_of(f"{SCORED} problem")
IN_BATCH = schema_of(f"{SCORED} adjusted_p:float64 outlier:bool problem")


@dataclass(frozen=True)
class FileScore:
    """The score of a file; if the file cannot be scored, nulls and the ``problem``.

    Undecodable bytes of the file name are written as ``\\xff``.
    """

    image: str
    confidence: float | None = None
    p_value: float | None = None
    in_distribution: bool | None = None
    adjusted_p: float | None = None
    outlier: bool | None = None
    problem: str | None = None


@dataclass(frozen=True)
class ImageTable(Tabular):
    """The scores of files, in order.

    Attributes
    ----------
    passed_over : files of folders without the extension of an image, and links to folders.
    batch : the guarantee of the images flagged in this batch, None unless a false-discovery rate was given.
    """

    scores: tuple[FileScore, ...]
    passed_over: tuple[str, ...]
    batch: BatchGuarantee | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return IMAGES if self.batch is None else IN_BATCH

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
        return [{name: getattr(score, name) for name in self.schema.names} for score in self.scores]

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        return pa.Table.from_pylist(self.rows(), schema=self.schema)

    def write(self, path: str | Path) -> None:
        """Write the rows as ``.csv`` or ``.parquet``."""
        write_table_file(self.to_table(), Path(path))


def score_files(
    detector: ShippedDetector,
    paths: Sequence[str | Path],
    *,
    batch_size: int | None = None,
    progress: Progress | None = None,
    fdr: float | None = None,
    dependent: bool = False,
) -> ImageTable:
    """Score image files, and the images of folders and of the folders inside them, by name.

    Parameters
    ----------
    batch_size, fdr, dependent : as of `ShippedDetector.score`; the batch is all images of the paths.

    Raises
    ------
    SourceError : a path does not exist, or a folder cannot be listed. DataError : the paths hold zero images,
        or a false-discovery rate is out of range or too small for the calibration images.
    """
    guarantee = detector.batch_guarantee(fdr, dependent)
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
    if guarantee is not None:
        guarantee.least(len(images))
    scores = []
    with (progress or Silent()).task("images", len(images)) as task:
        for score in detector.stream(images, batch_size=batch_size):
            scores.append(score)
            task.advance()
    rows = (
        FileScore(_as_text(image), problem=score.what)
        if isinstance(score, SplitsError)
        else FileScore(_as_text(image), **score._asdict())
        for image, score in zip(images, in_batch(scores, guarantee), strict=True)
    )
    return ImageTable(tuple(rows), tuple(map(_as_text, passed_over)), guarantee)


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
