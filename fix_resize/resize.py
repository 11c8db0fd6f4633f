"""Resize images as a spec describes. Pillow is the reference; the other backends give equal bytes.

The engines ``pillow-nearest``, ``opencv`` and ``tensor`` are the resizers that spoiled LSUN and Tiny ImageNet
as OOD sets: for comparison, never to build a set. Each decimates without a low-pass filter, so its output is
rougher than any photograph. Specs use them for the last stage of `fix` only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from itertools import count
from types import ModuleType
from typing import Any, Final

import numpy as np
import PIL
from PIL import Image, ImageOps

from fix_resize.spec import INVERTED_RULE, EngineName, Resize, ResizeSpec, Size, Step, plan
from fix_resize.windows import FILTERS, Axis, first_axis
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.lazy import extra_of_this_project, need
from wordnet_splits.base.names import printable

Engine = Callable[[Image.Image, Step], Image.Image]

BATCH: Final = 64
"""Largest number of images in a call of a backend, which bounds its memory."""

_RESAMPLING: Final = {name: Image.Resampling[name.upper()] for name in FILTERS}


def pillow_resize(
    image: Image.Image, size: Size, filter_name: str, start_axis: Axis = "horizontal"
) -> Image.Image:
    """Return ``image`` at ``size`` (height, width) by Pillow, resized along ``start_axis`` first.

    If the installed Pillow would begin with the other axis, the passes are separate calls; each gives the
    same pixels as within a single call.
    """
    if filter_name not in _RESAMPLING:
        raise unknown("resampling filter", filter_name, _RESAMPLING)
    height, width = size
    filter_ = _RESAMPLING[filter_name]
    if first_axis(PIL.__version__, (image.height, image.width), size) != start_axis:
        size_between = (width, image.height) if start_axis == "horizontal" else (image.width, height)
        image = image.resize(size_between, filter_)
    return image.resize((width, height), filter_)


COMPILED_FROM: Final = 2048
"""Images that a process resizes by Pillow before it loads numba; loading takes as long as 1,000 to 3,000."""

_requests = count()  # calls of `resize_and_crop` in this process


def resize_and_crop(image: Image.Image, step: Step) -> Image.Image:
    """Resize an image and crop it; equal pixels to ``image.resize`` and ``crop`` of the installed Pillow.

    After the first `COMPILED_FROM` images of a process numba resizes RGB images by filters of `FILTERS`, if
    it is installed (extra ``fast``), and computes the cropped pixels alone.
    """
    (height, width), (top, left) = step.out_size, step.corner
    is_fit = image.mode == "RGB" and first_axis(PIL.__version__, step.in_size, step.out_size) == "horizontal"
    if next(_requests) >= COMPILED_FROM and is_fit and (compiled := _compiled()) is not None:
        return Image.fromarray(compiled.resample_step(np.asarray(image), step))
    resized = image.resize((width, height), _RESAMPLING[step.stage.filter])
    return resized.crop((left, top, left + step.crop_size[1], top + step.crop_size[0]))


def _pillow(image: Image.Image, step: Step) -> Image.Image:
    return pillow_resize(image, step.out_size, step.stage.filter)


def _pillow_float(image: Image.Image, step: Step) -> Image.Image:
    """Resize each channel as float32, as clean-fid does; then clip to 0..255 and round, halves up.

    The last bit of a float sum may differ between processors, so frozen sets should not use it.
    """
    channels = [np.asarray(_pillow(channel.convert("F"), step)) for channel in image.split()]
    rounded = np.floor(np.stack(channels, axis=2).clip(0, 255) + np.float32(0.5))
    return Image.fromarray(rounded.astype(np.uint8))


def _nearest(image: Image.Image, step: Step) -> Image.Image:
    """Use the input pixel nearest to the centre of each output pixel (Pillow's NEAREST)."""
    height, width = step.out_size
    return image.resize((width, height), Image.Resampling.NEAREST)


def _opencv(image: Image.Image, step: Step) -> Image.Image:
    """Resize by OpenCV's INTER_LINEAR: interpolate the four pixels around each centre, at any scale."""
    cv2 = need("cv2", "study", where="resize spec 'opencv-bilinear'")
    height, width = step.out_size
    return Image.fromarray(cv2.resize(np.asarray(image), (width, height), interpolation=cv2.INTER_LINEAR))


def _tensor(image: Image.Image, step: Step) -> Image.Image:
    """Resize as torchvision did on uint8 tensors before antialias: float32 bilinear, rounded half to even.

    The same numbers as ``torch.nn.functional.interpolate(mode="bilinear", align_corners=False)``.
    """
    pixels = np.asarray(image).astype(np.float32)
    for axis, size in enumerate(step.out_size):
        pixels = interpolate_neighbours(pixels, size, axis)
    return Image.fromarray(np.rint(pixels).clip(0, 255).astype(np.uint8))


def interpolate_neighbours(pixels: np.ndarray[Any, np.dtype[Any]], size: int, axis: int) -> Any:
    """Interpolate linearly at the output pixels' centres along one axis, without antialias, as float32."""
    last = pixels.shape[axis] - 1
    centres = np.maximum((np.arange(size, dtype=np.float32) + 0.5) * np.float32((last + 1) / size) - 0.5, 0)
    low = np.minimum(centres.astype(np.int64), last)
    share = (centres - low).astype(np.float32)
    share = share.reshape([-1 if a == axis else 1 for a in range(pixels.ndim)])
    high = np.minimum(low + 1, last)
    return pixels.take(low, axis) * (1 - share) + pixels.take(high, axis) * share


ENGINES: Final[dict[EngineName, Engine]] = {
    "pillow": _pillow,
    "pillow-float": _pillow_float,
    "pillow-nearest": _nearest,
    "opencv": _opencv,
    "tensor": _tensor,
}
"""The arithmetic of a stage; backends other than Pillow reproduce ``pillow`` only."""

BACKENDS: Final[dict[str, tuple[str, str]]] = {
    "numpy": ("fix_resize.oracle", ""),
    "numba": ("fix_resize.kernel", "fast"),
    "torch": ("fix_resize.backend_torch", "torch"),
}
"""Module of each backend other than Pillow, imported on request, and the extra that it requires."""


def backend_names() -> tuple[str, ...]:
    """Return the names of the backends of `apply_many`."""
    return ("pillow", *BACKENDS)


def apply(spec: ResizeSpec, image: Image.Image) -> Pixels:
    """Resize one RGB image by Pillow, the reference; returns (side, side, 3) uint8.

    Raises
    ------
    DataError : the image is not RGB.
    UndecodableImageError : the image is so long and thin that a stage would have too many pixels.
    """
    if image.mode != "RGB":
        raise DataError(
            f"an image must be RGB, not {image.mode}", hint="decode it with fix_resize.decode.decode"
        )
    image = apply_colour_rule(spec, image)
    for step in plan(spec, image.height, image.width):
        image = ENGINES[step.stage.engine](image, step)
        if step.crop_size != step.out_size:
            (top, left), (height, width) = step.corner, step.crop_size
            image = image.crop((left, top, left + width, top + height))
    return np.asarray(image)


def apply_colour_rule(spec: ResizeSpec, image: Image.Image) -> Image.Image:
    """Return an RGB image, inverted if the colour rule of the spec requires it."""
    return ImageOps.invert(image) if spec.colour == INVERTED_RULE else image


def apply_many(
    spec: ResizeSpec, images: Sequence[Image.Image | Pixels] | Pixels, backend: str = "pillow"
) -> Pixels:
    """Resize images of any sizes; returns (n, side, side, 3) uint8 in their order.

    Parameters
    ----------
    images : RGB images, or uint8 arrays (h, w, 3), or one array (n, h, w, 3).
    backend : ``pillow``, ``numpy``, ``numba`` (extra ``fast``) or ``torch``; all give equal bytes.

    Raises
    ------
    UnknownNameError : no such backend.
    SplitsError : its library cannot be loaded, or the spec uses an engine that only Pillow has.
    DataError : an image is not 8-bit RGB.
    UndecodableImageError : an image is so long and thin that a stage would have too many pixels.
    """
    out = np.empty((len(images), spec.side, spec.side, 3), np.uint8)
    if backend == "pillow":
        for i, image in enumerate(images):
            out[i] = apply(
                spec, image if isinstance(image, Image.Image) else Image.fromarray(_as_rgb_array(image))
            )
        return out
    module = _backend_module(backend, spec)
    by_size: dict[Size, list[int]] = {}
    for i, image in enumerate(images):
        size = (image.height, image.width) if isinstance(image, Image.Image) else image.shape[:2]
        by_size.setdefault((size[0], size[1]), []).append(i)
    for members in by_size.values():
        for start in range(0, len(members), BATCH):
            batch = members[start : start + BATCH]
            pixels = np.stack([_as_rgb_array(images[i]) for i in batch])
            out[batch] = module.apply_batch(spec, ~pixels if spec.colour == INVERTED_RULE else pixels)
    return out


def _as_rgb_array(image: Image.Image | Pixels) -> Pixels:
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise DataError(
            f"an image must be 8-bit RGB, (h, w, 3) uint8, not {pixels.dtype} {pixels.shape}",
            hint="decode it with fix_resize.decode.decode",
        )
    return pixels


def _backend_module(name: str, spec: ResizeSpec) -> ModuleType:
    if name not in BACKENDS:
        raise unknown("resize backend", name, backend_names())
    unsupported = [s.engine for s in spec.stages if isinstance(s, Resize) and s.engine != "pillow"]
    if unsupported:
        raise SplitsError(
            f"the {name} backend has Pillow's 8-bit filters only, and this spec uses {unsupported[0]!r}",
            where=f"resize spec {spec.name!r}",
            hint="use backend='pillow'",
        )
    return _import(name)


@lru_cache(maxsize=8)
def _import(name: str) -> ModuleType:
    module, extra = BACKENDS[name]
    try:
        return import_module(module)
    except (ImportError, RuntimeError, OSError, MemoryError) as error:
        # not installed, broken, no folder for compiled code, or not enough memory for the library
        reason = printable(str(error).split("\n")[0].split(". ")[0]) or type(error).__name__
        raise SplitsError(
            f"the {name} backend cannot be loaded ({reason})",
            hint=f"pip install '{extra_of_this_project(extra)}'; is memory short?",
        ) from error


@cache
def _compiled() -> ModuleType | None:
    """Return numba's backend, None where it cannot be loaded."""
    try:
        return _import("numba")
    except SplitsError:
        return None


def backend_problem(backend: str) -> str | None:
    """Return why an installed backend cannot be used; None if it can, or is not installed."""
    try:
        _import(backend)
    except SplitsError as error:
        return None if isinstance(error.__cause__, ModuleNotFoundError) else error.what
    return None
