"""scikit-learn's 1,797 handwritten digits, embedded so that one benchmark needs no download.

They are the test part of UCI's *Optical Recognition of Handwritten Digits* (Alpaydin and Kaynak 1998); the
licence stands beside the data.
"""

from __future__ import annotations

import hashlib
import lzma
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordnet_splits.errors import DataError

PATH = Path(__file__).parent.parent / "data" / "digits" / "digits.xz"
COUNT, SIDE = 1797, 8
RAW_SHA256 = "e1d88a0854e29e01d16358d2cd026aa8fc20dfc4cdb3fce004300857ea82aa70"  # of the unpacked bytes


@cache
def load_digits_pixels() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images and their labels in ``sklearn.datasets.load_digits`` order, read-only.

    Returns
    -------
    images : (1797, 8, 8) uint8, grey in [0, 255]: ``(v * 255 + 8) // 16`` of the published v in 0..16.
    labels : (1797,) uint8 in 0..9.

    Raises
    ------
    DataError : the embedded file is absent or not the one this package was made with.
    """
    try:
        raw = lzma.decompress(PATH.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise DataError("cannot be read", where=str(PATH), hint="install the package again") from error
    if hashlib.sha256(raw).hexdigest() != RAW_SHA256:
        raise DataError("is not the file this package ships", where=str(PATH), hint="install it again")
    values = np.frombuffer(raw, dtype=np.uint8)
    labels, grey = values[:COUNT], values[COUNT:].reshape(COUNT, SIDE, SIDE)
    images = ((grey.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)
    images.flags.writeable = False
    return images, labels
