"""Modules that are imported by the first test that uses them, not when tests are collected."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class Imported:
    """A module that only a worker that uses it imports; the whole file is skipped where it is not installed.

    Every worker of xdist collects all tests, and keeps to its end what files of tests import at their heads.
    """

    def __init__(self, name: str, reason: str | None = None) -> None:
        self._name = name
        if find_spec(name.partition(".")[0]) is None:
            pytest.skip(reason or f"{name} is not installed", allow_module_level=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks for some when it collects tests
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
