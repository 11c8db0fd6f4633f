"""An output folder, read: its spec, its table, and the pixels of any image.

>>> out = open_output("lsun-fix")  # doctest: +SKIP
>>> out.spec_id, out.pixels("train/bedroom/0a3f...").shape  # doctest: +SKIP
('0a1b2c3d4e5f', (32, 32, 3))
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fix_resize.pipeline.formats import Kept, get_format
from fix_resize.pipeline.png import Pixels, decode_png
from fix_resize.pipeline.tables import IMAGE_SCHEMA, IMAGES
from fix_resize.spec import ResizeSpec
from wordnet_splits.digests import digest_pixels
from wordnet_splits.errors import DataError, MissingImageError, OutputError
from wordnet_splits.manifest.parquet import read_table

OUTPUT: Final = "output.json"
"""Written last: a folder that has it is finished."""

SCHEMA: Final = 1


class Output:
    """A finished output folder. Picklable; what it has read is not pickled along.

    Attributes
    ----------
    folder : where it is.
    about : the content of ``output.json``.
    spec : the resize spec it was built by.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = read_about(folder)
        self.spec = ResizeSpec.from_description(self.about["spec"])
        self._format = get_format(self.about["format"])
        self._table: pa.Table | None = None
        self._rows: dict[str, list[int]] | None = None

    @property
    def spec_id(self) -> str:
        """The id of the spec: outputs of one id hold equal pixels."""
        return self.spec.id

    @property
    def fingerprint(self) -> str:
        """SHA-256 over what is in the folder (`tables.IDENTITY`)."""
        return str(self.about["fingerprint"])

    @property
    def table(self) -> pa.Table:
        """The table of images (`tables.IMAGE_SCHEMA`), read when first asked for."""
        if self._table is None:
            table = read_table(self.folder / IMAGES, IMAGE_SCHEMA.names)
            self._table = table.replace_schema_metadata(None)
        return self._table

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, image_id: object) -> bool:
        return image_id in self._index()

    def pixels(self, image_id: str, source: str | None = None) -> Pixels:
        """Return a picture, (side, side, 3) uint8, after comparing it with its hash.

        Parameters
        ----------
        source : needed only where two sources have an image of that id.

        Raises
        ------
        MissingImageError : it is not in the output.
        DataError : it is damaged, or has been changed.
        """
        at = [n for n in self._index().get(image_id, ()) if source in (None, self._cell("source", n))]
        if not at:
            raise MissingImageError(
                f"image {image_id!r} is not in this output",
                where=str(self.folder),
                hint="missing.parquet and quarantine.parquet say what was left out, and why",
            )
        hashes = {self._cell("pixel_sha256", n) for n in at}
        if len(hashes) > 1:
            raise DataError(
                f"two images have the id {image_id!r}", hint="name the source", where=str(self.folder)
            )
        pixels = self._read(self._cell("file", at[0]), self._cell("row", at[0]))
        if digest_pixels(pixels) not in hashes:
            raise DataError(
                f"the pixels of {image_id!r} are not those that were built",
                where=str(self.folder / self._cell("file", at[0])),
                hint="'fix-resize verify' finds all such; build them again",
            )
        return pixels

    def pictures(self, file: str) -> Iterator[Kept]:
        """Yield what one file of the output holds, unchecked; OSError or ArrowException where it cannot."""
        return self._format.read(self.folder, file)

    def _read(self, file: str, row: int) -> Pixels:
        try:
            data = self._format.read_one(self.folder, file, row)
        except (OSError, pa.ArrowException, IndexError) as error:
            raise DataError("cannot be read", where=str(self.folder / file), hint="build it again") from error
        return decode_png(data, where=str(self.folder / file))

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


def open_output(folder: Path | str) -> Output:
    """Open a folder that ``fix-resize build`` has finished.

    Raises
    ------
    OutputError : it is none, or its build was interrupted.
    DataError : its description cannot be read.
    """
    return Output(Path(folder))


def read_about(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's ``output.json``. Raises as `open_output`."""
    path = folder / OUTPUT
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise OutputError(
            "is no finished output of fix-resize: it has no output.json",
            where=str(folder),
            hint="run the build again; it goes on from where it was",
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read: {error}", where=str(path), hint="build it again") from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise DataError(f"has not schema {SCHEMA}", where=str(path), hint="build it with this version")
    return about
