"""Random pictures and sizes for the tests of bit-exactness, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fix_resize.spec import Resize, Size, Step
from fix_resize.windows import FILTERS
from wordnet_splits.base.digests import Pixels


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
