"""The corruptions of ImageNet-C and their folders, each of which by itself looks like ImageNet's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

# The publisher's archives and the corruptions in each. The fifteen of the benchmark are the split
# "standard"; the four of extra.tar, meant for choosing hyperparameters, are "extra".
ARCHIVES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
        "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
        "weather": ("frost", "snow", "fog", "brightness"),
        "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
        "extra": ("gaussian_blur", "saturate", "spatter", "speckle_noise"),
    }
)
SEVERITIES = range(1, 6)
FOLDERS = frozenset(
    f"{corruption}/{severity}"
    for corruptions in ARCHIVES.values()
    for corruption in corruptions
    for severity in SEVERITIES
)
"""What lies above the images of each corruption and severity."""


def is_corrupted(folder: Path) -> bool:
    """Return whether a folder is that of a corruption and severity, by its name."""
    return "/".join(folder.parts[-2:]) in FOLDERS
