"""What a kind of file is to the fuzzer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.fuzz.made.making import Made


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    make : write a sound example into an empty folder.
    command : what reads it, run in the folder.
    files : patterns of the files to alter.
    verified : whether the command has to refuse whatever was altered.
    share : how many cases of about a thousand.
    ends : the exit code with which the command takes a sound example.
    optional : files that may be absent, so that deleting one alters nothing.
    made : what stands once each in the place of a sound file; the other cases alter one.
    """

    name: str
    make: Callable[[Path], None]
    command: Sequence[str]
    files: Sequence[str]
    verified: bool = False
    share: int = 40
    made: Made = field(default_factory=dict)
    ends: int = 0
    optional: Sequence[str] = ()

    @property
    def torch(self) -> bool:
        """Return whether its reader needs torch."""
        return self.command[0] in ("unknown-eval", "weights")

    def targets(self, folder: Path) -> list[Path]:
        """Return the files to alter, relative to the folder."""
        found = {p.relative_to(folder) for pattern in self.files for p in folder.glob(pattern) if p.is_file()}
        hidden = {path for path in found if any(part.startswith(".") for part in path.parts)}
        return sorted(hidden if any("/." in pattern for pattern in self.files) else found - hidden)


def made_by(folder: Path, *words: str) -> None:
    """Run a command of ours to make an example."""
    from tools.fuzz.zygote import Zygote

    zygote = Zygote([words[0]])
    try:
        ended = zygote.run(words, folder)
    finally:
        zygote.close()
    assert ended.code == 0, ended.said
