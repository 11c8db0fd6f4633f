"""Progress of work that takes longer than two seconds: a bar on a terminal, otherwise occasional lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, Protocol

from wordnet_splits.base.names import printable

QUIET_SECONDS, BAR_SECONDS, LINE_SECONDS = 2.0, 0.1, 10.0


class Task(Protocol):
    """A piece of work of known length."""

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        """Count ``steps`` as done; ``note``, such as a loss, is shown next to the label from now on."""

    def skip(self, steps: int) -> None:
        """Count ``steps`` as done before: by an interrupted run, or stored. They do not affect the speed."""

    def extend(self, steps: int) -> None:
        """Add ``steps`` to the total."""


class Progress(Protocol):
    """The receiver of reports of long work; `Silent` by default."""

    def task(self, label: str, total: int) -> AbstractContextManager[Task]:
        """Begin ``total`` steps of work, 0 where their number is unknown: a count without an end is shown."""


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
    """Tasks under another label, chosen by the caller instead of the function that begins them."""

    def __init__(self, progress: Progress, label: str) -> None:
        self._progress, self._label = progress, label

    def task(self, label: str, total: int) -> AbstractContextManager[Task]:
        """Begin work under the other label."""
        return self._progress.task(self._label, total)


class PartOfTask:
    """Tasks that are parts of a running task: their steps count there, with ``note`` next to its label."""

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
        self._whole.advance(steps, note=f"{self._note}, {note}" if note else self._note)

    def skip(self, steps: int) -> None:
        """Count steps as done before, in the whole."""
        self.done += steps
        self._whole.skip(steps)

    def extend(self, steps: int) -> None:
        """Add steps to the total of the whole."""
        self._whole.extend(steps)


class OnStderr:
    """A bar where stderr is a terminal, else a line every ten seconds; nothing before two seconds."""

    @contextmanager
    def task(self, label: str, total: int) -> Iterator[Task]:
        """Begin work that is shown once it has taken two seconds."""
        with _bar_class()(label, total, redraws=_redraws()) as bar:
            yield bar


class InPlace:
    """A bar after two seconds, if stderr is a terminal or the cell of a notebook; otherwise silent."""

    def task(self, label: str, total: int) -> AbstractContextManager[Task]:
        """Begin work that is shown once it has taken two seconds."""
        return (OnStderr() if _redraws() else Silent()).task(label, total)


def choose_progress(progress: Progress | bool | None) -> Progress:
    """Return the receiver of progress reports that a caller requested.

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
    if not (isinstance(progress, OnStderr) or (isinstance(progress, InPlace) and _redraws())):
        return lambda line: None
    return lambda line: print(printable(line), file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def _redraws() -> bool:
    return sys.stderr.isatty() or in_notebook()


@cache
def _bar_class() -> Any:
    """Return the bar of tqdm as a `Task`: redrawn in place, or printed as a line every ten seconds."""
    from tqdm import tqdm  # takes a while to import

    class Bar(tqdm):  # type: ignore[misc] # tqdm is untyped
        """A bar of tqdm as a `Task`: redrawn in place, or printed as a line every ten seconds."""

        total: int
        monitor_interval = 0  # no thread, since processes may be forked

        def __init__(self, label: str, total: int, *, redraws: bool) -> None:
            self._label = printable(label)
            super().__init__(
                total=total,
                desc=self._label,
                leave=False,
                delay=QUIET_SECONDS,
                mininterval=BAR_SECONDS if redraws else LINE_SECONDS,
                miniters=0,
                file=sys.stderr if redraws else _LineFile(),
            )

        def advance(self, steps: int = 1, *, note: str = "") -> None:
            """Count steps as done, and show a note next to the label from now on."""
            if note:
                self.set_description_str(f"{self._label} ({printable(note)})", refresh=False)
            self.update(steps)

        def skip(self, steps: int) -> None:
            """Count steps as done before; they do not affect the speed."""
            self.initial += steps
            self.update(steps)

        def extend(self, steps: int) -> None:
            """Add steps to the total."""
            self.total += steps

    return Bar


class _LineFile:
    """A file that writes each state of a bar as a line on stderr."""

    def write(self, text: str) -> None:
        """Print a state unless it is blank."""
        if text.strip():
            print(text.strip(), file=sys.stderr, flush=True)

    def flush(self) -> None:
        """Do nothing: lines are flushed when they are written."""
