"""The 200 photographs, decoded once."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tools.study.thresholds import images_below


@pytest.fixture(scope="package")
def photographs(real_data: Path) -> list[Image.Image]:
    """One photograph of each Tiny ImageNet class, at full size."""
    return [image for _, image in images_below(real_data / "imagenet" / "train")]
