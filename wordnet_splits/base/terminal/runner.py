"""Running a command line: every error becomes one line (or one object with --json) and an exit code."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, NoReturn

import typer

from wordnet_splits.base.errors import OutputError, SplitsError
from wordnet_splits.base.lazy import skip_pandas
from wordnet_splits.base.names import printable
from wordnet_splits.base.terminal.entry import INTERRUPTION
from wordnet_splits.base.terminal.output import BAD_INPUT, DONE, INTERRUPTED, print_json, to_stderr

LONGEST_ERROR = 4000
"""Longest error on a terminal, in letters: a name from outside may have millions."""

# typer was built on click and now carries its own copy, so its errors are found through its own classes
_click: Any = sys.modules[typer.BadParameter.__mro__[1].__module__]
_NoArguments: tuple[type[Exception], ...] = tuple(
    vars(_click)[n] for n in ("NoArgsIsHelpError",) if n in vars(_click)
)


def start(application: typer.Typer, program: str) -> NoReturn:
    """Run ``program`` with the arguments it was called with, and exit."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as `>&-` in a shell does
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the program ends
    if isinstance(sys.stdout, io.TextIOWrapper):  # one object in UTF-8, whatever the locale
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    skip_pandas()
    sys.exit(run(application, sys.argv[1:], program))


def run(application: typer.Typer, arguments: list[str], program: str) -> int:
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
