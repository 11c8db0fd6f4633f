"""SHA-256 digests of images and JSON values, and random draws by a stable hash of image ids.

A draw has no generator or state, and does not depend on the order of the ids. The sampling key of an image
is ``blake2b`` over the draw's name, the seed and the image's identity; images are taken in ascending order of
keys, ties by id. The same ids give the same draw on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordnet_splits.base.errors import RecipeError, SourceError

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
    rgb = as_rgb(image)
    state = hashlib.sha256(np.asarray(rgb.shape[:2], dtype="<u4").tobytes())
    state.update(rgb.data)
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


SEPARATOR = "\x1f"


def sampling_key(draw: str, seed: int, source: str, class_id: str, image_id: str = "") -> bytes:
    """Return the 16-byte sampling key of an image, or of a class when ``image_id`` is empty."""
    text = SEPARATOR.join([draw, str(seed), source, class_id, image_id])
    return blake2b(text.encode(), digest_size=16).digest()


def order_images(draw: str, seed: int, source: str, class_id: str, image_ids: Iterable[str]) -> list[str]:
    """Return the image ids of a class in the order of a draw."""
    prefix = blake2b(SEPARATOR.join([draw, str(seed), source, class_id, ""]).encode(), digest_size=16)

    def sort_key(image_id: str) -> tuple[bytes, str]:
        state = prefix.copy()
        state.update(image_id.encode())
        return state.digest(), image_id

    return sorted(image_ids, key=sort_key)


def order_classes(draw: str, seed: int, source: str, class_ids: Iterable[str]) -> list[str]:
    """Return class ids in the order of a draw."""
    return sorted(class_ids, key=lambda c: (sampling_key(draw, seed, source, c), c))


def draw_classes(draw: str, seed: int, source: str, class_ids: Iterable[str], count: int) -> list[str]:
    """Return the ``count`` classes drawn from ``class_ids``.

    Raises
    ------
    RecipeError : there are fewer than ``count`` classes.
    """
    candidates = order_classes(draw, seed, source, class_ids)
    if count > len(candidates):
        raise RecipeError(
            f"{count} classes to be drawn from {len(candidates)} candidates",
            where=source,
            hint="ask for fewer, or widen the rule",
        )
    return candidates[:count]


def share_total(total: int, draw: str, seed: int, source: str, class_ids: Sequence[str]) -> dict[str, int]:
    """Return each class's part of ``total`` images: equal shares, the rest one each by smallest class key."""
    share, remainder = divmod(total, len(class_ids))
    one_more = set(order_classes(draw, seed, source, class_ids)[:remainder])
    return {c: share + (c in one_more) for c in class_ids}


def as_rgb(pixels: NDArray[Any]) -> Pixels:
    """Return uint8 (h, w, 3) from uint8 (h, w), (h, w, 1) or (h, w, 3); grey is repeated."""
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise SourceError(f"pixels must be uint8 (h, w, 3) or (h, w), not {pixels.dtype} {pixels.shape}")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] != 3:
        raise SourceError(f"pixels must have 1 or 3 channels, not {pixels.shape[2]}")
    return np.ascontiguousarray(pixels)
