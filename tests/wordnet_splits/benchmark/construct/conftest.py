"""The benchmark of digits, small recipes, and a folder of textures."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.construct.run import Build
from wordnet_splits.benchmark.manifest import Manifest, read_manifest

from ...recipes import write_dtd, write_recipe


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Build:
    """The benchmark of digits, built once; not to be changed."""
    return build_benchmark("digits", out=tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def digits(built) -> Manifest:
    return built.manifest


@pytest.fixture
def folder(built, tmp_path) -> Path:
    """A copy of the benchmark of digits."""
    return Path(shutil.copytree(built.folder, tmp_path / "digits"))


@pytest.fixture
def frozen(folder, tmp_path) -> Path:
    return freeze(read_manifest(folder), manifests=tmp_path / "manifests").folder


@pytest.fixture
def recipe(tmp_path) -> Callable[..., Path]:
    return partial(write_recipe, tmp_path)


@pytest.fixture
def textures(tmp_path) -> Path:
    """Two classes of DTD, as its publisher lays them out."""
    return write_dtd(tmp_path / "dtd")


def rows(manifest, split, name) -> list[str]:
    return manifest.images(split, name).column("image_id").to_pylist()
