"""The command ``unknown-eval``."""

from __future__ import annotations

from wordnet_splits.terminal.entry import enter


def program() -> None:
    """Run ``unknown-eval``."""
    enter(f"{__name__}.main")
