"""The benchmark of digits, small recipes, and a folder of textures."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

from wordnet_splits.catalog.inventory import load_inventory
from wordnet_splits.checks.freeze import freeze
from wordnet_splits.making import build_benchmark
from wordnet_splits.making.run import Build
from wordnet_splits.manifest import Manifest, read_manifest

HEAD = 'schema = 1\nname = "mine"\n'
EVERY = '{ test = { from = "all", all = true } }'


def group(name: str, role: str, source: str, classes: str, images: str = EVERY, more: str = "") -> str:
    return (
        f'[[group]]\nname = "{name}"\nrole = "{role}"\nsource = "{source}"\n'
        f"classes = {classes}\nimages = {images}\n{more}\n"
    )


def rows(manifest, split, name) -> list[str]:
    return manifest.images(split, name).column("image_id").to_pylist()


KNOWN = group("known", "id", "digits", '{ listed = ["0"] }')
FAR = group(
    "far", "far", "dtd", '{ listed = ["banded", "dotted"] }', '{ test = { from = "all", per_class = 30 } }'
)


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
def recipe(tmp_path):
    def write(*groups: str, head: str = HEAD) -> Path:
        path = tmp_path / "mine.toml"
        path.write_text(head + "\n".join(groups), encoding="utf-8")
        return path

    return write


@pytest.fixture
def textures(tmp_path) -> Path:
    """Two classes of DTD with a few real ids each, as its publisher lays them out."""
    inventory = load_inventory("dtd", "all")
    assert inventory is not None
    ids = [i for i in inventory.column("image_id").to_pylist() if i.startswith(("banded/", "dotted/"))]
    root = tmp_path / "dtd"
    for n, image_id in enumerate(ids):
        path = root / "images" / f"{image_id}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (n % 256, n // 256, 7)).save(path)
    return root
