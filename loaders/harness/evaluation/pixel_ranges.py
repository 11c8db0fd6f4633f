"""Pixel ranges of a user's sets, to detect sets that are scaled differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor

from wordnet_splits.base.errors import DataError

LARGEST_NORMALISED = 16.0
"""Largest value of images in [0, 1] after normalisation by a standard deviation of at least 1/16."""
MIN_SHARE = 0.05
"""Smallest share of images of a scale that gives the set this scale."""
OVERSHOOT = 1.25
"""Largest value that interpolation gives images in [0, 1]; images beyond it are of another scale."""
MIN_SPREAD = 0.5
"""Smallest range of values from which the scale of a set is inferred; constant images fit any scale."""


@dataclass
class PixelRange:
    """The range of a set's pixels.

    Attributes
    ----------
    images : number of images. low, high : their least and greatest values.
    unit : images in [0, 1] with a fraction. unscaled : images from 0 to more than `LARGEST_NORMALISED`.
    rescaled : images with a negative value, or one above `OVERSHOOT` that is not unscaled.
    """

    images: int = 0
    low: float = 0.0
    high: float = 0.0
    unit: int = 0
    unscaled: int = 0
    rescaled: int = 0

    def add(self, images: Tensor) -> None:
        """Add a batch (n, 3, h, w); arrays of other shapes are ignored."""
        if images.ndim != 4 or not images.numel():
            return
        pixels = images.detach().flatten(1)
        low, high = pixels.amin(1), pixels.amax(1)
        fraction = ((pixels > 0) & (pixels < 1)).any(1)
        least, greatest = float(low.min()), float(high.max())
        self.low = least if not self.images else min(self.low, least)
        self.high = greatest if not self.images else max(self.high, greatest)
        self.images += len(images)
        self.unit += int(((low >= 0) & (high <= 1) & fraction).sum())
        self.unscaled += int(((low >= 0) & (high > LARGEST_NORMALISED)).sum())
        self.rescaled += int(((low < 0) | ((high > OVERSHOOT) & (high <= LARGEST_NORMALISED))).sum())

    def __str__(self) -> str:
        return f"{self.low:.3g} to {self.high:.3g}"

    @property
    def is_unscaled(self) -> bool:
        """Whether pixels are from 0 to 255."""
        return self.unscaled > MIN_SHARE * self.images

    @property
    def is_unit(self) -> bool:
        """Whether pixels are from 0 to 1."""
        return self.unit > MIN_SHARE * self.images

    @property
    def is_normalised(self) -> bool:
        """Whether pixels are around 0, as a mean and a standard deviation make them, or scaled otherwise."""
        return 2 * self.rescaled > self.images and self.high <= LARGEST_NORMALISED


def refuse_other_scales(ranges: Mapping[str, PixelRange]) -> None:
    """Raise DataError where some images are from 0 to 255 and others are scaled, in one set or in two."""
    unscaled = next((name for name, of_set in ranges.items() if of_set.is_unscaled), None)
    scaled = next((name for name, of_set in ranges.items() if of_set.is_unit or of_set.is_normalised), None)
    if unscaled is None or scaled is None:
        return
    message = (
        f"some images of {unscaled} hold pixels of 0 to 255 and others of 0 to 1"
        if scaled == unscaled
        else f"pixels are {ranges[unscaled]} in {unscaled} and {ranges[scaled]} in {scaled}"
    )
    raise DataError(message, where="sets", hint="scale and normalise all images in the same way")


def range_notes(ranges: Mapping[str, PixelRange]) -> Iterator[str]:
    """Yield a note if some sets are normalised, or scaled, and others have pixels from 0 to 1."""
    normalised = [name for name, of_set in ranges.items() if of_set.is_normalised]
    unit = [
        name
        for name, of_set in ranges.items()
        if of_set.images and of_set.low >= 0 and of_set.high <= 1 and of_set.high - of_set.low >= MIN_SPREAD
    ]
    if normalised and unit:
        cells = "; ".join(f"{ranges[name]} in {name}" for name in (*normalised, *unit))
        yield (
            f"some sets are normalised or scaled and others have pixels from 0 to 1 ({cells}): this alone "
            "may separate them"
        )
