"""Run a test module statement by statement, and record which statements hold when our code does the work.

A peer's test mixes what we compute with what we do not (other parts of speech, weighted samples), and pytest
stops a test at its first failure. So every statement of a test function is wrapped: a failure is recorded and
the next statement runs.
"""

from __future__ import annotations

import ast
import json
import os
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

RECORDS = "PEER_RECORDS"
"""Environment variable with the file to which records are appended."""
ADAPTER = "PEER_ADAPTER"
"""Environment variable with the module of the adapter to install."""
AGREES, DIFFERS, OUTSIDE = "agrees", "differs", "outside"


class OutOfScope(BaseException):
    """What a peer computes and we do not; not an Exception, so that ``pytest.raises`` does not take it."""


@dataclass(frozen=True)
class Record:
    """How one statement ended.

    Parameters
    ----------
    test : the test function, or the doctest file.
    line : its line there. source : its text.
    outcome : ``agrees``, ``differs`` or ``outside`` (of what we compute).
    detail : why it differs or is outside.
    """

    test: str
    line: int
    source: str
    outcome: str
    detail: str = ""


class _Test:
    """The test that runs: whether our code was called in it, and whether a statement was out of scope."""

    name = ""
    calls = 0
    outside: str | None = None


def adapted(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function of an adapter, so that statements count from its first call on."""

    @wraps(function)
    def counted(*args: P.args, **kwargs: P.kwargs) -> R:
        _Test.calls += 1
        return function(*args, **kwargs)

    return counted


def begin(test: str) -> None:
    """Start a test: no statement has called our code yet."""
    _Test.name, _Test.calls, _Test.outside = test, 0, None


class statement:
    """Record how the statement in its body ended; swallow what it raises."""

    def __init__(self, line: int, source: str) -> None:
        self.line, self.source = line, source

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return False
        outcome, detail = outcome_of(error, _Test.outside)
        if outcome == OUTSIDE:
            _Test.outside = detail
        if _Test.calls or outcome == OUTSIDE:
            write(Record(_Test.name, self.line, self.source, outcome, detail))
        return True


def outcome_of(error: BaseException | None, outside: str | None) -> tuple[str, str]:
    """Return outcome and detail of a statement; ``outside`` says why an earlier one was out of scope."""
    if error is None:
        return AGREES, ""
    if isinstance(error, OutOfScope):
        return OUTSIDE, str(error)
    if isinstance(error, AttributeError) and str(error.name).startswith("_"):
        return OUTSIDE, "private attributes"
    if isinstance(error, NameError) and outside is not None:  # an earlier statement would have assigned it
        return OUTSIDE, outside
    return DIFFERS, f"{type(error).__name__}: {first_line(str(error))}"


def first_line(text: str) -> str:
    """Return the first line of a text that is not empty."""
    return next((line for line in text.splitlines() if line.strip()), "")


def write(record: Record) -> None:
    """Append a record to the file named by `RECORDS`."""
    with open(os.environ[RECORDS], "a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record)) + "\n")


def read(path: Path) -> list[Record]:
    """Return the records of a file."""
    return [Record(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def wrapped(source: str) -> str:
    """Return a test module whose test functions run statement by statement."""
    tree = ast.parse(source)
    for function in _tests(tree):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        start = ast.parse(f"_statements.begin({function.name!r})").body
        function.body = [*start, *(_wrap(node, source) for node in body)]
    places = [i for i, node in enumerate(tree.body) if _is_head(node)]
    first = places[-1] + 1 if places else 0
    tree.body[first:first] = ast.parse("from tools.peers import statements as _statements").body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _is_head(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield node


def _wrap(node: ast.stmt, source: str) -> ast.stmt:
    text = textwrap.dedent(ast.get_source_segment(source, node) or "")
    (wrapper,) = ast.parse(f"with _statements.statement({node.lineno}, {text!r}): pass").body
    assert isinstance(wrapper, ast.With)
    wrapper.body = [node]
    return wrapper


class Outside:
    """A stand-in whose every use is out of scope."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name, name=name, obj=self)
        raise OutOfScope(self._reason)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise OutOfScope(self._reason)
