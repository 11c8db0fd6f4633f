"""Run doctest files example by example: ``python -m tools.peers.doctests FILE ...``."""

from __future__ import annotations

import ast
import doctest
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.peers import plugin  # noqa: F401, installs the adapter
from tools.peers.statements import AGREES, DIFFERS, OUTSIDE, Record, begin, first_line, outcome_of, write

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
Raised = tuple[type[BaseException], BaseException, TracebackType]


class Runner(doctest.DocTestRunner):
    """Record each example instead of printing what failed."""

    outside: str | None = None

    def report_start(self, *_: Any) -> None:
        pass

    def report_success(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self._record(test, example, AGREES)

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        if "NameError" in got and self.outside is not None:
            self._record(test, example, OUTSIDE, self.outside)
        else:
            self._record(test, example, DIFFERS, f"prints {first_line(got)!r}")

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Raised
    ) -> None:
        outcome, detail = outcome_of(exc_info[1], self.outside)
        if outcome == OUTSIDE:
            self.outside = detail
            for name in _assigned(example.source):  # an older value must not stand in for it
                test.globs.pop(name, None)
        self._record(test, example, outcome, detail)

    def _record(
        self, test: doctest.DocTest, example: doctest.Example, outcome: str, detail: str = ""
    ) -> None:
        write(Record(test.name, example.lineno + 1, example.source.strip(), outcome, detail))


def _assigned(source: str) -> set[str]:
    nodes = ast.walk(ast.parse(source))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def main(paths: list[str]) -> None:
    """Run every example of every file."""
    for path in map(Path, paths):
        text = path.read_text("utf-8")
        test = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
        begin(path.name)
        Runner(optionflags=FLAGS).run(test, clear_globs=True)


if __name__ == "__main__":
    main(sys.argv[1:])
