"""Parts of which one completes the other: archives that share some classes, read as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wordnet_splits.base.errors import SourceError
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import Found, PartReader, SourcePart


@dataclass(frozen=True)
class Together:
    """Parts with one naming. A class that several hold is listed from the first of them."""

    parts: tuple[SourcePart, ...]

    @property
    def layout(self) -> str:
        """The layouts of the parts, joined by ``+``."""
        return "+".join(dict.fromkeys(part.layout for part in self.parts))

    @property
    def naming(self) -> Naming:
        """How the files are named."""
        return self.parts[0].naming

    def names(self) -> Iterator[Found]:
        """Yield what the parts hold."""
        listed: set[str | None] = set()
        for part in self.parts:
            own: set[str | None] = set()
            for class_id, stem, shown in part.names():
                if class_id is None or class_id not in listed:
                    own.add(class_id)
                    yield class_id, stem, shown
            listed |= own

    def reader(self) -> PartReader:
        """Open the parts."""
        return ReaderOfSeveral([part.reader() for part in self.parts])


class ReaderOfSeveral:
    """Reads an image from the first reader that has it."""

    def __init__(self, readers: list[PartReader]) -> None:
        self._readers = readers

    def read(self, class_id: str, stem: str) -> bytes:
        """Return a file's bytes; KeyError where no part has it."""
        for reader in self._readers:
            try:
                return reader.read(class_id, stem)
            except (KeyError, FileNotFoundError):
                continue
        raise KeyError(stem)

    def position(self, class_id: str, stem: str) -> tuple[int, ...]:
        """Return which reader has it, and where; KeyError where none has."""
        for number, reader in enumerate(self._readers):
            try:
                return number, *reader.position(class_id, stem)
            except (KeyError, SourceError):
                continue
        raise KeyError(stem)
