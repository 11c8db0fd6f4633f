"""The help pages of a program, one section a command, from its application."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import typer

from generating.markdown import spoken, table

PROGRAMS = {
    "fix-resize": "fix_resize.cli.main",
    "unknown-eval": "loaders.harness.cli.main",
    "wordnet-splits": "wordnet_splits.cli.main",
}


def lines(program: str) -> Iterator[str]:
    """Yield a section for each command of a program."""
    root = typer.main.get_command(importlib.import_module(PROGRAMS[program]).app.application())
    for name, command in commands(root):
        yield from section(f"{program} {name}", command)


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, by its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def section(words: str, command: Any) -> Iterator[str]:
    """Yield a command's help: usage, text, arguments and options, examples."""
    context = command.make_context(words, [], resilient_parsing=True)
    yield f"### `{words}`"
    yield ""
    yield from ("```text", " ".join([words, *command.collect_usage_pieces(context)]), "```", "")
    yield spoken(command.help or "")
    yield ""
    records = [one.get_help_record(context) for one in command.params if one.name != "help"]
    if rows := [(f"`{name}`", spoken(text)) for name, text in filter(None, records)]:
        yield from table(("option", "what"), rows)
    notes, _, examples = (command.epilog or "").partition("\b\nExamples:\n")
    yield spoken(notes)
    yield ""
    yield from ("```sh", *(line.removeprefix("  ") for line in examples.splitlines()), "```", "")
