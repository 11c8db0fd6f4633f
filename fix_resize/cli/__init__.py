"""The command ``fix-resize``."""

from __future__ import annotations

from wordnet_splits.terminal.entry import enter


def program() -> None:
    """Run ``fix-resize``."""
    enter(f"{__name__}.main")
