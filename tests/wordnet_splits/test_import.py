"""What ``import wordnet_splits`` brings: every public name on request, nothing heavy beforehand."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

import wordnet_splits
from tests.wordnet_splits.command import environment

HEAVY = (
    "nltk",
    "pandas",
    "datasets",
    "torch",
    "scipy",
    "pyarrow",
    "numpy",
    "PIL",
    "inflect",
    "numba",
    "matplotlib",
)
NOT_FOR_TABLES = (
    "nltk",
    "pandas",
    "datasets",
    "torch",
    "torchvision",
    "scipy",
    "lmdb",
    "inflect",
    "numba",
    "cv2",
)


def modules_after(statement: str, folder) -> set[str]:
    """The modules that a fresh interpreter has loaded after ``statement``."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{report}"],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_nothing_heavy(tmp_path):
    loaded = modules_after("import wordnet_splits", tmp_path)
    assert "wordnet_splits" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.extensions("wordnet_splits.audit")
def test_all_public_names_together_load_no_framework(tmp_path):
    names = "import wordnet_splits as ws\nfor name in ws.__all__: getattr(ws, name)"
    loaded = modules_after(names, tmp_path)
    assert "wordnet_splits.benchmark.construct" in loaded
    assert loaded.isdisjoint(NOT_FOR_TABLES)


@pytest.mark.parametrize("name", dir(wordnet_splits))
def test_every_public_name_is_there_under_its_own_name(name):
    value = getattr(wordnet_splits, name)
    assert value.__name__ == name
    assert value.__doc__, f"{name} has no docstring"
    assert importlib.util.find_spec(f"wordnet_splits.{name}") is None, "a module would take its place"


def test_all_and_dir_are_the_public_names():
    assert dir(wordnet_splits) == vars(wordnet_splits)["__all__"]
    found: dict[str, object] = {}
    exec("from wordnet_splits import *", found)
    assert set(dir(wordnet_splits)) <= found.keys()


def test_a_name_that_is_not_public():
    with pytest.raises(AttributeError, match="module 'wordnet_splits' has no attribute 'biuld'"):
        _ = wordnet_splits.biuld  # type: ignore[attr-defined]


def test_the_help_of_the_program_loads_no_data_library(tmp_path):
    show_help = """
import sys
from wordnet_splits.cli.main import main
sys.argv = ["wordnet-splits", "--help"]
try:
    main()
except SystemExit as done:
    assert not done.code
"""
    loaded = modules_after(show_help, tmp_path)
    assert "typer" in loaded
    assert loaded.isdisjoint(NOT_FOR_TABLES)
