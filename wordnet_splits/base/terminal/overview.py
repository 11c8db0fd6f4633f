"""The commands of a program, found in the modules of its core and its extensions, under headings."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from wordnet_splits.base.terminal.options import make_program

Headings = Mapping[str, Sequence[str]]
"""Heading of the overview -> its commands and families, in order."""


def make_overview(
    name: str,
    about: str,
    examples: Sequence[str],
    *,
    headings: Headings,
    core: Sequence[Path],
    package: str,
    command: str | None = None,
) -> typer.Typer:
    """Return a program with the commands of its core and of every extension that is there.

    A module of commands lists their names in ``COMMANDS`` and adds them in ``add_commands(app)``.

    Parameters
    ----------
    core : files of the modules of the core; an extension has a module ``commands`` in its folder.
    package : the package whose folders are the extensions.
    command : a command or family, to import the modules that add it alone; an unknown one imports all.
    """
    app = make_program(name, about, examples, cls=_headed(headings))
    rooms = core[0].parent.parent
    order = _order(headings)
    names = {file: _commands_of(file) for file in [*core, *sorted(rooms.glob("*/commands.py"))]}
    files = sorted(names, key=lambda file: min(order.get(name, len(order)) for name in names[file]))
    for file in [file for file in files if command in names[file]] or files:
        import_module(f"{package}.{file.parent.name}.{file.stem}").add_commands(app)
    return app


def _order(headings: Headings) -> dict[str, int]:
    return {name: n for n, name in enumerate(name for names in headings.values() for name in names)}


def _commands_of(file: Path) -> tuple[str, ...]:
    """Return the ``COMMANDS`` of a module, without importing it and all that it needs."""
    text = file.read_text(encoding="utf-8")
    declared = re.search(r"^COMMANDS = (\(.*?\))$", text, re.MULTILINE | re.DOTALL)
    return tuple(literal_eval(declared[1])) if declared else ()


def _headed(headings: Headings) -> type[TyperGroup]:
    """Return a group of commands whose overview has these headings; those without commands are left out."""

    class Headed(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            """Return the names of the commands in the order of the headings."""
            order = _order(headings)
            return sorted(super().list_commands(ctx), key=lambda name: order.get(name, len(order)))

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            """Write the commands under their headings, all in columns of one width."""
            there = self.list_commands(ctx)
            width = max(map(len, there), default=0)
            limit = formatter.width - 6 - width
            others = [name for name in there if name not in _order(headings)]
            for heading, names in {**headings, "Others": others}.items():
                commands = ((name, self.get_command(ctx, name)) for name in names if name in there)
                rows = [(name.ljust(width), cmd.get_short_help_str(limit)) for name, cmd in commands if cmd]
                if rows:
                    with formatter.section(heading):
                        formatter.write_dl(rows)

    return Headed
