"""Running ``wordnet-splits`` as its users do: in this process, and as a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.cli.main import app, run
from wordnet_splits.datasets.sources.by_name import VARIABLE_PREFIX

PROGRESS = re.compile(r"[^:]+: [0-9,]+ of [0-9,]+")
PROGRAM = [sys.executable, "-m", "wordnet_splits.cli.main"]
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Finished:
    """Exit code, stdout and stderr of one command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object that stdout holds, and nothing else."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def error(self) -> str:
        """The one line with which bad input is refused; a slow machine has said before how far it was."""
        assert self.code == 2, self
        assert self.out == "", self.out
        *before, line = self.err.splitlines()
        assert [said for said in before if not PROGRESS.match(said)] == [], self.err
        assert line.startswith("error: "), self.err
        return line


class Command:
    """Runs commands in this process, with none of this machine's roots and in a folder of their own."""

    def __init__(self, capsys: Any, monkeypatch: Any, folder: Path) -> None:
        for name in [n for n in os.environ if n.startswith("WORDNET_SPLITS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        monkeypatch.chdir(folder)
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Finished:
        """Run one command."""
        self._capsys.readouterr()
        code = run(app, [str(a) for a in arguments], "wordnet-splits")
        streams = self._capsys.readouterr()
        return Finished(code, streams.out, streams.err)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This process's environment without roots or locale, importing this checkout."""
    dropped = (VARIABLE_PREFIX, "WORDNET_SPLITS_", "LC_", "LANG", "PYTHONHASHSEED", "TZ")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "XDG_CONFIG_HOME": str(folder / "config"), **more}


def start(folder: Path, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start a command as a process of its own in ``folder``."""
    more: Mapping[str, str] = options.pop("env", {})
    return subprocess.Popen(
        [*PROGRAM, *(str(a) for a in arguments)],
        cwd=folder,
        env=environment(folder, **more),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str], seconds: float = 120) -> Finished:
    """Wait for a command; one that hangs is killed and fails the test."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Finished(process.returncode, out or "", err)


def spawn(folder: Path, *arguments: object, **options: Any) -> Finished:
    """Run a command as a process of its own in ``folder``."""
    return finish(start(folder, *arguments, **options))


def blocks_of(page: str) -> list[tuple[str, str, str]]:
    """Return language and code of a page's blocks, and the text block after each, which it prints."""
    return re.findall(r"```(sh|python)\n(.*?)```(?:\n\n```text\n(.*?)```)?", page, re.DOTALL)


def assert_printed(shown: str, printed: str) -> None:
    """Assert that these lines were printed one after another; an ellipsis stands for any text, or lines."""
    patterns = (".*".join(map(re.escape, line.split("..."))) + r" *\n" for line in shown.splitlines())
    lines = (r"(?:.*\n)*?" if pattern == r".* *\n" else pattern for pattern in patterns)
    assert re.search("".join(lines), printed), f"{shown}\n--- printed:\n{printed}"
