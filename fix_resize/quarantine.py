"""Why an image cannot be used: each reason has a name, one sentence, and what to do."""

from __future__ import annotations

from typing import Final, NamedTuple

from wordnet_splits.errors import SourceError

MAX_PIXELS: Final = 89_478_485
"""Pixels that a picture may hold, as stored or between two stages: where Pillow starts to warn of a bomb."""


class Reason(NamedTuple):
    """What is wrong with an image, and what to do about it."""

    what: str
    hint: str


REASONS: Final[dict[str, Reason]] = {
    "empty": Reason("the file holds no bytes", "copy it again from its source"),
    "unidentified": Reason(
        "not an image, or of a format that is not read here", "see fix_resize.decode.FORMATS"
    ),
    "truncated": Reason("the file ends before the image does", "copy it again from its source"),
    "corrupt": Reason("the file cannot be decoded", "copy it again from its source"),
    "bomb": Reason(
        f"it would decode to more than {MAX_PIXELS} pixels", "such a file is an attack or an error"
    ),
    "mode": Reason(
        "its pixels have no stated conversion to 8-bit RGB", "convert it to RGB by a rule of your own"
    ),
    "aspect": Reason(
        f"so long and thin that a stage would hold more than {MAX_PIXELS} pixels",
        "leave it out, or crop it first",
    ),
}


class QuarantinedImageError(SourceError):
    """An image that is set aside, with the reason, and never silently skipped.

    Parameters
    ----------
    reason : a key of `REASONS`.
    detail : what the decoder said, or the figure that was exceeded.
    where : the image's id or path.
    """

    kind = "quarantined-image"

    def __init__(self, reason: str, *, detail: str = "", where: str | None = None) -> None:
        self.reason = reason
        self.detail = detail
        what, hint = REASONS[reason]
        super().__init__(f"{what}: {detail}" if detail else what, where=where, hint=hint)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.reason, self.detail, self.where)


def _rebuild(reason: str, detail: str, where: str | None) -> QuarantinedImageError:
    return QuarantinedImageError(reason, detail=detail, where=where)
