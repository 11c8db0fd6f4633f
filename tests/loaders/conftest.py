"""Roots and benchmarks for the loaders' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.photographs import build_photographs, write_root


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(root, manifest folder) of the small benchmark of photographs; not to be changed."""
    folder = tmp_path_factory.mktemp("photographs")
    root = write_root(folder / "imagenet")
    return root, build_photographs(root, folder / "build")
