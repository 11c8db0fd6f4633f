"""Roots and benchmarks for the loaders' tests; nothing of this machine's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.photographs import build_photographs, write_root
from wordnet_splits.sources import root_variable, source_names


@pytest.fixture
def no_roots_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in source_names():
        monkeypatch.delenv(root_variable(name), raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(root, manifest folder) of the small benchmark of photographs; not to be changed."""
    folder = tmp_path_factory.mktemp("photographs")
    root = write_root(folder / "imagenet")
    return root, build_photographs(root, folder / "build")
