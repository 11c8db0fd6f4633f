"""The examples in docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.conftest import REPOSITORY

PACKAGES = ("wordnet_splits", "fix_resize", "loaders")


def modules_with_examples() -> list[str]:
    paths = (path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob("*.py")))
    with_examples = (path.relative_to(REPOSITORY) for path in paths if ">>> " in path.read_text("utf-8"))
    return [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in with_examples]


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_of_docstrings(module: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(importlib.import_module(module), optionflags=flags)
    assert result.failed == 0
