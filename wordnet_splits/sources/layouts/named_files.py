"""Layouts whose image files or archive members have the publisher's names, of which ids are made."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from wordnet_splits.base.errors import SourceError
from wordnet_splits.sources.layouts.layout import Image, Layout, Location, Note
from wordnet_splits.sources.layouts.names import Naming

Entry = tuple[str | None, str | None, str]
"""One entry: class_id of its folder or None, file name without extension or None if it is not an image file,
and its name in messages."""

SAMPLE = 300
"""Number of names compared to tell datasets with similar folders apart."""


class Reader(Protocol):
    """Access to image files by class and name, opened once per process."""

    def read(self, class_id: str, stem: str) -> bytes:
        """Return a file's bytes; KeyError or FileNotFoundError if absent."""

    def position(self, class_id: str, stem: str) -> tuple[int, ...]:
        """Return the key by which files are sorted to be read in storage order; KeyError if absent."""


@runtime_checkable
class FileFinder(Protocol):
    """A reader of one file an image."""

    def file(self, class_id: str, stem: str) -> Path:
        """Return the file of an image; KeyError or FileNotFoundError if absent."""


class NamedFiles(Layout):
    """Image files, or files in an archive, of which the name and the class folder make the id.

    The location of an image is its class and its file name without extension.

    Attributes
    ----------
    path : the folder or archive.
    naming : how the files are named.
    """

    path: Path
    naming: Naming

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """Yield all entries, those of one class (or of no class) in one run, else in any order."""

    @abstractmethod
    def reader(self) -> Reader:
        """Open the files."""

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the valid images, noting other names.

        Raises
        ------
        SourceError : two files have one id.
        """
        if set(self.naming.splits).isdisjoint(splits):
            return
        ids: set[str] = set()
        run: str | None = None
        for class_id, stem, shown in self.entries():
            row = None if stem is None else self.naming.row(class_id, stem)
            if stem is None or row is None:
                note(shown)
                continue
            if class_id != run:  # an id names its class, so it cannot recur in another run
                ids, run = set(), class_id
            if row[0] in ids:
                raise SourceError(
                    f"two files have the id {row[0]!r} of {self.naming.source}; the second is {shown}",
                    where=str(self.path),
                    hint="remove one of them",
                )
            ids.add(row[0])
            if row[2] in splits:
                yield Image(*row, (row[1], self.naming.plain(stem)))

    def locate(self, image_id: str) -> Location:
        """Return the class and file name of an id."""
        return self.naming.locate(image_id)

    def read(self, location: Location) -> bytes:
        """Return a file's bytes."""
        return self._opened().read(*map(str, location))

    def storage_position(self, location: Location) -> tuple[int, ...]:
        """Return the position of a file in its archive."""
        return self._opened().position(*map(str, location))

    def file(self, location: Location) -> Path | None:
        """Return the file of an image, None in an archive or a table."""
        reader = self._opened()
        return reader.file(*map(str, location)) if isinstance(reader, FileFinder) else None

    def is_certain(self) -> bool:
        """Return whether most names in a sample are ids of this dataset, and one is distinctive."""
        stems = ((class_id, stem) for class_id, stem, _ in self.entries() if stem is not None)
        sample = list(islice(stems, SAMPLE))
        valid = [stem for class_id, stem in sample if self.naming.row(class_id, stem)]
        return 2 * len(valid) >= len(sample) and any(map(self.naming.is_distinctive, valid))

    def _opened(self) -> Reader:
        return self.cached("reader", self.reader)


class OverlappingFiles(NamedFiles):
    """Layouts with one naming that share classes; a class is listed from the first layout that has it."""

    def __init__(self, layouts: tuple[NamedFiles, ...]) -> None:
        self.layouts = layouts
        self.path = layouts[0].path.parent
        self.naming = layouts[0].naming
        self.name = "+".join(dict.fromkeys(layout.name for layout in layouts))

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the layouts."""
        listed: set[str | None] = set()
        for layout in self.layouts:
            classes: set[str | None] = set()
            for class_id, stem, shown in layout.entries():
                if class_id is None or class_id not in listed:
                    classes.add(class_id)
                    yield class_id, stem, shown
            listed |= classes

    def reader(self) -> Reader:
        """Open the layouts."""
        return FirstReader([layout.reader() for layout in self.layouts])


class FirstReader:
    """Reads an image from the first reader that has it."""

    def __init__(self, readers: list[Reader]) -> None:
        self._readers = readers

    def read(self, class_id: str, stem: str) -> bytes:
        """Return a file's bytes; KeyError if no reader has it."""
        for reader in self._readers:
            try:
                return reader.read(class_id, stem)
            except (KeyError, FileNotFoundError):
                continue
        raise KeyError(stem)

    def position(self, class_id: str, stem: str) -> tuple[int, ...]:
        """Return the number of the reader that has it, and the position in it; KeyError if none has it."""
        for number, reader in enumerate(self._readers):
            try:
                return number, *reader.position(class_id, stem)
            except (KeyError, SourceError):
                continue
        raise KeyError(stem)
