"""The applications of the three programs, the options that they share, and the examples of help pages."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from wordnet_splits.base.terminal.output import to_stdout

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
RootOptions = Annotated[
    list[str] | None,
    typer.Option("--root", metavar="NAME=DIR", help="Folder of a source's files; repeatable."),
]
Declared = Annotated[
    Path | None,
    typer.Option(
        "--declared",
        metavar="FILE",
        help="Declaration of your dataset, if not beside it: a dataset.toml or a recipe.",
        exists=True,
        dir_okay=False,
    ),
]
Manifests = Annotated[
    Path | None, typer.Option(help="Folder of frozen manifests.", exists=True, file_okay=False)
]
Workers = Annotated[
    int, typer.Option(min=1, help="Processes, which read images or, without roots, do whole benchmarks.")
]
AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Leave out images that a root lacks, and exit with code 3."),
]
Local = Annotated[
    bool,
    typer.Option("--local", help="Draw from the images of a root; the result is NAME@local, never frozen."),
]
BenchmarkOption = Annotated[str, typer.Option(help="A frozen benchmark, or the folder of a manifest.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1; a GPU by default if there is one.")]
WordNet = Annotated[
    str | None,
    typer.Option(help="Another WordNet: 'nltk', or a folder of WNDB files; by default the embedded 3.0."),
]
Language = Annotated[
    str,
    typer.Option(
        metavar="CODE|FILE.xml",
        help="Language of the class names: one of which the package wn has a lexicon, or a file of WN-LMF.",
    ),
]
IdTable = Annotated[
    Path | None,
    typer.Option(metavar="MAP.tsv", help="Synsets of names or identifiers: on each line both, with a tab."),
]
OnlyGroups = Annotated[list[str] | None, typer.Option("--group", help="Only this group; repeatable.")]
OnlySplits = Annotated[list[str] | None, typer.Option("--split", help="Only this split; repeatable.")]
PackedOption = Annotated[
    list[Path] | None,
    typer.Option("--packed", help="A store of `wordnet-splits pack`; repeatable."),
]

EXAMPLES = "Examples:"


def make_program(
    name: str, about: str, examples: Sequence[str], *, cls: type[TyperGroup] | None = None
) -> typer.Typer:
    """Return an empty application with ``-h``, ``--help`` and ``--version``."""
    app = typer.Typer(
        name=name,
        cls=cls,
        help=about,
        epilog=epilog(examples),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    app.callback()(_program_options)
    return app


def _print_version(context: typer.Context, version_asked: bool) -> None:
    if version_asked:
        to_stdout(f"{context.info_name} {version('wordnet-splits')}")
        raise typer.Exit


def _program_options(
    version_asked: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version_asked


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


def make_family(app: typer.Typer, name: str, about: str, examples: Sequence[str]) -> typer.Typer:
    """Add a family of commands, such as ``catalog``, and return it."""
    family = typer.Typer(help=about, epilog=epilog(examples), no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(family, name=name, short_help=about)
    return family


def find_family(app: typer.Typer, name: str) -> typer.Typer:
    """Return a family of commands that another module has added."""
    families = {group.name: group.typer_instance for group in app.registered_groups}
    family = families[name]
    assert family is not None
    return family


def add_command(
    app: typer.Typer, name: str, function: Callable[..., Any], examples: Sequence[str], notes: str = ""
) -> None:
    """Add a command; the first paragraph of its docstring is its line in the overview.

    Parameters
    ----------
    examples : command lines at the end of the help page, which a test runs in the order of registration.
    notes : a paragraph between the options and the examples.
    """
    overview = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    app.command(name, short_help=overview, epilog=epilog(examples, notes))(function)


def epilog(examples: Sequence[str], notes: str = "") -> str:
    """Return the end of a help page; the backspace keeps click from rewrapping the examples."""
    lines = "\n".join(f"  {line}" for line in examples)
    return (f"{notes}\n\n" if notes else "") + f"\b\n{EXAMPLES}\n{lines}"


def examples_of(app: typer.Typer) -> list[str]:
    """Return the examples of an application and of all its commands, in the order of registration."""
    epilogs = [app.info.epilog, *(command.epilog for command in app.registered_commands)]
    lines = [line for text in epilogs for line in str(text).partition(f"{EXAMPLES}\n")[2].splitlines()]
    for family in app.registered_groups:
        lines += examples_of(family.typer_instance) if family.typer_instance else []
    return list(dict.fromkeys(line.strip() for line in lines))
