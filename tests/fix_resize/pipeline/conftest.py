from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def out(sound: Path, tmp_path: Path) -> Path:
    """A copy, to be altered, of the sound output that a file of tests has built."""
    return Path(shutil.copytree(sound, tmp_path / "out"))
