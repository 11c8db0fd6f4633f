"""A kind of file that we read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.running import Command


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    make : writes a sound example into an empty folder.
    command : what reads it, run in the folder.
    files : patterns of the files to alter.
    verified : whether the command has to refuse every alteration.
    share : number of alterations.
    ends : exit code with which the command takes a sound example.
    """

    name: str
    make: Callable[[Path], None]
    command: Command
    files: Sequence[str]
    verified: bool = False
    share: int = 20
    ends: int = 0

    def targets(self, folder: Path) -> list[Path]:
        """Return the files to alter, relative to the folder."""
        found = {p.relative_to(folder) for pattern in self.files for p in folder.glob(pattern) if p.is_file()}
        hidden = {path for path in found if any(part.startswith(".") for part in path.parts)}
        return sorted(hidden if any("/." in pattern for pattern in self.files) else found - hidden)
