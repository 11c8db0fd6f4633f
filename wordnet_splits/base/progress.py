"""Progress of work that takes longer than two seconds: a bar on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any, Protocol

QUIET_SECONDS = 2.0
LINE_SECONDS = 10.0
NOTEBOOK_SECONDS = 0.2


class Task(Protocol):
    """A piece of work of known length."""

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        """Count ``steps`` as done; ``note``, such as a loss, is shown beside the label from now on."""

    def skip(self, steps: int) -> None:
        """Count ``steps`` as done before: by an interrupted run, or stored. They say nothing of the speed."""

    def extend(self, steps: int) -> None:
        """Add ``steps`` to the total."""


class Progress(Protocol):
    """The receiver of reports of long work; `Silent` by default."""

    def task(self, label: str, total: int) -> AbstractContextManager[Task]:
        """Begin ``total`` steps of work."""


class Silent:
    """No report at all."""

    @contextmanager
    def task(self, label: str, total: int) -> Iterator[Task]:
        """Begin work without a report."""
        yield self

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        """Do nothing."""

    def skip(self, steps: int) -> None:
        """Do nothing."""

    def extend(self, steps: int) -> None:
        """Do nothing."""


class Relabelled:
    """Tasks under another label, for callers that know better than the function which begins them."""

    def __init__(self, progress: Progress, label: str) -> None:
        self._progress, self._label = progress, label

    def task(self, label: str, total: int) -> AbstractContextManager[Task]:
        """Begin work under the other label."""
        return self._progress.task(self._label, total)


class PartOfTask:
    """Tasks that are parts of a running one: their steps count there, with ``note`` beside its label."""

    def __init__(self, whole: Task, note: str) -> None:
        self._whole, self._note, self.done = whole, note, 0

    @contextmanager
    def task(self, label: str, total: int) -> Iterator[Task]:
        """Begin a part."""
        self.advance(0)
        yield self

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        """Count steps as done, in the whole."""
        self.done += steps
        self._whole.advance(steps, note=self._note)

    def skip(self, steps: int) -> None:
        """Count steps as done before, in the whole."""
        self.done += steps
        self._whole.skip(steps)

    def extend(self, steps: int) -> None:
        """Add steps to the total of the whole."""
        self._whole.extend(steps)


class OnStderr:
    """A rich bar where stderr is a terminal, else a line every ten seconds; nothing before two seconds."""

    @contextmanager
    def task(self, label: str, total: int) -> Iterator[Task]:
        """Begin work that is shown once it has taken two seconds."""
        display = _Bar(label, total) if sys.stderr.isatty() else _Lines(label, total)
        try:
            yield display
        finally:
            display.close()


class InPlace:
    """A bar where stderr is a terminal or the cell of a notebook, nothing elsewhere or before two seconds."""

    @contextmanager
    def task(self, label: str, total: int) -> Iterator[Task]:
        """Begin work that is shown once it has taken two seconds."""
        display: Task
        if in_notebook():
            display = _NotebookBar(label, total)
        elif sys.stderr.isatty():
            display = _Bar(label, total)
        else:
            yield Silent()
            return
        try:
            yield display
        finally:
            display.close()


def choose_progress(progress: Progress | bool | None) -> Progress:
    """Return the receiver of progress reports that a caller asked for.

    Parameters
    ----------
    progress : None for `InPlace`, False for `Silent`, True for `OnStderr`, or a receiver.
    """
    if progress is None:
        return InPlace()
    if isinstance(progress, bool):
        return OnStderr() if progress else Silent()
    return progress


def choose_messages(progress: Progress) -> Callable[[str], None]:
    """Return the function that prints a line on stderr if progress is shown there, else ignores it."""
    on_terminal = isinstance(progress, InPlace) and (in_notebook() or sys.stderr.isatty())
    if not (on_terminal or isinstance(progress, OnStderr)):
        return lambda line: None
    return lambda line: print(_printable(line), file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


class _Lines:
    def __init__(self, label: str, total: int) -> None:
        self._label, self._total, self._note = label, total, ""
        self._done, self._skipped = 0, 0
        self._started = self._printed = time.monotonic()

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        self._done += steps
        self._note = f" ({note})" if note else self._note
        now = time.monotonic()
        if now - self._printed >= LINE_SECONDS:
            self._printed = now
            rate = (self._done - self._skipped) / (now - self._started)
            remaining = f", {(self._total - self._done) / rate:,.0f} s left" if rate else ""
            label = _printable(f"{self._label}{self._note}")
            speed = f", {rate:,.0f}/s" if rate >= 1 else ""
            line = f"{label}: {self._done:,} of {self._total:,}{speed}{remaining}"
            print(line, file=sys.stderr, flush=True)

    def skip(self, steps: int) -> None:
        self._done += steps
        self._skipped += steps

    def extend(self, steps: int) -> None:
        self._total += steps

    def close(self) -> None:
        pass


class _Bar:
    def __init__(self, label: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._label, self._total = label, total
        self._started, self._pending, self._visible = time.monotonic(), 0, False
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(label, total=total)

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        self._pending += steps
        if note:
            self._bar.update(self._task, description=f"{self._label} ({note})")
        if not self._visible:
            if time.monotonic() - self._started < QUIET_SECONDS:
                return
            self._visible = True
            self._show()
        self._bar.advance(self._task, self._pending)
        self._pending = 0
        self._refresh()

    def skip(self, steps: int) -> None:
        if not steps:
            return
        done = self._bar.tasks[0].completed + steps
        self._bar.reset(self._task, completed=int(done))  # what it knows of the speed is forgotten

    def extend(self, steps: int) -> None:
        self._total += steps
        self._bar.update(self._task, total=self._total)

    def close(self) -> None:
        if self._visible:
            self._hide()

    def _show(self) -> None:
        self._bar.start()

    def _refresh(self) -> None:
        """Do nothing: rich draws it again by itself."""

    def _hide(self) -> None:
        self._bar.stop()


class _NotebookBar(_Bar):
    """The bar as an output of a cell, drawn anew in place; rich's own would need ipywidgets."""

    _handle: Any = None
    _drawn = 0.0

    def _show(self) -> None:
        notebook: Any = import_module("IPython.display")
        self._handle = notebook.display(self._table(), display_id=True)

    def _refresh(self) -> None:
        if time.monotonic() - self._drawn >= NOTEBOOK_SECONDS:
            self._drawn = time.monotonic()
            self._handle.update(self._table())

    def _hide(self) -> None:
        notebook: Any = import_module("IPython.display")
        self._handle.update(notebook.HTML(""))

    def _table(self) -> Any:
        return self._bar.make_tasks_table(self._bar.tasks)
