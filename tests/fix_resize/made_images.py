"""Made images: photographs with the spectrum of natural ones, and random pixels, equal on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from fix_resize.resize import apply
from fix_resize.spec import Resize, Size, Step, get_spec
from fix_resize.windows import FILTERS
from wordnet_splits.base.digests import Pixels


def photo(number: int, height: int = 260, width: int = 290) -> Pixels:
    """Return a picture whose amplitudes fall as 1/f, (height, width, 3) uint8."""
    rng = np.random.default_rng(number)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    frequency[0, 0] = 1.0
    noise = np.fft.rfft2(rng.normal(size=(3, height, width))) / frequency
    plain = np.fft.irfft2(noise, s=(height, width))
    plain = (plain - plain.mean()) / plain.std() * 45 + 128
    return np.rint(plain).clip(0, 255).astype(np.uint8).transpose(1, 2, 0)


def save(folder: Path, pictures: dict[str, Pixels]) -> Path:
    """Write pictures as PNG files under their names, and return the folder."""
    for name, pixels in pictures.items():
        path = folder / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


def rendered(pictures: dict[str, Pixels], spec: str) -> dict[str, Pixels]:
    """Return pictures after a spec."""
    return {name: apply(get_spec(spec), Image.fromarray(pixels)) for name, pixels in pictures.items()}


class Case(NamedTuple):
    """A picture, the size wanted, and a filter."""

    picture: Pixels
    size: Size
    filter_name: str

    def step(self) -> Step:
        """The case as a step of a plan without a crop."""
        return Step(Resize(1, self.filter_name), self.picture.shape[:2], self.size, (0, 0), self.size)


def random_cases(number: int, seed: int, largest: int = 160) -> Iterator[Case]:
    """Yield cases over all filters, half of them pictures of extremes, where overshoot must clip."""
    rng = np.random.default_rng(seed)
    names = list(FILTERS)
    for i in range(number):
        height, width, tall, wide = (int(n) for n in np.exp(rng.uniform(0, np.log(largest), 4)).round())
        yield Case(
            random_picture(rng, height, width, extremes=i % 2 == 0), (tall, wide), names[i % len(names)]
        )


def random_picture(rng: np.random.Generator, height: int, width: int, *, extremes: bool = False) -> Pixels:
    """Return noise over all levels, or of black and white alone."""
    picture = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return np.where(picture > 127, np.uint8(255), np.uint8(0)) if extremes else picture
