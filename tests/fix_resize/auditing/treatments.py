"""Ways to reduce a picture to 32 pixels, sound and broken, and the correct verdict on each."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np
from PIL import Image

from fix_resize.resize import apply
from fix_resize.spec import get_spec
from wordnet_splits.base.digests import Pixels


@dataclass(frozen=True, eq=False)
class Photo:
    """A picture at its original size; the first stage of `fix` is computed once for all treatments."""

    image: Image.Image

    @cached_property
    def square(self) -> Image.Image:
        """The central square at 256 x 256 pixels."""
        fix = get_spec("fix")
        return Image.fromarray(apply(replace(fix, stages=fix.stages[:-1]), self.image))


Reduce = Callable[[Photo], Pixels]


class Treatment(NamedTuple):
    """A way to reduce pictures, and the correct verdict on a set of them."""

    reduce: Reduce
    verdict: str


class Mixture(NamedTuple):
    """A set in which, of every ``every`` pictures, ``number`` have one treatment and the rest another."""

    number: int
    every: int
    treatment: str
    rest: str


def last_stage(resample: Image.Resampling, photo: Photo) -> Pixels:
    """Return `fix` with another of Pillow's filters in its last stage."""
    return np.asarray(photo.square.resize((32, 32), resample))


def opencv(name: str, photo: Photo) -> Pixels:
    """Return `fix` with one of OpenCV's interpolations in its last stage."""
    import cv2

    return np.asarray(cv2.resize(np.asarray(photo.square), (32, 32), interpolation=getattr(cv2, name)))


def direct(resample: Image.Resampling, photo: Photo) -> Pixels:
    """Return the central square of a picture, reduced in one stage."""
    image = photo.image
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = image.crop((left, top, left + side, top + side))
    return np.asarray(square.resize((32, 32), resample))


def blurred(sigma: float, reduce: Reduce, photo: Photo) -> Pixels:
    """Return a rendering after a Gaussian blur of ``sigma`` pixels."""
    offsets = np.arange(-4, 5)
    weights = np.exp(-(offsets**2) / (2 * sigma**2))
    weights /= weights.sum()
    values = np.pad(reduce(photo).astype(np.float64), ((4, 4), (4, 4), (0, 0)), mode="reflect")
    for axis in (0, 1):
        values = np.lib.stride_tricks.sliding_window_view(values, len(offsets), axis) @ weights
    return np.rint(values).clip(0, 255).astype(np.uint8)


def as_jpeg(reduce: Reduce, photo: Photo) -> Pixels:
    """Return a rendering after JPEG of quality 75."""
    buffer = io.BytesIO()
    Image.fromarray(reduce(photo)).save(buffer, "JPEG", quality=75)
    with Image.open(buffer) as decoded:
        return np.asarray(decoded)


FILTERS = Image.Resampling
fix, nearest = partial(last_stage, FILTERS.BILINEAR), partial(last_stage, FILTERS.NEAREST)
TREATMENTS: Final[dict[str, Treatment]] = {
    "fix": Treatment(fix, "clean"),
    "box": Treatment(partial(last_stage, FILTERS.BOX), "filtered"),
    "hamming": Treatment(partial(last_stage, FILTERS.HAMMING), "filtered"),
    "bicubic": Treatment(partial(last_stage, FILTERS.BICUBIC), "filtered"),
    "Lanczos": Treatment(partial(last_stage, FILTERS.LANCZOS), "filtered"),
    "INTER_AREA": Treatment(partial(opencv, "INTER_AREA"), "filtered"),
    "Lanczos in one stage": Treatment(partial(direct, FILTERS.LANCZOS), "filtered"),
    "fix, blurred by 1": Treatment(partial(blurred, 1.0, fix), "filtered"),
    "fix, JPEG 75": Treatment(partial(as_jpeg, fix), "altered"),
    "nearest": Treatment(nearest, "aliased"),
    "nearest in one stage": Treatment(partial(direct, FILTERS.NEAREST), "aliased"),
    "nearest, blurred by .58": Treatment(partial(blurred, 0.58, nearest), "aliased"),
    "nearest, blurred by .8": Treatment(partial(blurred, 0.8, nearest), "aliased"),
    "INTER_NEAREST": Treatment(partial(opencv, "INTER_NEAREST"), "aliased"),
    "INTER_LINEAR": Treatment(partial(opencv, "INTER_LINEAR"), "aliased"),
    "INTER_CUBIC": Treatment(partial(opencv, "INTER_CUBIC"), "aliased"),
}
PART_NEAREST: Final = "30% nearest, the rest fix"
MIXTURES: Final[dict[str, Mixture]] = {
    PART_NEAREST: Mixture(3, 10, "nearest", "fix"),
    "half nearest, half fix blurred by 1": Mixture(1, 2, "nearest", "fix, blurred by 1"),
}
