"""The 200 photographs, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from fix_resize.decode import decode
from tests.fix_resize import sets


@pytest.fixture
def photographs(real_data: Path) -> Callable[[], Iterator[list[Image.Image]]]:
    """One photograph of each Tiny ImageNet class, at full size, in lists of twenty: all take 150 MB."""
    paths = sets.photographs(real_data)

    def batches() -> Iterator[list[Image.Image]]:
        for start in range(0, len(paths), 20):
            yield [decode(path.read_bytes()).image for path in paths[start : start + 20]]

    return batches
