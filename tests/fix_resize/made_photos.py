"""Made photographs: random pictures with the spectrum of natural ones, the same on every machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from fix_resize.resize import apply
from fix_resize.spec import get_spec

Pixels = npt.NDArray[np.uint8]


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
