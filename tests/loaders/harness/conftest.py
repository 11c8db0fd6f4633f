"""Fixtures of activation tests: the near group of digits, and an undisturbed extraction of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from loaders import UnknownDetectionSet
from loaders.harness.extraction.activations import Activations

from .extraction.extract_digits import extract_near
from .extraction.stored import SHARD


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Bytes are equal for equal numbers of threads; and these networks are small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="package")
def near() -> UnknownDetectionSet:
    return UnknownDetectionSet("digits", role="near")


@pytest.fixture(scope="package")
def reference(_one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Activations]:
    """An undisturbed extraction by one process."""
    store = tmp_path_factory.mktemp("reference")
    return store, extract_near(store, SHARD)
