"""SHA-256 digests of images and of JSON values."""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
"""uint8 values of images; each use states the shape."""

DIGEST_BYTES = 32


def digest_pixels(image: Pixels) -> bytes:
    """Return SHA-256 of height and width (uint32 little-endian) and the C-order uint8 RGB pixels.

    For sources stored without loss: all lossless copies of an image (pickle, PNG, Parquet) have this digest.

    Parameters
    ----------
    image : (h, w, 3) RGB or (h, w) grey, uint8 in [0, 255]; grey is repeated to RGB first.

    Returns
    -------
    32 bytes.
    """
    if image.dtype != np.uint8:
        raise TypeError(f"pixels must be uint8, not {image.dtype}")
    if image.ndim == 2:
        image = np.repeat(image[:, :, None], 3, axis=2)
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"pixels must be (h, w) or (h, w, 3), not {image.shape}")
    state = hashlib.sha256(np.asarray(image.shape[:2], dtype="<u4").tobytes())
    state.update(np.ascontiguousarray(image).data)
    return state.digest()


def digest_file(data: bytes) -> bytes:
    """Return SHA-256 of a file's bytes, for sources stored as JPEG. 32 bytes."""
    return hashlib.sha256(data).digest()


def digest_json(value: object) -> str:
    """Return the SHA-256, in hex, of a JSON value in its canonical form."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: object) -> str:
    """Return a value as JSON in its canonical form: keys sorted, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
