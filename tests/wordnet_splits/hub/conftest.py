"""A Hub on this machine, and commands that know its address and token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hub_server import Hub, at_hand
from tests.wordnet_splits.command import REPOSITORY, Command

DIGITS = REPOSITORY / "manifests" / "digits"
OTHER = REPOSITORY / "manifests" / "rungs-cifar100"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A Hub whose token this user has."""
    with at_hand(monkeypatch, tmp_path) as state:
        yield state


@pytest.fixture
def splits(
    hub: Hub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., object]:
    """Run ``wordnet-splits`` beside that Hub."""
    return Command(capsys, monkeypatch, tmp_path)
