"""A publisher's tar archive of class folders, read in place: SUN397.tar."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.sources.layouts.folders import Spellings, class_paths
from wordnet_splits.sources.layouts.names import NameIndex, Naming
from wordnet_splits.sources.layouts.parts import Found
from wordnet_splits.sources.layouts.tars import Opened, TarReader, stem_of


@dataclass(frozen=True)
class ClassTar:
    """An archive of class folders, below a folder of the archive's own or at its top.

    ``spellings`` are the paths that copies give to a class.
    """

    path: Path
    naming: Naming
    spellings: Spellings
    layout: str = "tars"

    def names(self) -> Iterator[Found]:
        """Yield the members' names; what lies beside the class folders and is no image is passed over.

        Raises SourceError for an image held twice: members of one class need not follow each other.
        """
        held: set[tuple[str, str]] = set()
        with Opened(self.path) as file:
            for member in file.members():
                stem, class_id = stem_of(member.name), self.class_of(member.name)
                if class_id is not None and stem is not None:
                    if (class_id, stem) in held:
                        what = f"two members are named {class_id}/{printable(stem)}"
                        raise SourceError(what, where=str(self.path), hint="fetch this file again")
                    held.add((class_id, stem))
                if class_id is not None or stem is not None:
                    yield class_id, stem, member.name

    def reader(self) -> ClassTarReader:
        """Open the archive; its index is made when the first image is read."""
        return ClassTarReader(self)

    def class_of(self, name: str) -> str | None:
        """Return the class whose folder holds a member, None where it lies in none."""
        paths, _ = class_paths(self.naming.source, self.spellings)
        folder = str(PurePosixPath(name).parent)
        return paths.get(folder) or paths.get(folder.partition("/")[2])


class ClassTarReader(TarReader):
    """Reads members of class folders by offset; one descriptor per process."""

    def __init__(self, part: ClassTar) -> None:
        super().__init__(part.path, per_class=True)
        self._part = part

    def _index(self, class_id: str) -> NameIndex:
        return self._of_classes[class_id]

    @cached_property
    def _of_classes(self) -> dict[str, NameIndex]:
        held: dict[str, list[tuple[str | None, tuple[int, ...]]]] = defaultdict(list)
        for member in self._file.members():
            class_id = self._part.class_of(member.name)
            if class_id is not None:
                held[class_id].append((stem_of(member.name), (member.offset, member.size)))
        return {c: NameIndex(found, f"{self._part.path}:{c}") for c, found in held.items()}
