"""Decode images for resizing, by the rules of `wordnet_splits.sources.pixels`, or quarantine them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from wordnet_splits.sources import pixels
from wordnet_splits.sources.pixels import MAX_PIXELS as MAX_PIXELS
from wordnet_splits.sources.pixels import Decoded as Decoded
from wordnet_splits.sources.pixels import Reason, UndecodableImageError

COLOUR_RULE: Final = "rgb-1"
"""Name of the rules of `wordnet_splits.sources.pixels.RULES`, which is part of every spec's id: changed rules
require a new name."""

INVERTED_RULE: Final = "rgb-1-inverted"
"""The rules above, then 255 minus every value: dark on light becomes light on dark."""

REASONS: Final[Mapping[str, Reason]] = {
    **pixels.REASONS,
    "aspect": Reason(
        f"so long and thin that a stage would have more than {MAX_PIXELS} pixels",
        "leave it out, or crop it first",
    ),
}


class QuarantinedImageError(UndecodableImageError):
    """An image is quarantined; ``reason`` is a key of `REASONS`."""

    kind = "quarantined-image"
    reasons: ClassVar[Mapping[str, Reason]] = REASONS


def decode(
    data: bytes, where: str | None = None, *, admit: Callable[[int, int], object] | None = None
) -> Decoded:
    """Decode the bytes of a file to RGB, as `wordnet_splits.sources.pixels.decode`.

    Parameters
    ----------
    data : content of the file.
    where : id or path of the image, for errors.
    admit : called with height and width from the header, before pixels are decoded; it may raise
        QuarantinedImageError for unusable sizes, as `fix_resize.spec.plan` does.

    Raises
    ------
    QuarantinedImageError : the image cannot be used.
    SplitsError : Pillow is configured to accept truncated files.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of metadata and size, which the rules cover
            return pixels.decode(data, where, admit=admit)
    except QuarantinedImageError:
        raise
    except UndecodableImageError as error:
        raise QuarantinedImageError(error.reason, detail=error.detail, where=where) from error
