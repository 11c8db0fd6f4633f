"""Tar shards in WebDataset's format: files that share a name up to its first point are one sample.

A sample has an image (``.jpg``, ``.png``, ...) and its label: ``.cls``, a field of ``.json``, or ``.txt``.
A label is a name, or a line number in ``classnames.txt`` at the root, counted from 0. The split is in the
name of the shard or its folder, unless ``columns`` names an extension or a field of ``.json`` for it. An id
is ``<split>/<key>`` if all these differ, else ``<split>/<shard>/<key>``. Nothing is unpacked: images are
read in place.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.base.names import is_one_line, printable
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.base.untrusted import LARGEST_IMAGE
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.sources.layouts.archives import Member, OpenTar
from wordnet_splits.datasets.sources.layouts.conventions import (
    CLASSES,
    class_names,
    class_of,
    shards,
    splits_of,
)
from wordnet_splits.datasets.sources.layouts.layout import (
    DeclaredLayout,
    Image,
    Location,
    Note,
    register_layout,
)
from wordnet_splits.datasets.sources.layouts.parquet_files import OPEN_SHARDS

LARGEST_LABEL: Final = 2**20  # bytes of a .cls, .json or .txt

Files = Mapping[str, Member]
"""The files of a sample by extension: the part of the name after its first point."""


class _Sample(NamedTuple):
    shard: int
    split: str
    key: str
    class_id: str
    image: Member


@register_layout("webdataset")
class WebDataset(DeclaredLayout):
    """Layout with an image in each sample of tar shards."""

    about: ClassVar[str] = "tar shards of an image and a .cls, .json or .txt a sample"

    def __init__(self, root: Path, declaration: Declaration) -> None:
        super().__init__(root, declaration)
        self._shards = cache(lambda: shards(root, declaration.images, ".tar", "tar shard"))
        self._file = lru_cache(maxsize=OPEN_SHARDS)(OpenTar)

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every sample that has one image and a class."""
        samples = list(self._samples(note))
        if not samples:
            hint = 'as in 0001.jpg and 0001.cls; a field of .json: columns = { class = "..." }'
            raise SourceError("no sample has an image and a label", where=str(self.root), hint=hint)
        unique = len({(sample.split, sample.key) for sample in samples}) == len(samples)
        for shard, split, key, class_id, image in samples:
            above = split if unique else f"{split}/{self._shards()[shard].stem}"
            yield Image(f"{above}/{key}", class_id, split, (shard, image.offset, image.size))

    def read(self, location: Location) -> bytes:
        """Return an image's bytes."""
        shard, offset, size = (int(n) for n in location)
        return self._bytes(self._shards()[shard], offset, size, LARGEST_IMAGE)

    def _samples(self, note: Note) -> Iterator[_Sample]:
        names, declared = class_names(self.root), self.declaration.columns.image
        extensions = EXTENSIONS if declared is None else {declared.lower()}
        splits = splits_of(path.relative_to(self.root) for path in self._shards())
        for number, (path, shard_split) in enumerate(zip(self._shards(), splits.values(), strict=True)):
            for key, group in groupby(self._file(path).members(), key=_key):
                files = {member.name[len(key) + 1 :].lower(): member for member in group}
                images = [files[extension] for extension in files if extension in extensions]
                label = self._label(path, files) if len(images) == 1 else None
                class_id = class_of(label, names, f"{path}: {key}")
                split = self._split(path, files, shard_split)
                if class_id is None or split is None or not is_one_line(key) or key.endswith("/") or not key:
                    note(f"{path.name}: {printable(key)}")
                else:
                    yield _Sample(number, split, key, class_id, images[0])

    def _label(self, path: Path, files: Files) -> object:
        declared = self.declaration.columns.class_
        if declared is not None:
            return self._field(path, files, declared.lower(), (declared,))
        label = self._field(path, files, "cls", CLASSES)
        return self._text(path, files["txt"]) if label is None and "txt" in files else label

    def _split(self, path: Path, files: Files, shard_split: str) -> str | None:
        declared = self.declaration.columns.split
        if declared is None:
            return shard_split
        split = self._field(path, files, declared.lower(), (declared,))
        return split if isinstance(split, str) and split else None

    def _field(self, path: Path, files: Files, extension: str, names: Iterable[str]) -> object:
        """Return the text of the file with an extension, else the first of some fields of ``.json``."""
        if extension in files:
            return self._text(path, files[extension])
        if "json" in files:
            where = f"{path}:{files['json'].name}"
            content = parse_json(self._text(path, files["json"]), where=where, error=SourceError)
            for name in names:
                if isinstance(content, dict) and name in content:
                    return content[name]
        return None

    def _text(self, path: Path, member: Member) -> str:
        data = self._bytes(path, member.offset, member.size, LARGEST_LABEL)
        try:
            return data.decode("utf-8").strip()
        except UnicodeDecodeError:
            raise SourceError("is not UTF-8 text", where=f"{path}:{member.name}") from None

    def _bytes(self, path: Path, offset: int, size: int, largest: int) -> bytes:
        if size > largest:
            raise UnsafeDataError(f"a file of {size:,} bytes at byte {offset:,}", where=str(path))
        return os.pread(self._file(path).descriptor, size, offset)


def _key(member: Member) -> str:
    """Return a member's name up to the first point of its last part."""
    folder, slash, name = member.name.rpartition("/")
    return folder + slash + name.partition(".")[0]
