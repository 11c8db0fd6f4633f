"""Images of one part of a manifest in a folder that ``fix-resize`` built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from PIL import Image

from wordnet_splits.base.digests import Pixels
from wordnet_splits.packed.reading import RowNumbers, png, stack

if TYPE_CHECKING:
    from fix_resize.pipeline.output import Output

DESCRIPTION = "output.json"


def is_resized(folder: Path) -> bool:
    """Return whether a folder is a finished output of ``fix-resize``."""
    return (folder / DESCRIPTION).is_file()


def open_resized(folder: Path) -> Output:
    """Open an output of ``fix-resize``; OutputError or DataError where it cannot be read."""
    from fix_resize.pipeline.output import open_output

    return open_output(folder)


class ResizedImages:
    """Images in an output folder, by row of ``ids``; each is compared with its pixel hash on reading.

    Parameters
    ----------
    output : the opened folder, whose spec is that of the part's view.
    source : the source of all the images.
    ids : image_id of every row.
    """

    def __init__(self, output: Output, source: str, ids: pa.Array) -> None:
        self._output = output
        self._source = source
        self._ids = ids

    def picture(self, row: int) -> Image.Image:
        """Return one image, RGB; DataError if its pixels were altered."""
        return Image.fromarray(self._output.pixels(self._id(row), self._source))

    def pictures(self, rows: RowNumbers) -> Iterator[Image.Image]:
        """Yield some images, RGB. Raises as `picture`."""
        return (self.picture(row) for row in rows.tolist())

    def pixels(self, rows: RowNumbers) -> Pixels:
        """Return some images, uint8 (n, 3, h, w). Raises as `picture`."""
        ids = [self._id(row) for row in rows.tolist()]
        return stack([np.asarray(self._output.pixels(i, self._source)) for i in ids], ids)

    def encoded(self, row: int) -> tuple[bytes, str]:
        """Return an image as a PNG file, and its extension. Raises as `picture`."""
        return png(self.picture(row)), ".png"

    def _id(self, row: int) -> str:
        return str(self._ids[row].as_py())
