"""Gaussian and uniform noise as sources: an id says all there is to know, reading computes the pixels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.errors import SourceError
from wordnet_splits.sources import noise_stream as noise
from wordnet_splits.sources.base import Raw, Row, Source, as_rgb, register

PARAMETERS = frozenset({"shape", "seed"})


class NoiseSource(Source):
    """Noise of one distribution.

    It holds no images of its own (a scan is empty): a recipe asks for a number of them, and :meth:`ids` names
    them. Any such id can be read, whatever shape and seed the source was opened with.

    Attributes
    ----------
    shape : (height, width, channels) of the images that ``ids`` names, None where none was given; one channel
        is repeated to RGB on reading.
    seed : their seed.
    """

    splits: ClassVar[tuple[str, ...]] = ("all",)
    lossless: ClassVar[bool] = True
    rooted: ClassVar[bool] = False
    looks_for: ClassVar[str] = "nothing: it is generated"

    def __init__(self, shape: tuple[int, int, int] | None, seed: int) -> None:
        super().__init__(None, "generated")
        self.shape = shape
        self.seed = seed

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return ``generated``, the only layout."""
        return "generated" if root is None else None

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> NoiseSource:
        """Build the source from ``shape`` [height, width, channels] and ``seed`` (default 0)."""
        for name in sorted(set(params) - PARAMETERS):
            raise SourceError(
                f"source {cls.name} takes no parameter {name!r}", hint="it takes shape and seed"
            )
        shape, seed = params.get("shape"), params.get("seed", 0)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise SourceError(f"noise has no seed {seed!r}", hint="a seed is a whole number from 0")
        if shape is not None and not isinstance(shape, Sequence):
            raise SourceError(f"noise cannot have the shape {shape!r}", hint="[height, width, channels]")
        return cls(None if shape is None else noise.check_shape(tuple(shape)), seed)

    def ids(self, count: int) -> list[str]:
        """Return the ids of the first ``count`` images of the source's shape and seed.

        Raises SourceError where the source was opened without a shape, or ``count`` is negative.
        """
        if self.shape is None:
            raise SourceError(
                f"source {self.name} was opened without a shape", hint="open it with shape=[h, w, c]"
            )
        if count < 0:
            raise SourceError(f"cannot generate {count} images")
        return [str(noise.NoiseId(self.shape, self.seed, index)) for index in range(count)]

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield nothing: how many images there are is the recipe's to say."""
        return iter(())

    def read_one(self, image_id: str) -> Raw:
        """Return the pixels, uint8 (h, w, 3)."""
        named = noise.NoiseId.parse(image_id)
        if named is None:
            raise KeyError(image_id)
        try:
            return as_rgb(noise.generate(self.name, named.seed, named.index, named.shape))
        except SourceError as error:
            raise self.missing(image_id, f"cannot be: {error.what}") from error


@register
class Gaussian(NoiseSource):
    """N(0.5, 1) clipped to [0, 1] (Abdelzad et al. 2020)."""

    name: ClassVar[str] = "gaussian"


@register
class Uniform(NoiseSource):
    """Uniform on the 256 values."""

    name: ClassVar[str] = "uniform"
