"""The command ``unknown-eval``."""

from __future__ import annotations

from wordnet_splits.base.terminal.entry import run_main


def program() -> None:
    """Run ``unknown-eval``."""
    run_main(f"{__name__}.main")
