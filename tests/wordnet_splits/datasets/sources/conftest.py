"""CIFAR-100 as its publisher packs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .cifar_copies import class_names, load_batches


@pytest.fixture(scope="session")
def cifar100(real_data: Path) -> dict[str, dict[str, Any]]:
    return load_batches(real_data)


@pytest.fixture(scope="session")
def names100(real_data: Path) -> list[str]:
    return class_names(real_data)
