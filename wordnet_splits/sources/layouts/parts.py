"""Sources made of parts: a train folder here, a validation archive there, one place for each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from wordnet_splits.base.errors import SourceError
from wordnet_splits.sources.base import OneCopyPerProcess, Raw, Row
from wordnet_splits.sources.layouts.names import Naming

Found = tuple[str | None, str | None, str]
"""What a part finds: class_id of the folder or None, file name without extension or None where it is no
image file, and the name to show."""

SAMPLE = 300  # names looked at to tell datasets with like folders apart


class PartReader(Protocol):
    """Access to the files of one part, opened once per process."""

    def read(self, class_id: str, stem: str) -> bytes:
        """Return a file's bytes; KeyError or FileNotFoundError where it is not there."""

    def position(self, class_id: str, stem: str) -> tuple[int, ...]:
        """Return what to sort by to read in storage order; KeyError where it is not there."""


@runtime_checkable
class OnDisk(Protocol):
    """A reader whose images are files of their own."""

    def file(self, class_id: str, stem: str) -> Path:
        """Return the file of an image; KeyError or FileNotFoundError where it is not there."""


class SourcePart(Protocol):
    """One place under a root where images of certain splits are kept; picklable."""

    @property
    def layout(self) -> str:
        """The name of the layout."""

    @property
    def naming(self) -> Naming:
        """How its files are named."""

    def names(self) -> Iterator[Found]:
        """Yield what the part holds, all of one class (or of None) in one stretch, else in any order."""

    def reader(self) -> PartReader:
        """Open the part."""


class PartedSource(OneCopyPerProcess):
    """A source whose images lie in files or file-like members, in one or several parts of a root."""

    looks_for: ClassVar[str]

    def __init__(self, root: Path, layout: str, parts: tuple[SourcePart, ...]) -> None:
        super().__init__(root, layout)
        self.parts = parts

    @classmethod
    @abstractmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the parts that ``root`` holds, none where it is not this dataset."""

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return the layouts of the parts found, joined by ``+``, or None."""
        return None if root is None else _layout(cls.find(root))

    @classmethod
    def certain(cls, root: Path) -> bool:
        """Return whether most of the names in a sample of some part are ids of this source."""
        return any(cls._recognised(part) for part in cls.find(root))

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> Self:
        """Open the parts under ``root``; a source on disk takes no parameters."""
        if params:
            raise SourceError(f"source {cls.name} takes no parameter {sorted(params)[0]!r}")
        if root is None:
            raise SourceError(f"no root given for source {cls.name}", hint=f"--root {cls.name}=DIR")
        return cls(root, layout, cls.find(root))

    @classmethod
    def distinctive(cls, row: Row) -> bool:
        """Return whether an id can only be of this source (ids of others may look alike)."""
        return True

    @classmethod
    def _recognised(cls, part: SourcePart) -> bool:
        stems = ((class_id, stem) for class_id, stem, _ in part.names() if stem is not None)
        rows = [part.naming.row(class_id, stem) for class_id, stem in islice(stems, SAMPLE)]
        valid = [row for row in rows if row]
        return 2 * len(valid) >= len(rows) and any(map(cls.distinctive, valid))

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield the valid images of all parts, counting other names, refusing an id held twice."""
        for part in self.parts:
            if set(part.naming.splits) & set(splits):
                yield from self._rows(part, set(splits))

    def _rows(self, part: SourcePart, splits: set[str]) -> Iterator[Row]:
        held: set[str] = set()
        stretch: str | None = None
        for class_id, stem, shown in part.names():
            row = None if stem is None else part.naming.row(class_id, stem)
            if row is None:
                self.note_unexpected(shown)
                continue
            if class_id != stretch:  # an id names its class, so it cannot come back in another stretch
                held, stretch = set(), class_id
            if row[0] in held:
                raise SourceError(
                    f"two files have the id {row[0]!r} of {self.name}; the second is {shown}",
                    where=str(self.root),
                    hint="remove one of them",
                )
            held.add(row[0])
            if row[2] in splits:
                yield row

    def read(self, ids: Sequence[str]) -> list[Raw]:
        """Return the files' bytes in the order of ``ids``, reading in storage order."""
        order = sorted(range(len(ids)), key=lambda i: self._position(ids[i]))
        raws: list[Raw] = [b""] * len(ids)
        for i in order:
            raws[i] = self._read_named(ids[i])
        return raws

    def read_one(self, image_id: str) -> bytes:
        """Return one file's bytes."""
        reader, class_id, stem = self._place(image_id)
        return reader.read(class_id, stem)

    def file(self, image_id: str) -> Path | None:
        """Return the file of an image, None where its part is an archive or a table."""
        try:
            reader, class_id, stem = self._place(image_id)
            return reader.file(class_id, stem) if isinstance(reader, OnDisk) else None
        except (KeyError, FileNotFoundError) as error:
            raise self.missing(image_id) from error

    def _position(self, image_id: str) -> tuple[int, ...]:
        try:
            reader, class_id, stem = self._place(image_id)
            return reader.position(class_id, stem)
        except (KeyError, OSError):
            return ()  # reading it says why it is absent

    def _place(self, image_id: str) -> tuple[PartReader, str, str]:
        for number, part in enumerate(self.parts):
            try:
                class_id, stem = part.naming.place(image_id)
            except KeyError:
                continue
            return self.cached(f"part {number}", part.reader), class_id, stem
        raise KeyError(image_id)


def _layout(parts: Sequence[SourcePart]) -> str | None:
    return "+".join(dict.fromkeys(part.layout for part in parts)) or None
