"""What the three programs print: every help page, typical mistakes and small outputs, one file a program.

``python -m tests.wording.pages`` (`make wording`) writes the files again.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer

from wordnet_splits.base.terminal.runner import run

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PROGRAMS = {
    "wordnet-splits": "wordnet_splits.cli.main",
    "fix-resize": "fix_resize.cli.main",
    "unknown-eval": "loaders.harness.cli.main",
}
COMMANDS: dict[str, Any] = tomllib.loads((HERE / "commands.toml").read_text("utf-8"))
"""The files that commands read, and the commands of each program, in the order in which they run."""
MOST_LINES = 30
"""Lines that are kept of an output that is not a help page."""
PROGRESS = re.compile(r"[^:]+: [0-9,]+ of [0-9,]+")
"""What only a slow machine prints."""


def page(program: str) -> str:
    """Return what a program prints: its help pages, then the commands of ``commands.toml``."""
    app = importlib.import_module(PROGRAMS[program]).app
    parts = []
    with working_folder() as folder:
        helps = [[*path, "--help"] for path in command_paths(typer.main.get_command(app.application()))]
        listed = [shlex.split(line) for lines in COMMANDS[program].values() for line in lines]
        for arguments in [*helps, *listed]:
            asked = [word.replace("REPOSITORY", str(REPOSITORY)) for word in arguments]
            code, printed = printed_by(app, asked, program)
            ending = f"\n(exit code {code})\n" if code else "\n"
            lines = normalised(printed, folder)
            if "--help" not in arguments and len(lines) > MOST_LINES:
                lines[MOST_LINES:] = [f"[{len(lines) - MOST_LINES} more lines]"]
            parts.append("\n".join([f"$ {shlex.join([program, *arguments])}", *lines]) + ending)
    return "\n".join(parts)


@contextlib.contextmanager
def working_folder() -> Iterator[Path]:
    """Work in a new folder with the files of ``commands.toml``, without the roots of this machine."""
    before, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="wording") as name:
        folder = Path(name).resolve()
        for file, text in COMMANDS["files"].items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, "utf-8")
        for key in [key for key in os.environ if key.startswith("WORDNET_SPLITS_")]:
            del os.environ[key]
        os.environ.update(COLUMNS="100", NO_COLOR="1", XDG_CONFIG_HOME=name, XDG_CACHE_HOME=name)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(environment)


def command_paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of a command and of all commands below it."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from command_paths(below, (*path, name))


def printed_by(app: Any, arguments: list[str], program: str) -> tuple[int, str]:
    """Run a command in this process and return its exit code and both streams."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = run(app, arguments, program)
    return code, stream.getvalue()


def normalised(text: str, folder: Path) -> list[str]:
    """Return the lines of a text without what differs between machines and versions."""
    text = text.replace(str(folder), "FOLDER").replace(str(REPOSITORY), "REPOSITORY")
    text = re.sub(rf"\b{re.escape(version('wordnet-splits'))}\b", "VERSION", text)
    return [line.rstrip() for line in text.strip("\n").splitlines() if not PROGRESS.fullmatch(line)]


def main() -> None:
    """Write the page of every program again."""
    for program in PROGRAMS:
        path = HERE / f"{program}.txt"
        path.write_text(page(program), "utf-8")
        sys.stdout.write(f"{path.relative_to(REPOSITORY)}\n")


if __name__ == "__main__":
    main()
