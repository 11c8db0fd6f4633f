"""The command line ``wordnet-splits``."""

from __future__ import annotations

from wordnet_splits.terminal.entry import enter


def program() -> None:
    """Run ``wordnet-splits``."""
    enter(f"{__name__}.main")
