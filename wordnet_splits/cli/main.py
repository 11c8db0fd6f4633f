"""The program ``wordnet-splits``."""

from __future__ import annotations

import re
import sys
from ast import literal_eval
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from wordnet_splits.base.terminal.options import make_program
from wordnet_splits.base.terminal.runner import run, start

__all__ = ["app", "main", "run"]

CORE = ("benchmarks", "explaining", "packing", "wordnet", "sources", "catalogs", "hub")
"""Modules of the commands of the core, in the order of the overview; an extension has one called commands."""

app: typer.Typer
"""The program with all commands, made when it is first used."""


def make_app(command: str | None = None) -> typer.Typer:
    """Return the program with the commands of the core and of every extension that is there.

    Parameters
    ----------
    command : a command or family, to add the commands of its modules alone; an unknown one adds all.
    """
    program = make_program(
        "wordnet-splits",
        "Benchmarks for what a vision model does not know: build, check, explain and compare splits.",
        ["wordnet-splits build digits", "wordnet-splits explain unknown-imagenet axolotl"],
    )
    here = Path(__file__).parent
    files = [here / f"{name}.py" for name in CORE] + sorted(here.parent.glob("*/commands.py"))
    for file in [file for file in files if command in _commands_of(file)] or files:
        import_module(f"wordnet_splits.{file.parent.name}.{file.stem}").add_commands(program)
    return program


def _commands_of(file: Path) -> tuple[str, ...]:
    """Return the ``COMMANDS`` of a module, without importing it and all that it needs."""
    declared = re.search(
        r"^COMMANDS = (\(.*?\))$", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return tuple(literal_eval(declared[1])) if declared else ()


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
