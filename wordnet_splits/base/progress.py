"""Progress on anything longer than two seconds: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

QUIET_SECONDS = 2.0
LINE_SECONDS = 10.0


class Task(Protocol):
    """One piece of work of known length."""

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        """Count ``steps`` as done; ``note``, such as a loss, is shown beside the work's name from now on."""

    def extend(self, steps: int) -> None:
        """Note that there is more to do than was known."""


class Progress(Protocol):
    """Where long work reports; the library's default is silent."""

    def task(self, what: str, total: int) -> AbstractContextManager[Task]:
        """Begin ``total`` steps of work called ``what``."""


class Silent:
    """No report at all."""

    @contextmanager
    def task(self, what: str, total: int) -> Iterator[Task]:
        """Begin work that nobody watches."""
        yield self

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        """Count nothing."""

    def extend(self, steps: int) -> None:
        """Count nothing."""


class Named:
    """Tasks under another name, where who begins them cannot know what they are of."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress, self._what = progress, what

    def task(self, what: str, total: int) -> AbstractContextManager[Task]:
        """Begin work under the given name."""
        return self._progress.task(self._what, total)


class Counted:
    """Tasks that are parts of one that has begun: their steps count there, with ``note`` beside its name."""

    def __init__(self, whole: Task, note: str) -> None:
        self._whole, self._note, self.done = whole, note, 0

    @contextmanager
    def task(self, what: str, total: int) -> Iterator[Task]:
        """Begin a part."""
        self.advance(0)
        yield self

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        """Count steps as done, in the whole."""
        self.done += steps
        self._whole.advance(steps, note=self._note)

    def extend(self, steps: int) -> None:
        """Note that there is more to do, in the whole."""
        self._whole.extend(steps)


class OnStderr:
    """A rich bar on a terminal's stderr, else one line every ten seconds; nothing before two seconds."""

    @contextmanager
    def task(self, what: str, total: int) -> Iterator[Task]:
        """Begin work that is shown once it has taken two seconds."""
        shown = _Bar(what, total) if sys.stderr.isatty() else _Lines(what, total)
        try:
            yield shown
        finally:
            shown.close()


class _Lines:
    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done, self._note = what, total, 0, ""
        self._started = self._said = time.monotonic()

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        self._done += steps
        self._note = f" ({note})" if note else self._note
        now = time.monotonic()
        if now - self._said >= LINE_SECONDS:
            self._said = now
            rate = self._done / (now - self._started)
            left = f", {(self._total - self._done) / rate:,.0f} s left" if rate else ""
            what = "".join(c if c.isprintable() else "?" for c in f"{self._what}{self._note}")
            speed = f", {rate:,.0f}/s" if rate >= 1 else ""
            said = f"{what}: {self._done:,} of {self._total:,}{speed}{left}"
            print(said, file=sys.stderr, flush=True)

    def extend(self, steps: int) -> None:
        self._total += steps

    def close(self) -> None:
        pass


class _Bar:
    def __init__(self, what: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._what, self._started, self._waiting, self._shown = what, time.monotonic(), 0, False
        self._total = total
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=total)

    def advance(self, steps: int = 1, *, note: str = "") -> None:
        self._waiting += steps
        if note:
            self._bar.update(self._task, description=f"{self._what} ({note})")
        if not self._shown and time.monotonic() - self._started < QUIET_SECONDS:
            return
        if not self._shown:
            self._shown = True
            self._bar.start()
        self._bar.advance(self._task, self._waiting)
        self._waiting = 0

    def extend(self, steps: int) -> None:
        self._total += steps
        self._bar.update(self._task, total=self._total)

    def close(self) -> None:
        if self._shown:
            self._bar.stop()
