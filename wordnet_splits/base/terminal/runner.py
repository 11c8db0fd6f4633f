"""The three programs: commands registered by a decorator, an overview with headings, and their errors.

Every error of a command line becomes one line (or one object with --json) and an exit code.
"""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from wordnet_splits.base.errors import OutputError, SplitsError, UnknownNameError, unknown
from wordnet_splits.base.lazy import skip_pandas
from wordnet_splits.base.names import printable
from wordnet_splits.base.registry import Registry
from wordnet_splits.base.terminal.entry import INTERRUPTION
from wordnet_splits.base.terminal.output import BAD_INPUT, DONE, INTERRUPTED, print_json, to_stderr, to_stdout

Function = TypeVar("Function", bound=Callable[..., Any])

EXAMPLES: Final = "Examples:"
EXAMPLE_WIDTH: Final = 76
"""Letters of a line of an example, which a help page indents by four."""
OTHERS: Final = "Others"
"""Heading of commands without one."""
COMMAND_NAME: Final = re.compile(r"[a-z][a-z-]*( [a-z][a-z-]*)?")
REGISTRATION: Final = re.compile(r'^@?app\.(?:command|group)\(\s*"([a-z -]+)"', re.MULTILINE)
"""A command or group in the text of a module."""
LONGEST_ERROR: Final = 4000
"""Longest error on a terminal, in letters: a name from outside may have millions."""

# typer was built on click and now carries its own copy, so its errors are found through its own classes
_click: Any = sys.modules[typer.BadParameter.__mro__[1].__module__]
_NoArguments: tuple[type[Exception], ...] = tuple(
    vars(_click)[n] for n in ("NoArgsIsHelpError",) if n in vars(_click)
)


@dataclass(frozen=True)
class Command:
    """A command, or a group of commands, which has no ``function``."""

    name: str
    function: Callable[..., Any] | None
    heading: str
    summary: str
    examples: tuple[str, ...] = ()
    notes: str = ""
    module: str = ""
    line: int = 0


class Program:
    """A program whose commands are registered by `command`; calling it runs a command line.

    Parameters
    ----------
    examples : command lines at the end of its help page.
    headings : headings of the overview, in order.
    folder : package of the modules of its core commands; "" if all are registered by hand.
    rooms : package whose subpackages may each have a module ``commands``.
    """

    def __init__(
        self,
        name: str,
        about: str,
        examples: Sequence[str],
        *,
        headings: Sequence[str] = (),
        folder: str = "",
        rooms: str = "",
    ) -> None:
        self.name, self.about, self.headings = name, about, (*headings, OTHERS)
        self.folder, self.rooms, self._examples = folder, rooms, examples
        self.commands = Registry[Command](
            "command",
            folder,
            f"{name.replace('-', '_')}.commands",
            pattern=COMMAND_NAME,
            rooms=rooms,
            room_module="commands",
        )

    def command(
        self, name: str, *, examples: Sequence[str], heading: str = OTHERS, notes: str = ""
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a command; its docstring is the help page.

        Parameters
        ----------
        name : ``"build"``, or ``"audit list"`` for a command of a group, which needs no heading.
        examples : command lines at the end of the help page, which a test runs in the order of the overview.
        notes : a paragraph between the options and the examples.
        """

        def make(function: Callable[..., Any]) -> Command:
            summary = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
            place = function.__module__, function.__code__.co_firstlineno
            return Command(name, function, heading, summary, tuple(examples), notes, *place)

        return self.commands.register(name, make)

    def group(self, name: str, summary: str, *, heading: str = OTHERS) -> None:
        """Register a group, whose commands may be registered in any module; it shows their examples."""
        frame = sys._getframe(1)
        module, line = str(frame.f_globals["__name__"]), frame.f_lineno
        self.commands.add(name, Command(name, None, heading, summary, module=module, line=line), shipped=True)

    @property
    def examples(self) -> list[str]:
        """The examples of the program and of its commands, in the order of the overview."""
        commands = self._ordered(self._find(None))
        return list(dict.fromkeys([*self._examples, *chain.from_iterable(c.examples for c in commands)]))

    def application(self, word: str | None = None) -> typer.Typer:
        """Return the application with the commands whose first word is ``word``, or with all of them."""
        commands = self._ordered(self._find(word))
        overview: dict[str, list[str]] = {}
        for command in commands:
            if " " not in command.name:
                overview.setdefault(command.heading, []).append(command.name)
        app = typer.Typer(
            name=self.name,
            cls=_headed(overview),
            help=self.about,
            epilog=_epilog(self._examples),
            no_args_is_help=True,
            add_completion=False,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        app.callback()(_program_options)
        groups = {c.name: self._make_group(c, commands) for c in commands if c.function is None}
        for name, group in groups.items():
            app.add_typer(group, name=name, short_help=group.info.help)
        for command in commands:
            if command.function is not None:
                first, _, second = command.name.partition(" ")
                epilog = _epilog(command.examples, command.notes)
                target = groups[first] if second else app
                target.command(second or first, short_help=command.summary, epilog=epilog)(command.function)
        return app

    def __call__(self, args: Sequence[str], **options: Any) -> Any:
        """Run a command line, as a typer application does."""
        return self.application(next(iter(args), None))(args=args, **options)

    def start(self) -> NoReturn:
        """Run the program with the arguments it was called with, and exit."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the caller, as `>&-` in a shell does
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the end
        if isinstance(sys.stdout, io.TextIOWrapper):  # one object in UTF-8, whatever the locale
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        skip_pandas()
        sys.exit(run(self, sys.argv[1:], self.name))

    def _find(self, word: str | None) -> list[Command]:
        """Return the commands whose first word is ``word``, importing only their modules; else all."""
        declared = [(module, name) for module, text in self._modules() for name in REGISTRATION.findall(text)]
        named = [(module, name) for module, name in declared if name.split()[0] == word]
        if named:
            for module, _ in named:
                import_module(module)
            added = (name for name in self.commands.added if name.split()[0] == word)
            found = self.commands.loadable(dict.fromkeys([*(name for _, name in named), *added]))
        else:
            self.commands.entries()  # modules of other packages register their groups
            found = self.commands.entries()
            if word and not word.startswith("-") and word not in {name.split()[0] for name in found}:
                near = [name for name in found if word in name.split()]
                error = unknown("command", word, found, near=near)
                hint = f"see {self.name} --help"
                raise UnknownNameError(error.what, where=self.name, near=error.near, hint=hint)
        groups = {name for name, command in found.items() if command.function is None}
        return [c for name, c in found.items() if " " not in name or name.split()[0] in groups]

    def _modules(self) -> Iterator[tuple[str, str]]:
        """Yield the name and text of every module with commands, without importing it."""
        for package, pattern in ((self.folder, "*.py"), (self.rooms, "*/commands.py")):
            spec = find_spec(package) if package else None
            for place in (spec and spec.submodule_search_locations) or ():
                for file in Path(place).glob(pattern):
                    module = ".".join([package, *file.relative_to(place).with_suffix("").parts])
                    yield module, file.read_text("utf-8")

    def _ordered(self, commands: Sequence[Command]) -> list[Command]:
        """Return commands as the overview lists them: by heading, those of the core first, then by module."""
        headings = {name: n for n, name in enumerate(self.headings)}

        def order(command: Command) -> tuple[int, bool, bool, str, int]:
            first = self.commands[command.name.split()[0]]
            in_core = f"{command.module}.".startswith(f"{self.folder}.")
            shipped = f"{command.module}.".startswith(f"{self.rooms}.")
            heading = headings.get(first.heading, len(headings))
            return heading, not in_core, not shipped, command.module, command.line

        return sorted(commands, key=order)

    def _make_group(self, group: Command, commands: Sequence[Command]) -> typer.Typer:
        """Return an empty group with the first examples of its commands."""
        examples = [c.examples for c in commands if c.name.startswith(f"{group.name} ")]
        firsts = [line for line in chain.from_iterable(zip_longest(*examples)) if line][:2]
        return typer.Typer(
            help=group.summary, epilog=_epilog(firsts), no_args_is_help=True, rich_markup_mode=None
        )


def _headed(overview: Mapping[str, Sequence[str]]) -> type[TyperGroup]:
    """Return a group of commands with an overview: heading -> names of commands."""

    class Headed(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            """Return the names of the commands in the order of the overview."""
            return list(chain.from_iterable(overview.values()))

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            """Write the commands under their headings, all in columns of one width."""
            width = max(map(len, self.list_commands(ctx)), default=0)
            limit = formatter.width - 6 - width
            for heading, names in overview.items():
                commands = ((name, self.commands[name]) for name in names)
                with formatter.section(heading if len(overview) > 1 else "Commands"):
                    formatter.write_dl(
                        [(name.ljust(width), command.get_short_help_str(limit)) for name, command in commands]
                    )

    return Headed


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


def _epilog(examples: Sequence[str], notes: str = "") -> str:
    """Return the end of a help page; the backspace keeps click from rewrapping the examples."""
    lines = "\n".join(f"  {folded(line)}" for line in examples)
    return (f"{notes}\n\n" if notes else "") + f"\b\n{EXAMPLES}\n{lines}"


def folded(line: str) -> str:
    """Return a command line in lines of at most `EXAMPLE_WIDTH` letters, for a shell."""
    if len(line) <= EXAMPLE_WIDTH:
        return line
    lines = [""]
    for word in re.findall(r"(?:-\S+ (?!-))?(?:'[^']*'|[^'\s])+", line):
        if lines[-1] and len(lines[-1]) + len(word) + 3 > EXAMPLE_WIDTH:
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return " \\\n  ".join(lines)


def run(application: Callable[..., Any], arguments: list[str], program: str) -> int:
    """Run a typer application and return its exit code; an error is one line, or one object with --json."""
    try:
        _refuse_empty(arguments, program)
        code = application(args=arguments, prog_name=program, standalone_mode=False)
        sys.stdout.flush()
    except SplitsError as error:
        return _fail(error, arguments)
    except _NoArguments as error:
        print(error, file=sys.stderr)  # a help page
        return BAD_INPUT
    except _click.UsageError as error:
        command = error.ctx.command_path if error.ctx else program
        hint = f"see {command} --help"
        return _fail(SplitsError(error.format_message().rstrip("."), where=command, hint=hint), arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit):  # the reader, such as head, has seen enough; typer exits then
        _close_stdout()
        return DONE
    except MemoryError as error:
        lines = str(error).splitlines()
        message = "the memory is exhausted" + (f" ({lines[0]})" if lines else "")
        return _fail(SplitsError(message, hint="use fewer workers or smaller batches"), arguments)
    except OSError as error:
        if error.filename is None:
            _close_stdout()
        return _fail(_system_error(error), arguments)
    if code == INTERRUPTED:  # typer returns it or raises, depending on its version
        to_stderr(INTERRUPTION)
    return code if isinstance(code, int) else DONE


def _refuse_empty(arguments: list[str], program: str) -> None:
    """Raise SplitsError for an empty argument: as a path it would be the working directory."""
    before = program
    for argument in arguments:
        name, equals, value = argument.partition("=")
        is_option = name.startswith("--") and bool(equals)
        if not (value if is_option else argument):
            where = name if is_option else f"after {before}"
            raise SplitsError("an empty argument", where=where, hint="is a variable of the shell not set?")
        before = argument


def _close_stdout() -> None:
    """Discard the pending output, so that the interpreter does not complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _system_error(error: OSError) -> SplitsError:
    """Return the error of a file that no command foresaw, or of a full disk below stdout."""
    where = str(error.filename) if error.filename else "standard output"
    return OutputError(error.strerror or str(error), where=where, hint="fix that and run it again")


def _fail(error: SplitsError, arguments: list[str]) -> int:
    if "--json" in arguments:
        print_json({"error": error.as_dict()})
    to_stderr(f"error: {printable(error, LONGEST_ERROR)}")
    return error.exit_code
