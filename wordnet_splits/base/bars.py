"""Bars of tqdm, as `wordnet_splits.base.progress` shows them."""

from __future__ import annotations

import sys

from tqdm import tqdm

from wordnet_splits.base.names import printable

QUIET_SECONDS, BAR_SECONDS, LINE_SECONDS = 2.0, 0.1, 10.0


class Bar(tqdm):  # type: ignore[misc]
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
            file=sys.stderr if redraws else LineFile(),
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


class LineFile:
    """A file that writes each state of a bar as a line on stderr."""

    def write(self, text: str) -> None:
        """Print a state unless it is blank."""
        if text.strip():
            print(text.strip(), file=sys.stderr, flush=True)

    def flush(self) -> None:
        """Do nothing: lines are flushed when they are written."""
