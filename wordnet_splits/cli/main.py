"""The command ``wordnet-splits``: one program, every error one line and an exit code."""

from __future__ import annotations

import sys

import click
import typer

from wordnet_splits.cli import benchmarks, datasets, explaining
from wordnet_splits.cli.output import BAD_INPUT, DONE, INTERRUPTED, print_json, say
from wordnet_splits.errors import SplitsError

app = typer.Typer(
    name="wordnet-splits",
    help="Benchmarks for what a vision model does not know: build, check, explain and compare splits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for module in (benchmarks, explaining, datasets):
    module.register(app)


def run(application: typer.Typer, arguments: list[str], program: str) -> int:
    """Run a typer application and return its exit code; an error is one line, or one object with --json."""
    try:
        code = application(args=arguments, prog_name=program, standalone_mode=False)
        return code if isinstance(code, int) else DONE
    except SplitsError as error:
        return _fail(error, arguments)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return BAD_INPUT
    except click.UsageError as error:
        place = error.ctx.command_path if error.ctx else program
        return _fail(
            SplitsError(error.format_message().rstrip("."), where=place, hint=f"see {place} --help"),
            arguments,
        )
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("interrupted; nothing half-written is left, and the same command goes on from here")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return DONE


def _fail(error: SplitsError, arguments: list[str]) -> int:
    if "--json" in arguments:
        print_json({"error": error.as_dict()})
    say(f"error: {error}")
    return error.exit_code


def main() -> None:
    """Run ``wordnet-splits``."""
    sys.exit(run(app, sys.argv[1:], "wordnet-splits"))


if __name__ == "__main__":
    main()
