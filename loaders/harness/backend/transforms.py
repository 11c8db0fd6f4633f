"""Transforms from a PIL image to a model's input, identified by their specification.

A benchmark names one of four evaluation transforms per source; a pretrained model has its own. The
specification, not the code, is part of the key of stored activations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from fix_resize.spec import CenterCrop, Resize
from wordnet_splits.base.digests import canonical, digest_json
from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.manifest.data import Declared

from ..plugins import import_object

LARGEST_MODULE = 1 << 28
Triple = tuple[float, float, float]
ZEROS: Triple = (0.0, 0.0, 0.0)
ONES: Triple = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Transform:
    """A preprocessing in one or two steps, and its specification.

    Attributes
    ----------
    spec : JSON-serialisable and complete: equal specifications mean equal pixels in, equal tensors out.
    image : function from a PIL RGB image to a float tensor (3, h, w) or, with `batch`, to a PIL image of
        another size; None for the image as it is.
    batch : function from a uint8 tensor (n, 3, h, w) on any device to float, None where there is no second
        step.
    std : standard deviation per channel (or one for all) of the normalisation, None where unknown.
    size : (h, w) of the output, None for that of the image.
    """

    spec: Mapping[str, Any]
    image: Callable[[Image.Image], Any] | None
    batch: Callable[[Tensor], Tensor] | None = None
    std: tuple[float, ...] | None = None
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        try:
            canonical(self.spec)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"a transform's specification must be JSON: {error}", where=str(self.spec)
            ) from None

    @property
    def key(self) -> str:
        """SHA-256 of the specification."""
        return digest_json(self.spec)

    @property
    def words(self) -> str:
        """The specification in words, e.g. ``evaluation resize-32, mean 0.5 0.5 0.5, std 1 1 1``."""
        return _words(self.spec)

    def __call__(self, image: Image.Image) -> Tensor:
        """Return a PIL RGB image as input of the model, a float32 tensor (3, h, w)."""
        transformed = image if self.image is None else self.image(image)
        if self.batch is None:
            return transformed
        pixels = to_uint8(transformed) if isinstance(transformed, Image.Image) else transformed
        return self.batch(pixels.unsqueeze(0))[0]


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(_words, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Normalise:
    """Normalise uint8 pixels (..., 3, h, w) to (x / 255 - mean) / std in float32, as torchvision does."""

    mean: Triple = ZEROS
    std: Triple = ONES

    @classmethod
    def of(cls, mean: Sequence[float], std: Sequence[float]) -> Normalise:
        """Return the normalisation for three means and three standard deviations."""
        return cls(cast(Triple, tuple(map(float, mean))), cast(Triple, tuple(map(float, std))))

    def __call__(self, pixels: Tensor) -> Tensor:
        """Return the normalised pixels, on the same device."""
        x = pixels.to(torch.float32).div_(255)
        if self.mean == ZEROS and self.std == ONES:
            return x
        mean = torch.tensor(self.mean, dtype=torch.float32, device=x.device).view(3, 1, 1)
        std = torch.tensor(self.std, dtype=torch.float32, device=x.device).view(3, 1, 1)
        return x.sub_(mean).div_(std)


def to_uint8(image: Image.Image) -> Tensor:
    """Return a PIL image as a uint8 tensor (3, h, w)."""
    pixels = np.array(image if image.mode == "RGB" else image.convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def _resize_32(image: Image.Image) -> Image.Image:
    return image.resize((32, 32), Image.Resampling.BILINEAR)


def _resize_and_crop(image: Image.Image, *, short: int, side: int) -> Image.Image:
    """Resize the shorter side to ``short`` and crop the centre, with torchvision's geometry."""
    height, width = Resize(short).target(image.height, image.width)
    top, left = CenterCrop(side).corner(height, width)
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + side, top + side))


GEOMETRIES: dict[str, Callable[[Image.Image], Image.Image] | None] = {
    "none": None,
    "resize-32": _resize_32,
    "resize-32-crop-32": partial(_resize_and_crop, short=32, side=32),
    "resize-256-crop-224": partial(_resize_and_crop, short=256, side=224),
}
SIZES = {"resize-32": (32, 32), "resize-32-crop-32": (32, 32), "resize-256-crop-224": (224, 224)}


def evaluation_transform(name: str, mean: Sequence[float] = ZEROS, std: Sequence[float] = ONES) -> Transform:
    """Return one of the evaluation transforms that recipes name, normalised by channel.

    Parameters
    ----------
    name : ``none`` | ``resize-32`` (Pillow bilinear, aspect lost) | ``resize-32-crop-32`` |
        ``resize-256-crop-224``.
    mean, std : of pixels in [0, 1].
    """
    if name not in GEOMETRIES:
        raise unknown("evaluation transform", name, GEOMETRIES)
    normalise = Normalise.of(mean, std)
    spec = {"evaluation": name, "mean": list(normalise.mean), "std": list(normalise.std)}
    return Transform(spec, GEOMETRIES[name], normalise, normalise.std, SIZES.get(name))


def recipe_transform(recipe: Declared, source: str) -> Transform:
    """Return the evaluation transform that a manifest's recipe names for ``source`` (``none`` by default)."""
    name, normalise = recipe.transforms.get(source, "none"), recipe.normalise
    if normalise is None:
        return evaluation_transform(name)
    return evaluation_transform(name, normalise.mean, normalise.sd)


def named_transform(text: str, recipe: Declared) -> Transform:
    """Return the transform of a command-line option.

    Parameters
    ----------
    text : a name for `evaluation_transform`, with the recipe's normalisation; or ``MODULE:NAME``, a function
        of a PIL image, identified also by the content of its module's file.
    """
    if ":" not in text:
        normalise = recipe.normalise
        return evaluation_transform(text, *(() if normalise is None else (normalise.mean, normalise.sd)))
    function = import_object(text, where="--transform")
    if isinstance(function, Transform):
        return function
    if not callable(function):
        kind = type(function).__name__
        raise DataError(f"{kind} is not a function of an image", where=f"--transform {text}")
    file = getattr(sys.modules[text.partition(":")[0]], "__file__", None)
    content = sha256_of(Path(file), largest=LARGEST_MODULE)[:12] if file else "builtin"
    return as_transform(function, transform_id=f"{text} {content}")


def as_transform(image: Any, batch: Any = None, transform_id: str | None = None) -> Transform:
    """Return functions of an image and of a batch as a `Transform`; plain functions need a ``transform_id``.

    Raises
    ------
    DataError : functions without an identifier.
    """
    if isinstance(image, Transform) and batch is None:
        return image
    if image is None and isinstance(batch, Normalise):
        return evaluation_transform("none", batch.mean, batch.std)
    if not transform_id:
        function = batch or image
        raise DataError(
            "a transform given as a function has no specification to identify its activations by",
            where=getattr(function, "__name__", type(function).__name__),
            hint="add transform_id='NAME' and change it whenever the function changes",
        )
    return Transform({"transform_id": transform_id}, image, batch, _std_within(batch) or _std_within(image))


def _std_within(function: Any) -> Triple | None:
    """Return the ``std`` of the last step that has one (torchvision's Compose, Normalize and presets)."""
    for step in reversed([function, *getattr(function, "transforms", [])]):
        std = getattr(step, "std", None)
        if std is not None and len(std) == 3:
            return cast(Triple, tuple(float(v) for v in std))
    return None
