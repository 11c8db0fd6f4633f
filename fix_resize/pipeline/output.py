"""Read an output folder: its spec, its table, and the pixels of any image.

>>> out = open_output("lsun-fix")  # doctest: +SKIP
>>> out.spec_id, out.pixels("train/bedroom/0a3f...").shape  # doctest: +SKIP
('0a1b2c3d4e5f', (32, 32, 3))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from fix_resize.pipeline.formats import StoredPicture, decode_png, get_format
from fix_resize.pipeline.tables import IMAGE_SCHEMA, IMAGES, OUTPUT
from fix_resize.spec import ResizeSpec
from wordnet_splits.base.digests import Pixels, digest_pixels
from wordnet_splits.base.errors import DataError, MissingImageError, OutputError
from wordnet_splits.base.parquet import parquet_file
from wordnet_splits.base.schemas import Count, Sha256, StrictModel, read_sealed

SCHEMA: Final = 2


class Description(StrictModel):
    """The content of ``output.json``.

    Attributes
    ----------
    name : the set, with ``@local`` if it was drawn from a root that is or may be incomplete.
    spec : description of the resize spec, with the versions of decoding and resizing libraries.
    format : how pictures are stored (`formats.FORMATS`).
    images, quarantined, missing : numbers of rows of the three tables.
    shortfalls : classes with fewer images than the draw requires (`wordnet_splits.making.images.Shortfall`).
    complete : whether no image is missing and no class has a shortfall.
    population : number of images from which each class of a local draw was drawn, by group.
    unexpected : number of files with unexpected names, by source.
    selection : fingerprint of the images to build.
    fingerprint : SHA-256 over the pictures (`tables.IDENTITY`).
    tables : SHA-256 of each table's file, including shards of pictures.
    provenance : versions of the tools.
    """

    schema_: Literal[2] = Field(alias="schema")
    name: str
    spec: dict[str, Any]
    format: Literal["png", "parquet"]
    images: Count
    quarantined: Count
    missing: Count
    shortfalls: list[dict[str, str | int]]
    complete: bool
    population: dict[str, dict[str, Count]]
    unexpected: dict[str, Count]
    selection: Sha256
    fingerprint: Sha256
    tables: dict[str, Sha256]
    provenance: dict[str, str]


class Output:
    """A finished output folder. Pickling drops its cached tables.

    Attributes
    ----------
    about : the content of ``output.json``.
    spec : the resize spec of the build.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = read_about(folder)
        self.spec = ResizeSpec.from_description(self.about.spec)
        self._format = get_format(self.about.format)
        self._table: pa.Table | None = None
        self._rows: dict[str, list[int]] | None = None

    @property
    def spec_id(self) -> str:
        """The id of the spec: outputs with the same id have the same pixels."""
        return self.spec.id

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the pictures (`tables.IDENTITY`)."""
        return self.about.fingerprint

    @property
    def table(self) -> pa.Table:
        """The table of images (`tables.IMAGE_SCHEMA`), read on first use."""
        if self._table is None:
            with open_images(self.folder) as file:
                self._table = file.read().replace_schema_metadata(None)
        return self._table

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, image_id: object) -> bool:
        return image_id in self._index()

    def pixels(self, image_id: str, source: str | None = None) -> Pixels:
        """Return a picture, (side, side, 3) uint8, after comparing it with its hash.

        Parameters
        ----------
        source : source of the image; required if two sources have an image with this id.

        Raises
        ------
        MissingImageError : the output has no such image.
        DataError : the picture is damaged or altered, or two sources have an image with this id.
        """
        rows = [n for n in self._index().get(image_id, ()) if source in (None, self._cell("source", n))]
        if not rows:
            raise MissingImageError(
                f"image {image_id!r} is not in this output",
                where=str(self.folder),
                hint="missing.parquet and quarantine.parquet list images that were left out, with reasons",
            )
        hashes = {self._cell("pixel_sha256", n) for n in rows}
        if len(hashes) > 1:
            raise DataError(
                f"two images have the id {image_id!r}", hint="pass source=", where=str(self.folder)
            )
        pixels = self._read(self._cell("file", rows[0]), self._cell("row", rows[0]))
        if digest_pixels(pixels) not in hashes:
            raise DataError(
                f"the pixels of {image_id!r} were altered after the build",
                where=str(self.folder / self._cell("file", rows[0])),
                hint="'fix-resize verify' lists all altered images; build them again",
            )
        return pixels

    def pictures(self, file: str) -> Iterator[StoredPicture]:
        """Yield the pictures of one file, unchecked; DataError if it cannot be read."""
        return self._format.read(self.folder, file)

    def _read(self, file: str, row: int) -> Pixels:
        return decode_png(self._format.read_one(self.folder, file, row), where=str(self.folder / file))

    def _cell(self, column: str, row: int) -> Any:
        return self.table[column][row].as_py()

    def _index(self) -> dict[str, list[int]]:
        if self._rows is None:
            self._rows = {}
            for row, image_id in enumerate(self.table["image_id"].to_pylist()):
                self._rows.setdefault(image_id, []).append(row)
        return self._rows

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None, "_rows": None}

    def __repr__(self) -> str:
        return f"Output({str(self.folder)!r}, spec={self.spec.name!r})"


@contextmanager
def open_images(folder: Path) -> Iterator[pq.ParquetFile]:
    """Yield an output's table of images; DataError if it cannot be read or has other columns."""
    path = folder / IMAGES
    with parquet_file(path) as file:
        if not file.schema_arrow.equals(IMAGE_SCHEMA):
            raise DataError("does not have the columns of a table of images", where=str(path))
        yield file


def open_output(folder: Path | str) -> Output:
    """Open the output folder of a finished build.

    Raises
    ------
    OutputError : the folder is not an output, or its build was interrupted.
    DataError : ``output.json`` was altered or cannot be read.
    """
    return Output(Path(folder))


def read_about(folder: Path) -> Description:
    """Return the content of a folder's ``output.json``. Raises as `open_output`."""
    path = folder / OUTPUT
    if not path.exists():
        raise OutputError(
            "is not a finished output of fix-resize: it has no output.json",
            where=str(folder),
            hint="run the build again; it continues where it stopped",
        )
    return read_sealed(path, Description, hint="build it again")
