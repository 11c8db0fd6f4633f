"""Any set of pictures by one name: a folder, Parquet with images, a packed store, a manifest, a source.

=====================  ==================================================================================
``DIR``                image files below a folder (an id is the relative path without extension), or Parquet
                       files with an ``image`` column, as ``datasets`` writes them
``DIR:GROUP:SPLIT``    a group of a manifest (``manifest.json``), of a packed store (``packed.json``), or of
                       what ``fix-resize build`` wrote (``output.json``; ``DIR`` alone is all of it)
``NAME:GROUP:SPLIT``   a group of a manifest known by name
``SOURCE:SPLIT``       a dataset as its publisher lays it out, under its root
=====================  ==================================================================================

A group or split that is the only one may be left out, and ``test`` is the split where none is named.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from PIL import Image

from fix_resize.auditing.parquet_sets import RowInFile, holds_pictures, name_rows, read_rows
from fix_resize.decode import decode
from fix_resize.pipeline.image_folder import ImageFolder
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.base.untrusted import expand_home
from wordnet_splits.finding import is_path, load_manifest, manifest_names, unknown_benchmark
from wordnet_splits.manifest import Manifest
from wordnet_splits.sources import Raw, Source, open_source, root_variable, source_class, source_names
from wordnet_splits.sources.base import as_rgb
from wordnet_splits.sources.pixels import EXTENSIONS
from wordnet_splits.sources.roots import Roots

Readable = Image.Image | SourceError | DataError
"""A picture as RGB, or why it cannot be read."""

RAW_VIEW: Final = "raw"
DEFAULT_SPLIT: Final = "test"


class Pictures(ABC):
    """A set of pictures with names.

    Attributes
    ----------
    label : the set as it was named.
    ids : every image_id, sorted.
    others : how many files below the folder do not have the name of a picture.
    """

    def __init__(self, label: str, ids: Collection[str], others: int = 0) -> None:
        self.label = label
        self.ids: tuple[str, ...] = tuple(sorted(ids))
        self.others = others
        if not self.ids:
            raise SourceError("no pictures here", where=label)

    @abstractmethod
    def read(self, ids: Collection[str]) -> Iterator[tuple[str, Readable]]:
        """Yield pictures in the set's own order, an error in place of one that cannot be read."""


class Parquet(Pictures):
    """Parquet files with the bytes of images."""

    def __init__(self, label: str, files: Sequence[Path], ids: Mapping[str, RowInFile]) -> None:
        super().__init__(label, ids)
        self._files, self._places = files, ids

    def read(self, ids: Collection[str]) -> Iterator[tuple[str, Readable]]:
        """Yield the rows' pictures by the rule of `fix_resize.decode`, in the order of the rows."""
        names = {self._places[image_id]: image_id for image_id in ids}
        for place, data in read_rows(self._files, names):
            name = names[place]
            yield name, _attempt(_image, data, name)


class StoredPictures(Pictures):
    """Images read by position: of a source, of a manifest's group, of a packed part."""

    def __init__(
        self, label: str, ids: Sequence[str], picture: Callable[[int], Image.Image], others: int = 0
    ) -> None:
        super().__init__(label, ids, others)
        self._rows = {image_id: row for row, image_id in enumerate(ids)}
        self._picture = picture

    def read(self, ids: Collection[str]) -> Iterator[tuple[str, Readable]]:
        """Yield the pictures in the order in which they are stored."""
        for row, image_id in sorted((self._rows[image_id], image_id) for image_id in ids):
            yield image_id, _attempt(self._picture, row)


def open_pictures(name: str, roots: Roots | None = None, *, original: bool = False) -> Pictures:
    """Open the set of pictures of that name (see above).

    Parameters
    ----------
    roots : where sources are, by name.
    original : read a manifest's group as its source stores it, not in its view.

    Raises
    ------
    UnknownNameError : no such folder, manifest, source, group or split; near names are offered.
    SourceError : nothing to read there (empty, no pictures, no root); the message says what was found.
    """
    place, chosen = _parse(name)
    given = SetName(name, place, chosen, roots or {}, original)
    if isinstance(place, Path):
        for marker, opener in MARKED.items():
            if (place / marker).is_file():
                return opener(given)
        return _folder(given)
    if place in manifest_names():
        return _manifest(given)
    if place in source_names():
        return _source(given)
    if "/" in place or place.startswith("."):
        raise SourceError("no such folder", where=name, hint="give a folder, a manifest or a source")
    raise unknown("folder, manifest or source", place, {*manifest_names(), *source_names()})


class SetName(NamedTuple):
    """The name of a set: as given, its folder or name, what is chosen in it, where sources are."""

    label: str
    place: Path | str
    chosen: Sequence[str]
    roots: Roots
    original: bool


def _parse(name: str) -> tuple[Path | str, list[str]]:
    """Return the folder or name, and what is chosen in it; a path that exists may itself hold colons.

    A bare word that is the name of a manifest or source is that, whatever folders there are.
    """
    words = name.split(":")
    if not words[0]:
        raise SourceError("a set without a name", where=repr(name), hint="give a folder, manifest or source")
    if not is_path(words[0]) and words[0] in (*manifest_names(), *source_names()):
        return words[0], words[1:]
    for length in range(len(words), 0, -1):
        path = expand_home(":".join(words[:length]), where=name)
        if path.is_dir():
            return path, words[length:]
        if path.is_file():
            raise SourceError("a file, not a folder", where=name, hint="give the folder that holds it")
    return words[0], words[1:]


def _folder(given: SetName) -> Pictures:
    label, folder = given.label, Path(given.place)
    if given.chosen:
        raise SourceError(
            "no manifest, packed store or output, so there are no groups to choose from", where=label
        )
    if not any(not path.name.startswith(".") for path in _listed(folder)):
        raise SourceError("an empty folder", where=label, hint="give a folder that holds images")
    source = ImageFolder.open(folder)
    ids = _scanned(source, "all")
    others = sum(source.unexpected.values())
    if ids:
        return StoredPictures(label, ids, _reader(source, ids), others)
    files = sorted(folder / name for name in source.unexpected if name.endswith(".parquet"))
    if files := [path for path in files if holds_pictures(path)]:
        return Parquet(label, files, name_rows(files))
    looked_for = f"looked for files ending in {', '.join(sorted(EXTENSIONS))}, or Parquet with a column image"
    raise SourceError(
        f"no pictures here, but {others:,} files of other kinds",
        where=label,
        hint=_published(folder) or looked_for,
    )


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise SourceError(f"cannot be listed: {error.strerror or error}", where=str(folder)) from error


def _published(folder: Path) -> str:
    """Return how to name a folder that is a dataset as published, "" where it is none."""
    for name in source_names():
        try:
            if source_class(name).rooted and source_class(name).certain(folder.resolve()):
                return f"it looks like {name}: give {name}:SPLIT and --root {name}={folder}"
        except SourceError:  # a folder that a source cannot even list is not of that source
            continue
    return ""


def _source(given: SetName) -> Pictures:
    name = str(given.place)
    split = _one("split", given.chosen, source_class(name).splits, given.label)
    source = open_source(name, _root(name, given))
    ids = _scanned(source, split)
    return StoredPictures(given.label, ids, _reader(source, ids))


def _scanned(source: Source, split: str) -> list[str]:
    """Return the ids a root holds, sorted: the order of files must not change the last digit of a mean."""
    return sorted(i for batch in source.scan([split]) for i in batch.column("image_id").to_pylist())


def _reader(source: Source, ids: Sequence[str]) -> Callable[[int], Image.Image]:
    return lambda row: _image(source.read([ids[row]])[0], source.describe(ids[row]))


def _manifest(given: SetName) -> Pictures:
    from wordnet_splits.packed.reading import RawImages

    label = given.label
    place = given.place
    if isinstance(place, Path) and not is_path(label.partition(":")[0]):
        raise unknown_benchmark("manifest", str(place), manifest_names())
    manifest = load_manifest(place)
    _awaits(manifest, given.chosen, label)
    group, split = _group(given, [(group, split) for split, group in manifest.parts])
    table = manifest.images(split, group)
    if not len(table):
        raise SourceError("this group holds no image", where=label)
    column = table.combine_chunks()
    (source_name,) = set(column["source"].to_pylist())
    (view,) = set(column["view"].to_pylist())
    ids = column["image_id"].to_pylist()
    source = open_source(source_name, _root(source_name, given))
    raw = RawImages(source, pa.array(ids), column["digest"].combine_chunks())
    spec = None if given.original or view == RAW_VIEW else get_spec(view)

    def picture(row: int) -> Image.Image:
        image = _image(raw.read(row), source.describe(ids[row]))
        return image if spec is None else Image.fromarray(apply(spec, image))

    return StoredPictures(label, ids, picture)


def _awaits(manifest: Manifest, chosen: Sequence[str], label: str) -> None:
    """Refuse a group with images that are not known yet."""
    if chosen and chosen[0] not in {group for _, group in manifest.parts}:
        for row in manifest.groups:
            if row.group == chosen[0]:
                raise SourceError(
                    f"this group awaits {row.source}: its images are not known yet",
                    where=label,
                    hint="build it from its source first, then give the folder that was built",
                )


def _packed(given: SetName) -> Pictures:
    from wordnet_splits.packed import open_store

    store = open_store(given.place)
    group, split = _group(given, [(group, split) for split, group in store.parts])
    images = store.images((split, group))
    return StoredPictures(given.label, [images.image_id(row) for row in range(len(images))], images.picture)


def _output(given: SetName) -> Pictures:
    """Open all or one group of what `fix-resize build` wrote; pixels are checked against their hashes."""
    from fix_resize.pipeline.output import open_output

    output = open_output(given.place)
    rows = output.table.select(["image_id", "source", "group", "split"]).to_pylist()
    if given.chosen:
        group, split = _group(given, list(dict.fromkeys((r["group"], r["split"]) for r in rows)))
        rows = [r for r in rows if (r["group"], r["split"]) == (group, split)]
    images = sorted({(r["image_id"], r["source"]) for r in rows})
    times = Counter(image_id for image_id, _ in images)
    ids = [image_id if times[image_id] == 1 else f"{source}/{image_id}" for image_id, source in images]
    return StoredPictures(given.label, ids, lambda row: Image.fromarray(output.pixels(*images[row])))


MARKED: Final = {"manifest.json": _manifest, "packed.json": _packed, "output.json": _output}
"""How to open a folder that holds such a file."""


def _group(given: SetName, parts: Collection[tuple[str, str]]) -> tuple[str, str]:
    """Return the (group, split) of ``parts`` that is named, else the only one."""
    group = _one("group", given.chosen[:1], dict.fromkeys(group for group, _ in parts), given.label)
    splits = [split for g, split in parts if g == group]
    return group, _one("split", given.chosen[1:], splits, given.label)


def _one(what: str, chosen: Sequence[str], known: Collection[str], label: str) -> str:
    """Return the chosen one, else the only one, else the test split."""
    if len(chosen) > 1:
        raise SourceError(f"too many parts after the {what}", where=label, hint="as in NAME:GROUP:SPLIT")
    if chosen:
        if chosen[0] not in known:
            raise unknown(what, chosen[0], known, where=label)
        return chosen[0]
    if len(known) == 1:
        return next(iter(known))
    if DEFAULT_SPLIT in known and what == "split":
        return DEFAULT_SPLIT
    raise SourceError(
        f"there are several {what}s: name one", where=label, hint=f"one of {label}:{{{','.join(known)}}}"
    )


def _root(name: str, given: SetName) -> Path | None:
    if not source_class(name).rooted:
        return None
    if name not in given.roots:
        raise SourceError(
            f"the images of {name} have no root",
            where=given.label,
            hint=f"give --root {name}=DIR, or set {root_variable(name)}",
        )
    return Path(given.roots[name])


def _image(raw: Raw, where: str) -> Image.Image:
    if isinstance(raw, np.ndarray):
        return Image.fromarray(as_rgb(raw))
    return decode(raw, where).image


def _attempt(read: Callable[..., Image.Image], *arguments: Any) -> Readable:
    try:
        return read(*arguments)
    except (SourceError, DataError) as error:
        return error


def readable(found: Readable) -> Image.Image:
    """Return the picture, or raise the reason why it cannot be read."""
    if isinstance(found, Exception):
        raise found
    return found
