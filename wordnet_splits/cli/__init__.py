"""The command line ``wordnet-splits``."""

from __future__ import annotations

from wordnet_splits.base.terminal.entry import run_main


def program() -> None:
    """Run ``wordnet-splits``."""
    run_main(f"{__name__}.main")
