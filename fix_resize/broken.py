"""The resizers that spoiled LSUN and Tiny ImageNet as OOD sets: for comparison, never to build a set.

Each decimates without a low-pass filter, so its output is rougher than any photograph; a detector that
distinguishes it from CIFAR has learned the resizer. Specs use them for the last stage of `fix` only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from fix_resize.spec import Step
from wordnet_splits.base.lazy import need


def nearest(image: Image.Image, step: Step) -> Image.Image:
    """Use the input pixel nearest to the centre of each output pixel (Pillow's NEAREST)."""
    height, width = step.out_size
    return image.resize((width, height), Image.Resampling.NEAREST)


def opencv(image: Image.Image, step: Step) -> Image.Image:
    """Resize by OpenCV's INTER_LINEAR: interpolate the four pixels around each centre, at any scale."""
    cv2 = need("cv2", "study", where="resize spec 'opencv-bilinear'")
    height, width = step.out_size
    return Image.fromarray(cv2.resize(np.asarray(image), (width, height), interpolation=cv2.INTER_LINEAR))


def tensor(image: Image.Image, step: Step) -> Image.Image:
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
