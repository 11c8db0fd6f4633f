"""The program ``wordnet-splits``."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer

from wordnet_splits.base.terminal.options import make_program
from wordnet_splits.base.terminal.runner import run, start

__all__ = ["app", "main", "run"]

COMMANDS = {
    "benchmarks": ("list", "build", "freeze", "verify", "diff"),
    "class_sets": ("sets",),
    "explaining": ("explain", "distance", "fidelity", "cite"),
    "new_benchmark": ("new", "benchmark", "inventory"),
    "auditing": ("audit", "audit-negatives", "mine-negatives", "thresholds"),
    "robustness": ("robust",),
    "leaks": ("leaks", "join", "duplicates"),
    "packing": ("pack",),
    "exchanging": ("export", "import"),
    "site": ("site",),
    "wordnet": ("wordnet",),
    "sources": ("sources",),
    "catalogs": ("catalog",),
    "hub": ("hub",),
}
"""Module -> the commands and families that it adds, in the order of the overview."""

app: typer.Typer
"""The program with all commands, made when it is first used."""


def make_app(command: str | None = None) -> typer.Typer:
    """Return the program with the commands of one module, or with all.

    Parameters
    ----------
    command : a command or family, whose module alone is imported; an unknown one imports all.
    """
    program = make_program(
        "wordnet-splits",
        "Benchmarks for what a vision model does not know: build, check, explain and compare splits.",
        ["wordnet-splits build digits", "wordnet-splits explain unknown-imagenet axolotl"],
    )
    modules = [module for module, names in COMMANDS.items() if command in names]
    for module in modules or COMMANDS:
        import_module(f"wordnet_splits.cli.{module}").add_commands(program)
    return program


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
