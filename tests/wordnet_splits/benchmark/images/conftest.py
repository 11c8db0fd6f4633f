"""Roots, benchmarks and stores for the tests of packed stores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.photographs import SHARK, TENCH, build_photographs, image_file, jpeg, write_root
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.cli.main import app, run


@pytest.fixture(autouse=True)
def _alone(no_roots_of_this_machine: None) -> None:
    pass


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """(root, manifest folder), not to be changed."""
    folder = tmp_path_factory.mktemp("photographs")
    root = write_root(folder / "imagenet")
    return root, build_photographs(root, folder / "build")


@pytest.fixture
def digits(tmp_path):
    return pack(load_manifest("digits"), tmp_path / "digits", splits=["test"]).store


@pytest.fixture
def command(capsys):
    """Run a command and return (exit code, the JSON object on stdout)."""

    def call(*arguments: object) -> tuple[int, dict]:
        code = run(app, ["pack", *map(str, arguments), "--json"], "wordnet-splits")
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def damaged_root(photographs, tmp_path):
    root = Path(shutil.copytree(photographs[0], tmp_path / "imagenet"))
    image_file(root, TENCH, 1).unlink()
    image_file(root, TENCH, 2).write_bytes(jpeg(50, (300, 300)))
    image_file(root, SHARK, 0).write_bytes(b"")
    return root


def build_many(folder: Path) -> Path:
    """A benchmark of two groups of noise, each of several chunks of work."""
    text = 'schema = 1\nname = "many"\ndraw = "many"\n'
    for source, role, count in (("gaussian", "far", 150), ("uniform", "id", 200)):
        text += f'[[group]]\nname = "{source}"\nrole = "{role}"\nsource = "{source}"\n'
        text += "noise = { shape = [4, 4, 3], seed = 0 }\nclasses = { rest = true }\n"
        text += f"images = {{ test = {{ generate = {count} }} }}\n"
    folder.mkdir(parents=True, exist_ok=True)
    recipe = folder / "many.toml"
    recipe.write_text(text, encoding="utf-8")
    made = build_benchmark(recipe, out=folder / "build").folder
    assert made is not None
    return made


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))
