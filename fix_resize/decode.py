"""Decode for resizing: the rules of `wordnet_splits.sources.pixels`, or quarantine with a reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from wordnet_splits.sources import pixels
from wordnet_splits.sources.pixels import MAX_PIXELS as MAX_PIXELS
from wordnet_splits.sources.pixels import Decoded as Decoded
from wordnet_splits.sources.pixels import Reason, UndecodableImageError

COLOUR_RULE: Final = "rgb-1"
"""Name of the rules of `wordnet_splits.sources.pixels.RULES`; part of every spec's id, so a conversion that
changes is a new name."""

INVERTED_RULE: Final = "rgb-1-inverted"
"""The rules above, and then 255 less every value: dark on light becomes light on dark."""

REASONS: Final[Mapping[str, Reason]] = {
    **pixels.REASONS,
    "aspect": Reason(
        f"so long and thin that a stage would hold more than {MAX_PIXELS} pixels",
        "leave it out, or crop it first",
    ),
}


class QuarantinedImageError(UndecodableImageError):
    """An image that is set aside with a reason, never silently skipped; ``reason`` is a key of `REASONS`."""

    kind = "quarantined-image"
    reasons: ClassVar[Mapping[str, Reason]] = REASONS


def decode(
    data: bytes, where: str | None = None, *, admit: Callable[[int, int], object] | None = None
) -> Decoded:
    """Decode a file's bytes to RGB, as `wordnet_splits.sources.pixels.decode`.

    Parameters
    ----------
    data : the whole file.
    where : the image's id or path, for the error.
    admit : called with the height and width that the header announces, before any pixel is decoded; raises
        QuarantinedImageError for a size that cannot be used (`fix_resize.spec.plan` with its spec does).

    Raises
    ------
    QuarantinedImageError : the image cannot be used; its ``reason`` is a key of `REASONS`.
    SplitsError : Pillow is set, in this process, to fill in truncated files.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's remarks on metadata and size; the rules cover both
            return pixels.decode(data, where, admit=admit)
    except QuarantinedImageError:
        raise
    except UndecodableImageError as error:
        raise QuarantinedImageError(error.reason, detail=error.detail, where=where) from error
