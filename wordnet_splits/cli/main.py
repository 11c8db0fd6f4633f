"""The program ``wordnet-splits``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import typer

from wordnet_splits.base.terminal.options import make_overview
from wordnet_splits.base.terminal.runner import run, start

__all__ = ["app", "main", "run"]

CORE: Final = ("benchmarks", "explaining", "packing", "wordnet", "sources", "catalogs", "hub")
"""Modules of the commands of the core."""

HEADINGS: Final = {
    "Use": ("list", "explain", "distance", "cite", "pack"),
    "Make": ("new", "benchmark", "build", "freeze", "verify", "diff"),
    "Question": (
        "audit",
        "audit-negatives",
        "mine-negatives",
        "thresholds",
        "robust",
        "leaks",
        "duplicates",
        "sets",
        "fidelity",
    ),
    "Publish": ("hub", "export", "import", "site"),
    "Data": ("sources", "inventory", "catalog", "wordnet"),
}
"""Headings of the overview."""

app: typer.Typer
"""The program with all commands, made when it is first used."""


def make_app(command: str | None = None) -> typer.Typer:
    """Return the program with all commands, or with those of the modules that add one command."""
    return make_overview(
        "wordnet-splits",
        "Benchmarks for what a vision model does not know: build, check, explain and compare splits.",
        ["wordnet-splits build digits", "wordnet-splits explain unknown-imagenet axolotl"],
        headings=HEADINGS,
        core=[Path(__file__).with_name(f"{name}.py") for name in CORE],
        package="wordnet_splits",
        command=command,
    )


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = make_app()
    return globals()[name]


def main() -> None:
    """Run ``wordnet-splits``."""
    start(make_app(next(iter(sys.argv[1:]), None)), "wordnet-splits")


if __name__ == "__main__":
    main()
