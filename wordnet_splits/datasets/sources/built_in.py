"""The built-in datasets: scikit-learn's digits, and Gaussian and uniform noise computed from the id.

The 1,797 handwritten digits are embedded, so that a benchmark works without a download. They are the test
part of UCI's *Optical Recognition of Handwritten Digits* (Alpaydin and Kaynak 1998); the licence is next to
the data.

The images of noise are equal on every machine and with every version: no library generator and no floating
point is used. The words of an image are the SHAKE-128 stream of its name, and a value is found by comparing
integers. Gaussian thresholds are shipped as integers, so no libm's ``erf`` plays a part.
"""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources.layouts.layout import ALL, Image, Layout, Location, Note, Raw
from wordnet_splits.datasets.sources.source import Source, register_source

DIGITS = Path(__file__).parent.parent.parent / "data" / "digits" / "digits.xz"
COUNT, SIDE = 1797, 8
RAW_SHA256 = "e1d88a0854e29e01d16358d2cd026aa8fc20dfc4cdb3fce004300857ea82aa70"  # of the unpacked bytes
_INDEXES = {str(index): index for index in range(COUNT)}

RandomWords = npt.NDArray[np.uint64]

LARGEST_SIDE = 4096  # a typing error in a recipe must not ask for terabytes
_BUCKET_BITS = 16
_ID = re.compile(r"(\d{1,18})x(\d{1,18})x(\d{1,18})/s(\d{1,18})/(\d{5,18})", re.ASCII)


class EmbeddedDigits(Layout):
    """The embedded file."""

    name = "embedded"

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images in ``load_digits`` order."""
        for index, label in enumerate(load_digits_pixels()[1].tolist()):
            yield Image(str(index), str(label), ALL, (index,))

    def locate(self, image_id: str) -> Location:
        """Return the index of an image; KeyError for an unknown id."""
        return (_INDEXES[image_id],)

    def read(self, location: Location) -> Raw:
        """Return the pixels, uint8 (8, 8, 3)."""
        grey = load_digits_pixels()[0][int(location[0])]
        return np.repeat(grey[:, :, None], 3, axis=2)


@register_source
class Digits(Source):
    """8 x 8 grey images, repeated to RGB; an id is the index in ``load_digits`` order."""

    name: ClassVar[str] = "digits"
    splits: ClassVar[tuple[str, ...]] = (ALL,)
    lossless: ClassVar[bool] = True
    rooted: ClassVar[bool] = False
    expected_files: ClassVar[str] = "nothing: it is part of this package"

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the embedded file, the only layout."""
        yield EmbeddedDigits()


@cache
def load_digits_pixels() -> tuple[Pixels, Pixels]:
    """Return the images and their labels in ``sklearn.datasets.load_digits`` order, read-only.

    Returns
    -------
    images : (1797, 8, 8) uint8, grey in [0, 255]: ``(v * 255 + 8) // 16`` of the published v in 0..16.
    labels : (1797,) uint8 in 0..9.

    Raises DataError if the embedded file is absent, or differs from this package's file.
    """
    try:
        raw = lzma.decompress(DIGITS.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise DataError("cannot be read", where=str(DIGITS), hint="install the package again") from error
    if hashlib.sha256(raw).hexdigest() != RAW_SHA256:
        raise DataError("is not the shipped file", where=str(DIGITS), hint="install it again")
    values = np.frombuffer(raw, dtype=np.uint8)
    labels, grey = values[:COUNT], values[COUNT:].reshape(COUNT, SIDE, SIDE)
    images = ((grey.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)
    images.flags.writeable = False
    return images, labels


class GeneratedNoise(Layout):
    """Noise from a distribution, generated on reading; the location of an image is its id."""

    decoded = True
    name = "generated"

    def __init__(self, source: str) -> None:
        self._source = source

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield nothing: recipes decide how many images there are."""
        return iter(())

    def locate(self, image_id: str) -> Location:
        """Return the id, which contains seed, index and shape; KeyError for an impossible id."""
        if NoiseId.parse(image_id) is None:
            raise KeyError(image_id)
        return (image_id,)

    def read(self, location: Location) -> Raw:
        """Return the pixels, uint8 (h, w, 3)."""
        noise = NoiseId.parse(str(location[0]))
        assert noise is not None, "located by an id"
        pixels = generate(self._source, noise.seed, noise.index, noise.shape)
        return pixels.repeat(3, axis=2) if noise.shape[2] == 1 else pixels


class NoiseSource(Source):
    """Noise from a distribution.

    A scan is empty: a recipe requests a number of images, which :meth:`ids` names. Any such id can be read,
    with any shape and seed of the opened source.

    Attributes
    ----------
    shape : (height, width, channels) of the images that ``ids`` names, None where none was given; one channel
        is repeated to RGB on reading.
    seed : their seed.
    """

    splits: ClassVar[tuple[str, ...]] = (ALL,)
    lossless: ClassVar[bool] = True
    rooted: ClassVar[bool] = False
    expected_files: ClassVar[str] = "nothing: it is generated"

    shape: tuple[int, int, int] | None = None
    seed: int = 0

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the generator, the only layout."""
        yield GeneratedNoise(cls.name)

    @classmethod
    def open(cls, root: Path | None, layout: Layout, **params: Any) -> Self:
        """Return the source with ``shape`` [height, width, channels] and ``seed`` (default 0)."""
        if unknown_names := sorted(params.keys() - {"shape", "seed"}):
            message = f"source {cls.name} has no parameter {unknown_names[0]!r}"
            raise SourceError(message, hint="it takes shape and seed")
        shape, seed = params.get("shape"), params.get("seed", 0)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise SourceError(f"noise has no seed {seed!r}", hint="a seed is a whole number from 0")
        if shape is not None and not isinstance(shape, Sequence):
            raise SourceError(f"noise cannot have the shape {shape!r}", hint="[height, width, channels]")
        source = super().open(root, layout)
        source.shape, source.seed = None if shape is None else check_shape(tuple(shape)), seed
        return source

    def ids(self, count: int) -> list[str]:
        """Return the ids of the first ``count`` images of the source's shape and seed.

        Raises SourceError where the source was opened without a shape, or ``count`` is negative.
        """
        if self.shape is None:
            message = f"source {self.name} was opened without a shape"
            raise SourceError(message, hint="open it with shape=[h, w, c]")
        if count < 0:
            raise SourceError(f"cannot generate {count} images")
        return noise_ids(self.shape, self.seed, count)

    @classmethod
    def class_of(cls, image_id: str) -> str | None:
        """Return the only class; KeyError for an impossible id."""
        if NoiseId.parse(image_id) is None:
            raise KeyError(image_id)
        return load_catalog(cls.name).classes[0].class_id


@register_source
class Gaussian(NoiseSource):
    """N(0.5, 1) clipped to [0, 1] (Abdelzad et al. 2020)."""

    name: ClassVar[str] = "gaussian"


@register_source
class Uniform(NoiseSource):
    """Uniform on the 256 values."""

    name: ClassVar[str] = "uniform"


@dataclass(frozen=True)
class NoiseId:
    """The id of a noise image: its shape (height, width, channels), the seed and its index."""

    shape: tuple[int, int, int]
    seed: int
    index: int

    def __str__(self) -> str:
        height, width, channels = self.shape
        return f"{height}x{width}x{channels}/s{self.seed}/{self.index:05d}"

    @classmethod
    def parse(cls, text: str) -> NoiseId | None:
        """Return the id that is written exactly as ``text``, or None."""
        match = _ID.fullmatch(text)
        if not match:
            return None
        height, width, channels, seed, index = (int(part) for part in match.groups())
        parsed = cls((height, width, channels), seed, index)
        return parsed if str(parsed) == text else None


def noise_ids(shape: tuple[int, int, int], seed: int, count: int) -> list[str]:
    """Return the ids of the first ``count`` images of a shape and a seed."""
    return [str(NoiseId(shape, seed, index)) for index in range(count)]


def check_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return ``shape`` as (height, width, channels).

    Raises SourceError unless the sides are in 1..4096 and there are 1 (grey) or 3 (RGB) channels.
    """
    if (
        len(shape) != 3
        or any(isinstance(n, bool) or not isinstance(n, int) for n in shape)
        or not all(1 <= n <= LARGEST_SIDE for n in shape[:2])
        or shape[2] not in (1, 3)
    ):
        hint = f"a shape is [height, width, channels], sides 1 to {LARGEST_SIDE}, channels 1 or 3"
        raise SourceError(f"noise cannot have the shape {list(shape)}", hint=hint)
    height, width, channels = shape
    return height, width, channels


def generate(source: str, seed: int, index: int, shape: tuple[int, ...]) -> Pixels:
    """Return noise image ``index`` of ``source``, as uint8 (height, width, channels).

    ``source`` is ``gaussian`` (N(0.5, 1) clipped to [0, 1], Abdelzad et al. 2020) or ``uniform``; a
    single channel is not repeated. The words are the SHAKE-128 stream of ``source``, ``seed``, ``index`` and
    ``HxWxC`` joined by the unit separator, 8 bytes little-endian each, in C order of (h, w, c).

    Raises UnknownNameError for another source and SourceError for an impossible shape, seed or index.
    """
    if source not in VALUES:
        raise unknown("noise source", source, VALUES)
    height, width, channels = check_shape(shape)
    if seed < 0 or index < 0:
        raise SourceError(f"noise has no seed {seed} with index {index}", hint="both start at 0")
    name = "\x1f".join([source, str(seed), str(index), f"{height}x{width}x{channels}"])
    stream = hashlib.shake_128(name.encode("utf-8")).digest(8 * height * width * channels)
    return VALUES[source](np.frombuffer(stream, "<u8")).reshape(height, width, channels)


@cache
def thresholds() -> RandomWords:
    """Return the 255 Gaussian thresholds, uint64, ascending, read-only.

    Number k (from 1) is the smallest word w with w / 2**64 >= P(255 x + 0.5 < k), x of N(0.5, 1): the
    value of a word, floor(255 x + 0.5), is the number of thresholds not above it.
    """
    resource = files("wordnet_splits") / "data" / "noise" / "gaussian_thresholds.tsv"
    lines = [line for line in resource.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = [line.split("\t") for line in lines[1:]]
    table = np.array([int(threshold) for _, threshold in rows], dtype=np.uint64)
    if [int(value) for value, _ in rows] != list(range(1, 256)) or not np.all(table[1:] > table[:-1]):
        raise DataError("not 255 ascending thresholds", where=str(resource), hint="reinstall wordnet-splits")
    table.flags.writeable = False
    return table


@cache
def _buckets() -> tuple[Pixels, RandomWords]:
    """Return the value at the start of each bucket of equal top bits, and the last word of each value.

    A bucket holds one threshold at most (the nearest two are 90 buckets apart), so one look-up and one
    comparison give the value, several times faster than a binary search.
    """
    table = thresholds()
    starts: RandomWords = np.arange(2**_BUCKET_BITS, dtype=np.uint64) << np.uint64(64 - _BUCKET_BITS)
    last = np.append(table - np.uint64(1), np.uint64(2**64 - 1))
    return np.searchsorted(table, starts, side="right").astype(np.uint8), last


def _gaussian(words: RandomWords) -> Pixels:
    start, last = _buckets()
    values: Pixels = start[words >> np.uint64(64 - _BUCKET_BITS)]
    values += words > last[values]
    return values


VALUES: Mapping[str, Callable[[RandomWords], Pixels]] = MappingProxyType(
    {"gaussian": _gaussian, "uniform": lambda words: (words >> np.uint64(56)).astype(np.uint8)}
)
"""How the words of each noise source become values."""
