"""The same Hub on this machine as the tests of pulling have."""

from __future__ import annotations

from tests.wordnet_splits.hub.conftest import DIGITS, OTHER, hub, splits

__all__ = ["DIGITS", "OTHER", "hub", "splits"]
