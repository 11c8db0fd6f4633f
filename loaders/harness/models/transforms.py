"""Transforms from a PIL image to a model's input, identified by their specification.

A benchmark names one of four evaluation transforms per source; a pretrained model has its own. The
specification, not the code, is part of the key of stored activations.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from fix_resize.decode import decode_bytes, image_as_rgb
from fix_resize.resize import resize_and_crop
from fix_resize.spec import CenterCrop, Resize, Step
from wordnet_splits.base.digests import as_rgb, canonical, digest_json
from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.base.untrusted import LARGEST_IMAGE, import_object, read_bytes
from wordnet_splits.benchmark.manifest.metadata import Declared
from wordnet_splits.metrics.counts import to_numpy

from ..data.parameters import file_identity

if TYPE_CHECKING:
    from .model import Model

Triple = tuple[float, float, float]
ZEROS: Triple = (0.0, 0.0, 0.0)
ONES: Triple = (1.0, 1.0, 1.0)
_NORMALISATION = re.compile(r", mean (?P<mean>[^ ,]+ [^ ,]+ [^ ,]+), std (?P<std>[^ ,]+ [^ ,]+ [^ ,]+)$")


@dataclass(frozen=True)
class Transform:
    """A preprocessing in one or two steps, and its specification.

    Attributes
    ----------
    spec : JSON-serialisable and complete: equal specifications mean equal pixels in, equal tensors out.
    image : function from a PIL RGB image to a float tensor (3, h, w) or, with `batch`, to a PIL image of
        another size; None for the image as it is.
    batch : function from a uint8 tensor (n, 3, h, w) on any device to float, None without a second step.
    std : standard deviation per channel (or one for all) of the normalisation, None where unknown.
    size : (h, w) of the output, None for the image's size.
    assumed : whether no normalisation was stated, and pixels in [0, 1] are assumed.
    """

    spec: Mapping[str, Any]
    image: Callable[[Image.Image], Any] | None
    batch: Callable[[Tensor], Tensor] | None = None
    std: tuple[float, ...] | None = None
    size: tuple[int, int] | None = None
    assumed: bool = False

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
    def description(self) -> str:
        """The specification in words, e.g. ``evaluation resize-32, mean 0.5 0.5 0.5, std 1 1 1``."""
        return _described(self.spec)

    def __call__(self, image: Image.Image) -> Tensor:
        """Return a PIL RGB image as input of the model, a float32 tensor (3, h, w)."""
        transformed = image if self.image is None else self.image(image)
        if self.batch is None:
            return transformed
        pixels = to_uint8(transformed) if isinstance(transformed, Image.Image) else transformed
        if isinstance(self.batch, Normalise) and getattr(pixels, "dtype", None) != torch.uint8:
            kind = getattr(pixels, "dtype", type(pixels).__name__)
            hint = "a transform is of PIL images; leave it out for tensors"
            raise DataError(
                f"uint8 pixels or a PIL image must be normalised, got {kind}", where="transform", hint=hint
            )
        return self.batch(pixels.unsqueeze(0))[0]


def stated_normalisation(descriptions: Iterable[str]) -> Normalise | None:
    """Return the normalisation that several `Transform.description` state, None if they differ."""
    found = {_NORMALISATION.search(words) for words in descriptions}
    stated = {(match["mean"], match["std"]) for match in found if match}
    if None in found or len(stated) != 1:
        return None
    return Normalise.of(*(list(map(float, numbers.split())) for numbers in stated.pop()))


def _described(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_described(part)}" for name, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(_described, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Normalise:
    """Normalise uint8 pixels (..., 3, h, w) to (x / 255 - mean) / std in float32, as torchvision does."""

    mean: Triple = ZEROS
    std: Triple = ONES

    @classmethod
    def of(cls, mean: Sequence[float], std: Sequence[float]) -> Normalise:
        """Return the normalisation for three means and three standard deviations."""
        return cls(_channels(mean, "mean"), _channels(std, "std"))

    @classmethod
    def of_options(cls, mean: Any, std: Any) -> Normalise | None:
        """Return the normalisation for a user's mean and standard deviation, None where neither is given."""
        if mean is None and std is None:
            return None
        if mean is None or std is None:
            name = "mean" if mean is None else "std"
            raise DataError(
                f"{name} is not given: the two belong together",
                where="normalisation",
                hint="--mean 0 --std 1 (mean=0, std=1) leaves pixels in [0, 1]",
            )
        return cls(_channels(mean, "mean"), _channels(std, "std"))

    def __call__(self, pixels: Tensor) -> Tensor:
        """Return the normalised pixels, on the same device."""
        x = pixels.to(torch.float32, copy=True).div_(255)
        if self.mean == ZEROS and self.std == ONES:
            return x
        mean = torch.tensor(self.mean, dtype=torch.float32, device=x.device).view(3, 1, 1)
        std = torch.tensor(self.std, dtype=torch.float32, device=x.device).view(3, 1, 1)
        return x.sub_(mean).div_(std)


def _channels(value: Any, name: str) -> Triple:
    """Return one number or three as three numbers, one for each channel."""
    try:
        parts = value.split(",") if isinstance(value, str) else to_numpy(value).flat
        values = [float(part) for part in parts]
    except (TypeError, ValueError):
        values = []
    if len(values) not in (1, 3) or not np.isfinite(values).all() or (name == "std" and min(values) <= 0):
        kind = "positive number" if name == "std" else "number"
        raise DataError(f"{value!r} is not one {kind}, or three of them", where=name)
    return cast(Triple, tuple(values * 3)[:3])


def to_uint8(image: Image.Image) -> Tensor:
    """Return a PIL image as a uint8 tensor (3, h, w); UndecodableImageError as of `image_as_rgb`."""
    pixels = np.array(image_as_rgb(image))
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def _resize(image: Image.Image, *, side: int) -> Image.Image:
    return image.resize((side, side), Image.Resampling.BILINEAR)


def _resize_and_crop(image: Image.Image, *, short: int, side: int) -> Image.Image:
    """Resize the shorter side to ``short`` and crop the centre, with torchvision's geometry."""
    stage = Resize(short)
    size = stage.target(image.height, image.width)
    corner = CenterCrop(side).corner(*size)
    return resize_and_crop(image, Step(stage, (image.height, image.width), size, corner, (side, side)))


GEOMETRIES = ("none", "resize-32", "resize-32-crop-32", "resize-256-crop-224")
"""Geometries that recipes name; users may give other sizes."""
RESIZE = re.compile(r"resize-([1-9][0-9]{0,3})(?:-crop-([1-9][0-9]{0,3}))?")


def geometry(name: str) -> tuple[Callable[[Image.Image], Image.Image] | None, tuple[int, int] | None]:
    """Return the function of a named geometry and the (h, w) of its output; None, None for ``none``."""
    match = RESIZE.fullmatch(name) if isinstance(name, str) else None
    if match is None and name != "none":
        raise unknown("evaluation transform", str(name), (*GEOMETRIES, "resize-N", "resize-N-crop-M"))
    if match is None:
        return None, None
    short, side = int(match[1]), int(match[2] or match[1])
    if side > short:
        raise DataError(f"a crop of {side} from images of {short}", where=name)
    if match[2] is None:
        return partial(_resize, side=side), (side, side)
    return partial(_resize_and_crop, short=short, side=side), (side, side)


def evaluation_transform(name: str, mean: Sequence[float] = ZEROS, std: Sequence[float] = ONES) -> Transform:
    """Return one of the evaluation transforms that recipes name, normalised by channel.

    Parameters
    ----------
    name : ``none``, ``resize-N`` (to N x N, Pillow bilinear, aspect lost), or ``resize-N-crop-M`` (the
        shorter side to N, then the centre M x M). Recipes name ``resize-32``, ``resize-32-crop-32`` and
        ``resize-256-crop-224``.
    mean, std : of pixels in [0, 1].
    """
    image, size = geometry(name)
    normalise = Normalise.of(mean, std)
    spec = {"evaluation": name, "mean": list(normalise.mean), "std": list(normalise.std)}
    return Transform(spec, image, normalise, normalise.std, size)


def recipe_normalisation(recipe: Declared) -> Normalise | None:
    """Return the normalisation that a manifest's recipe declares, None for pixels in [0, 1]."""
    return None if recipe.normalise is None else Normalise.of(recipe.normalise.mean, recipe.normalise.sd)


def imported_transform(text: str, normalise: Normalise | None = None) -> Transform:
    """Return the transform ``MODULE:NAME``, a function of a PIL image, identified also by its module's file.

    Raises
    ------
    DataError : a normalisation is given, or the name is not of a function.
    """
    if normalise is not None:
        raise DataError("mean and std do not apply to a function", where=f"--transform {text}")
    function = import_object(text, where="--transform")
    if isinstance(function, Transform):
        return function
    if not callable(function):
        kind = type(function).__name__
        raise DataError(f"{kind} is not a function of an image", where=f"--transform {text}")
    return as_transform(function, transform_id=file_identity(text))


def as_transform(image: Any, batch: Any = None, transform_id: str | None = None) -> Transform:
    """Return functions of an image and a batch as a `Transform`; plain functions need a ``transform_id``."""
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


def choose_transform(
    model: Model, dataset: Any, transform: Any = None, transform_id: str | None = None
) -> Transform:
    """Return the given transform, else the dataset's, the model's, or the benchmark's for the source."""
    if transform is not None:
        return as_transform(transform, transform_id=transform_id)
    image, batch = getattr(dataset, "transform", None), getattr(dataset, "batch_transform", None)
    if image is not None or batch is not None:
        return as_transform(image, batch, transform_id)
    if model.preprocess is not None:
        if model.normalise is not None:
            raise DataError(
                "mean and std do not apply: the model has its own preprocessing",
                where=model.name,
                hint="replace that too: --transform resize-224 (transform='resize-224')",
            )
        return model.preprocess
    manifest = getattr(dataset, "manifest", None)
    recipe = None if manifest is None else manifest.data.recipe
    named = {} if recipe is None else recipe.transforms
    names = {named.get(source, "none") for source in dataset.table["source"].unique().to_pylist()}
    if len(names) > 1:
        raise DataError(
            "the sources of these images have different evaluation transforms",
            where=model.name,
            hint="extract one group at a time: UnknownDetectionSet.parts(...)",
        )
    return input_transform(model, names.pop(), recipe)


def with_transform(model: Model, transform: Transform | str, recipe: Declared) -> Model:
    """Return a copy of a model whose images go through a transform, or through a named one."""
    if isinstance(transform, str):
        transform = input_transform(model, transform, recipe)
    copied = copy.copy(model)
    copied.preprocess, copied.normalise = transform, None
    return copied


def input_transform(model: Model, name: str, recipe: Declared | None = None) -> Transform:
    """Return a named transform with the normalisation of the user, else the model, else the benchmark.

    Where none is stated, an object given in Python gets pixels in [0, 1], and its results a note.

    Raises
    ------
    DataError : no normalisation is stated for a model that is a file or a name.
    """
    if ":" in name:
        return imported_transform(name, model.normalise)
    declared = None if recipe is None else recipe_normalisation(recipe)
    normalise = model.normalise or model.own_normalise or declared
    stated = normalise or Normalise()
    transform = evaluation_transform(name, stated.mean, stated.std)
    if normalise is None and not model.in_python:
        benchmark = "" if recipe is None else f" or {recipe.name}"
        raise DataError(
            f"no normalisation of its inputs is stated by the model{benchmark}",
            where=model.name,
            hint="give --mean and --std (mean=, std=): 0 and 1 for pixels in [0, 1]",
        )
    return replace(transform, assumed=normalise is None)


def named_transform(model: Model, name: str, stored: Mapping[str, Any]) -> Transform:
    """Return the transform of a name, with the normalisation of a stored specification or the model's."""
    normalise = Normalise.of_options(stored.get("mean"), stored.get("std"))
    if ":" in name or normalise is None:
        return input_transform(model, name)
    return evaluation_transform(name, normalise.mean, normalise.std)


def common_transform(
    models: Mapping[str, Sequence[Model]], name: str, normalise: Normalise | None
) -> Transform:
    """Return a named transform with a normalisation, by default the models' common one."""
    runs = [copy.copy(run) for model_runs in models.values() for run in model_runs]
    for run in runs if normalise else ():
        run.normalise = normalise
    transforms = {made.key: made for made in (input_transform(run, name) for run in runs)}
    if len(transforms) > 1:
        raise DataError(
            "the models state different normalisations of their inputs",
            where="evaluate",
            hint="evaluate one at a time, or give mean and std",
        )
    return next(iter(transforms.values()))


def as_image(image: Any) -> Image.Image:
    """Return an image as PIL RGB: of Pillow, a path, or uint8 pixels (h, w, 3) or (h, w)."""
    if isinstance(image, Image.Image):
        return image_as_rgb(image)
    if isinstance(image, str | Path):
        data = read_bytes(Path(image), largest=LARGEST_IMAGE, error=SourceError)
        return decode_bytes(data, where=str(image))
    if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim in (2, 3):
        return Image.fromarray(as_rgb(image))
    kind = f"an array of {image.dtype}" if isinstance(image, np.ndarray) else type(image).__name__
    raise DataError(f"{kind} is not an image", hint="give a PIL image, a path, or uint8 pixels (h, w, 3)")
