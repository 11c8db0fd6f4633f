"""Open any set of pictures by name: a folder, Parquet with images, a packed store, a manifest, a source.

=====================  ==================================================================================
``DIR``                image files below a folder (an id is the relative path without extension), or Parquet
                       files with an ``image`` column, as ``datasets`` writes them
``DIR:GROUP:SPLIT``    a group of a manifest (``manifest.json``), of a packed store (``packed.json``), or of
                       an output of ``fix-resize build`` (``output.json``; ``DIR`` alone is all of it)
``NAME:GROUP:SPLIT``   a group of the manifest called NAME
``SOURCE:SPLIT``       a dataset as its publisher lays it out, under its root
=====================  ==================================================================================

The group may be omitted if there is only one; the default split is the only one, or ``test``.
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

from fix_resize.auditing.parquet_pictures import Position, has_pictures, name_rows, read_rows
from fix_resize.decode import EXTENSIONS, as_rgb, decode
from fix_resize.pipeline.image_folder import ImageFolder
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.base.untrusted import expand_home
from wordnet_splits.finding import is_path, load_manifest, unknown_benchmark
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.folders import manifest_names
from wordnet_splits.sources import Raw, Source, open_source, root_variable, source_class, source_names
from wordnet_splits.sources.roots import Roots

Readable = Image.Image | SourceError | DataError
"""An RGB picture, or the error of reading it."""

RAW_VIEW: Final = "raw"
DEFAULT_SPLIT: Final = "test"


class PictureSet(ABC):
    """A set of named pictures.

    Attributes
    ----------
    label : name of the set.
    ids : image ids, sorted.
    other_files : number of files in the folder that are not images by name.
    """

    def __init__(self, label: str, ids: Collection[str], other_files: int = 0) -> None:
        self.label = label
        self.ids: tuple[str, ...] = tuple(sorted(ids))
        self.other_files = other_files
        if not self.ids:
            raise SourceError("no pictures here", where=label)

    @abstractmethod
    def read(self, ids: Collection[str]) -> Iterator[tuple[str, Readable]]:
        """Yield pictures in the order in which they are stored, with an error for each unreadable picture."""


class ParquetPictures(PictureSet):
    """Pictures in Parquet files."""

    def __init__(self, label: str, files: Sequence[Path], positions: Mapping[str, Position]) -> None:
        super().__init__(label, positions)
        self._files, self._positions = files, positions

    def read(self, ids: Collection[str]) -> Iterator[tuple[str, Readable]]:
        """Yield pictures decoded by `fix_resize.decode`, in the order of the rows."""
        names = {self._positions[image_id]: image_id for image_id in ids}
        for position, data in read_rows(self._files, names):
            name = names[position]
            yield name, _image_or_error(_image, data, name)


class IndexedPictures(PictureSet):
    """Pictures read by row: of a source, of a manifest's group, of a part of a packed store."""

    def __init__(
        self, label: str, ids: Sequence[str], read_row: Callable[[int], Image.Image], other_files: int = 0
    ) -> None:
        super().__init__(label, ids, other_files)
        self._rows = {image_id: row for row, image_id in enumerate(ids)}
        self._read_row = read_row

    def read(self, ids: Collection[str]) -> Iterator[tuple[str, Readable]]:
        """Yield the pictures in the order of the rows."""
        for row, image_id in sorted((self._rows[image_id], image_id) for image_id in ids):
            yield image_id, _image_or_error(self._read_row, row)


def open_pictures(name: str, roots: Roots | None = None, *, original: bool = False) -> PictureSet:
    """Open a set of pictures by name (see above).

    Parameters
    ----------
    roots : folder of each source.
    original : read a manifest's group as its source stores it, not in its view.

    Raises
    ------
    UnknownNameError : no such folder, manifest, source, group or split.
    SourceError : the set has no pictures, or the root of a source is missing.
    """
    location, parts = _parse(name)
    address = SetAddress(name, location, parts, roots or {}, original)
    if isinstance(location, Path):
        for marker, opener in OPENERS.items():
            if (location / marker).is_file():
                return opener(address)
        return _open_folder(address)
    if location in manifest_names():
        return _open_manifest(address)
    if location in source_names():
        return _open_source(address)
    if "/" in location or location.startswith("."):
        raise SourceError("no such folder", where=name, hint="give a folder, a manifest or a source")
    raise unknown("folder, manifest or source", location, {*manifest_names(), *source_names()})


class SetAddress(NamedTuple):
    """The name of a set, parsed, with the options of `open_pictures`.

    Attributes
    ----------
    label : the name.
    location : its folder, or the name of a manifest or source.
    parts : group and split, as far as named.
    """

    label: str
    location: Path | str
    parts: Sequence[str]
    roots: Roots
    original: bool


def _parse(name: str) -> tuple[Path | str, list[str]]:
    """Return location and parts of a name; an existing path may itself contain colons.

    The name of a manifest or source takes precedence over a folder of that name.
    """
    words = name.split(":")
    if not words[0]:
        raise SourceError("the set has no name", where=repr(name), hint="give a folder, manifest or source")
    if not is_path(words[0]) and words[0] in (*manifest_names(), *source_names()):
        return words[0], words[1:]
    for length in range(len(words), 0, -1):
        path = expand_home(":".join(words[:length]), where=name)
        if path.is_dir():
            return path, words[length:]
        if path.is_file():
            raise SourceError("a file, not a folder", where=name, hint="give the folder that contains it")
    return words[0], words[1:]


def _open_folder(address: SetAddress) -> PictureSet:
    label, folder = address.label, Path(address.location)
    if address.parts:
        raise SourceError(
            "is not a manifest, packed store or output, so there are no groups to choose from", where=label
        )
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise SourceError(f"cannot be listed: {error.strerror or error}", where=str(folder)) from error
    if all(name.startswith(".") for name in names):
        raise SourceError("an empty folder", where=label, hint="give a folder that contains images")
    source = ImageFolder.open_folder(folder)
    ids = _scan(source, "all")
    other_files = sum(source.unexpected.values())
    if ids:
        return IndexedPictures(label, ids, _row_reader(source, ids), other_files)
    files = sorted(folder / name for name in source.unexpected if name.endswith(".parquet"))
    if files := [path for path in files if has_pictures(path)]:
        return ParquetPictures(label, files, name_rows(files))
    looked_for = f"looked for files ending in {', '.join(sorted(EXTENSIONS))}, or Parquet with a column image"
    raise SourceError(
        f"no pictures here, but {other_files:,} files of other kinds",
        where=label,
        hint=_source_hint(folder) or looked_for,
    )


def _source_hint(folder: Path) -> str:
    """Return how to name a folder that has the layout of a source; "" if it has not."""
    for name in source_names():
        try:
            if source_class(name).rooted and source_class(name).certain(folder.resolve()):
                return f"it looks like {name}: give {name}:SPLIT and --root {name}={folder}"
        except SourceError:  # the source cannot even list the folder
            continue
    return ""


def _open_source(address: SetAddress) -> PictureSet:
    name = str(address.location)
    split = _choose("split", address.parts, source_class(name).splits, address.label)
    source = open_source(name, _root(name, address))
    ids = _scan(source, split)
    return IndexedPictures(address.label, ids, _row_reader(source, ids))


def _scan(source: Source, split: str) -> list[str]:
    """Return the image ids of a root, sorted: a mean must not depend on the order of files."""
    return sorted(i for batch in source.scan([split]) for i in batch.column("image_id").to_pylist())


def _row_reader(source: Source, ids: Sequence[str]) -> Callable[[int], Image.Image]:
    return lambda row: _image(source.read([ids[row]])[0], source.describe(ids[row]))


def _open_manifest(address: SetAddress) -> PictureSet:
    from wordnet_splits.packed.reading import RawImages

    label, location = address.label, address.location
    if isinstance(location, Path) and not is_path(label.partition(":")[0]):
        raise unknown_benchmark("manifest", str(location), manifest_names())
    manifest = load_manifest(location)
    _check_awaited(manifest, address.parts, label)
    group, split = _choose_group(address, [(group, split) for split, group in manifest.parts])
    table = manifest.images(split, group).combine_chunks()
    if not len(table):
        raise SourceError("this group has no images", where=label)
    (source_name,) = set(table["source"].to_pylist())
    (view,) = set(table["view"].to_pylist())
    ids = table["image_id"].to_pylist()
    source = open_source(source_name, _root(source_name, address))
    raw = RawImages(source, pa.array(ids), table["digest"].combine_chunks())
    spec = None if address.original or view == RAW_VIEW else get_spec(view)

    def read_row(row: int) -> Image.Image:
        image = _image(raw.read(row), source.describe(ids[row]))
        return image if spec is None else Image.fromarray(apply(spec, image))

    return IndexedPictures(label, ids, read_row)


def _check_awaited(manifest: Manifest, parts: Sequence[str], label: str) -> None:
    """Raise SourceError for a group whose images are not known yet."""
    if parts and parts[0] not in {group for _, group in manifest.parts}:
        for row in manifest.groups:
            if row.group == parts[0]:
                raise SourceError(
                    f"this group awaits {row.source}: its images are not known yet",
                    where=label,
                    hint="build it from its source first, then give the output folder",
                )


def _open_packed(address: SetAddress) -> PictureSet:
    from wordnet_splits.packed import open_store

    store = open_store(address.location)
    group, split = _choose_group(address, [(group, split) for split, group in store.parts])
    images = store.images((split, group))
    ids = [images.image_id(row) for row in range(len(images))]
    return IndexedPictures(address.label, ids, images.picture)


def _open_output(address: SetAddress) -> PictureSet:
    """Open an output of `fix-resize build`, or one group of it; pixels are compared with their hashes."""
    from fix_resize.output import open_output

    output = open_output(address.location)
    rows = output.table.select(["image_id", "source", "group", "split"]).to_pylist()
    if address.parts:
        group, split = _choose_group(address, list(dict.fromkeys((r["group"], r["split"]) for r in rows)))
        rows = [r for r in rows if (r["group"], r["split"]) == (group, split)]
    images = sorted({(r["image_id"], r["source"]) for r in rows})
    counts = Counter(image_id for image_id, _ in images)
    ids = [image_id if counts[image_id] == 1 else f"{source}/{image_id}" for image_id, source in images]
    return IndexedPictures(address.label, ids, lambda row: Image.fromarray(output.pixels(*images[row])))


OPENERS: Final = {
    "manifest.json": _open_manifest,
    "packed.json": _open_packed,
    "output.json": _open_output,
}
"""Functions that open a folder, by a file in it."""


def _choose_group(address: SetAddress, parts: Collection[tuple[str, str]]) -> tuple[str, str]:
    """Return the (group, split) of ``parts`` that the address names, or the default."""
    group = _choose("group", address.parts[:1], dict.fromkeys(group for group, _ in parts), address.label)
    splits = [split for g, split in parts if g == group]
    return group, _choose("split", address.parts[1:], splits, address.label)


def _choose(kind: str, names: Sequence[str], options: Collection[str], label: str) -> str:
    """Return the named option, else the only one, else the test split."""
    if len(names) > 1:
        raise SourceError(f"too many parts after the {kind}", where=label, hint="as in NAME:GROUP:SPLIT")
    if names:
        if names[0] not in options:
            raise unknown(kind, names[0], options, where=label)
        return names[0]
    if len(options) == 1:
        return next(iter(options))
    if DEFAULT_SPLIT in options and kind == "split":
        return DEFAULT_SPLIT
    raise SourceError(
        f"there are several {kind}s: name one", where=label, hint=f"one of {label}:{{{','.join(options)}}}"
    )


def _root(name: str, address: SetAddress) -> Path | None:
    if not source_class(name).rooted:
        return None
    if name not in address.roots:
        raise SourceError(
            f"the images of {name} have no root",
            where=address.label,
            hint=f"give --root {name}=DIR, or set {root_variable(name)}",
        )
    return Path(address.roots[name])


def _image(raw: Raw, where: str) -> Image.Image:
    if isinstance(raw, np.ndarray):
        return Image.fromarray(as_rgb(raw))
    return decode(raw, where).image


def _image_or_error(read: Callable[..., Image.Image], *arguments: Any) -> Readable:
    try:
        return read(*arguments)
    except (SourceError, DataError) as error:
        return error


def readable(image: Readable) -> Image.Image:
    """Return the picture; raise the error if it is unreadable."""
    if isinstance(image, Exception):
        raise image
    return image
