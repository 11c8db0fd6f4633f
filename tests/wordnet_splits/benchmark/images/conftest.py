"""Roots, benchmarks and stores for the tests of packed stores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.photographs import SHARK, TENCH, build_photographs, image_file, jpeg, write_root
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
