"""Images in a part of a manifest, read from a raw root: checked, decoded, and in the part's view.

A part holds the images of a (split, group) pair. Raw and packed images are both read through `PartImages`,
whose rows are positions in the part's image table.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from fix_resize.output import Output
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.datasets.catalog.declarations import Declaration, Sources
from wordnet_splits.datasets.sources import (
    Raw,
    Source,
    check_source,
    open_source,
    root_variable,
    source_class,
)
from wordnet_splits.datasets.sources.roots import Roots, checked_roots, resolve_root

RowNumbers = npt.NDArray[np.int64]
RAW_VIEW = "raw"
IMAGES_PER_READ = 32  # encoded files in memory; photographs are decoded one by one


class PartImages(ABC):
    """The images of a (split, group), by row of its image table; picklable, safe to fork."""

    @abstractmethod
    def image_id(self, row: int) -> str:
        """Return the id of an image."""

    @abstractmethod
    def pictures(self, rows: RowNumbers) -> Iterator[Image.Image]:
        """Yield RGB images in the order of ``rows``, with few images in memory at a time.

        Raises
        ------
        MissingImageError : an image is not under the root; named with the root.
        SourceError, DataError : it is truncated or corrupt, or not the manifest's image.
        """

    def picture(self, row: int) -> Image.Image:
        """Return one image, RGB. Raises as `pictures`."""
        return next(self.pictures(np.array([row])))

    def pixels(self, rows: RowNumbers) -> Pixels:
        """Return some images, uint8 (n, 3, h, w); DataError where their sizes differ."""
        arrays = [np.asarray(picture) for picture in self.pictures(rows)]
        return stack(arrays, [self.image_id(row) for row in rows.tolist()])

    def encoded(self, row: int) -> tuple[bytes, str]:
        """Return an image file's bytes and its extension: the original's where there is one, else PNG."""
        return png(self.picture(row)), ".png"


class RawImages(PartImages):
    """Images under a source's root (or built in), in the view of their group.

    An image is compared with the manifest's digest, if there is one, when a process first reads it.

    Parameters
    ----------
    source : the opened source.
    ids : image_id of every row.
    digests : 32 bytes of every row, null if not known.
    view : ``raw``, or the name of a resize spec.
    """

    def __init__(
        self, source: Source, ids: pa.Array, digests: pa.Array | None = None, view: str = RAW_VIEW
    ) -> None:
        self.source = source
        self.view = view
        self._ids = ids
        self._digests = digests
        self._checked = np.zeros(len(ids), bool)

    def __len__(self) -> int:
        return len(self._ids)

    def image_id(self, row: int) -> str:
        """Return the id of an image."""
        return str(self._ids[row].as_py())

    def pictures(self, rows: RowNumbers) -> Iterator[Image.Image]:
        """Yield some images, RGB."""
        return (self.render(raw, image_id) for raw, image_id in self._read(rows))

    def pixels(self, rows: RowNumbers) -> Pixels:
        """Return some images, uint8 (n, 3, h, w)."""
        arrays, ids = [], []
        for raw, image_id in self._read(rows):
            if self.view == RAW_VIEW:
                arrays.append(self.source.decode_array(raw, image_id))
            else:
                arrays.append(np.asarray(self.render(raw, image_id)))
            ids.append(image_id)
        return stack(arrays, ids)

    def encoded(self, row: int) -> tuple[bytes, str]:
        """Return an image file's bytes and its extension."""
        raw, image_id = next(self._read(np.array([row])))
        if self.view == RAW_VIEW and isinstance(raw, bytes):
            return raw, file_extension(raw)
        return png(self.render(raw, image_id)), ".png"

    def read(self, row: int) -> Raw:
        """Return an image as its source stores it, compared with its digest. Raises as `pictures`."""
        return next(self._read(np.array([row])))[0]

    def render(self, raw: Raw, image_id: str) -> Image.Image:
        """Return an image in the view, RGB; SourceError where it cannot be decoded."""
        image = self.source.decode(raw, image_id)
        if self.view == RAW_VIEW:
            return image
        return Image.fromarray(apply(get_spec(self.view), image))

    def _read(self, rows: RowNumbers) -> Iterator[tuple[Raw, str]]:
        """Yield images as stored, and their ids, in batches that a source may read in storage order."""
        for start in range(0, len(rows), IMAGES_PER_READ):
            batch = rows[start : start + IMAGES_PER_READ]
            ids = self._ids.take(pa.array(batch)).to_pylist()
            for raw, row, image_id in zip(self.source.read(ids), batch.tolist(), ids, strict=True):
                if self._digests is not None and not self._checked[row]:
                    self._check(raw, row, image_id)
                yield raw, image_id

    def _check(self, raw: Raw, row: int, image_id: str) -> None:
        assert self._digests is not None
        digest = self._digests[row].as_py()
        if digest is not None and self.source.digest(raw) != digest:
            content = "pixels" if self.source.lossless else "bytes"
            raise AlteredImageError(
                f"image {image_id!r} of {self.source.name} is not the manifest's: "
                + (self.source.check_image(raw) or f"its {content} have another digest"),
                where=str(self.source.root) if self.source.root else self.source.name,
                hint="fetch this image again",
            )
        self._checked[row] = True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_checked": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._checked = np.zeros(len(self._ids), bool)


class AlteredImageError(SourceError):
    """An image whose pixels do not match the manifest's digest."""

    kind = "altered-image"


def spec_id(view: str) -> str | None:
    """Return the id of a view's resize spec, None for ``raw``; UnknownNameError for an unknown view."""
    return None if view == RAW_VIEW else get_spec(view).id


def open_sources(
    names: Sequence[str], roots: Roots | None, declarations: Mapping[str, Declaration]
) -> dict[str, Source]:
    """Open the sources that are built in or have a root: in ``roots``, the environment, or roots.toml.

    Parameters
    ----------
    declarations : the datasets that the manifest carries.
    """
    folders = {name: Path(root) for name, root in checked_roots(roots).items()}
    opened, wrong = {}, []
    sources = Sources.of(declarations)
    for name, folder in folders.items():
        check_source(name, folder, sources)
    for name in sorted(set(names)):
        if not source_class(name, sources).rooted:
            opened[name] = open_source(name)
        elif (root := resolve_root(name, folders, sources)) is not None:
            try:
                opened[name] = open_source(name, root, sources)
            except SourceError as error:
                wrong.append(error)
    if wrong:
        raise wrong[0] if len(wrong) == 1 else SourceError("; ".join(map(str, wrong)), where="roots")
    return opened


def check_selection(manifest: Manifest, groups: Collection[str], splits: Collection[str]) -> None:
    """Refuse groups and splits that a benchmark does not have; UnknownNameError names the nearest ones."""
    split_names = {row.split for row in manifest.groups} - {"classes"}
    group_names = {row.group for row in manifest.groups}
    for kind, names, choices in (("group", groups, group_names), ("split", splits, split_names)):
        for name in names:
            if name not in choices:
                raise unknown(kind, name, choices, where=manifest.name)


def is_selected(part: Part, groups: Collection[str], splits: Collection[str]) -> bool:
    """Return whether a (split, group) is among the given groups and splits; an empty argument selects all."""
    return (not splits or part[0] in splits) and (not groups or part[1] in groups)


def awaiting_parts(manifest: Manifest, groups: Collection[str], splits: Collection[str]) -> list[str]:
    """Return "group split" of the selected parts whose images are not known yet."""
    rows = (
        row for row in manifest.groups if row.awaits and is_selected((row.split, row.group), groups, splits)
    )
    return [f"{row.group} {row.split}" for row in rows]


def no_root(missing: Mapping[str, str], more: str = "") -> SourceError:
    """Build the error for groups whose sources have no root.

    Parameters
    ----------
    missing : source -> a group that needs its images; at least one.
    """
    (source, group), *others = missing.items()
    if others:
        what = f"groups {', '.join(missing.values())} need images of {len(missing)} sources without a root"
        hint = f"give {' '.join(f'--root {name}=DIR' for name in missing)}, or write roots.toml"
    else:
        what = f"group {group} needs the images of {source}, which has no root"
        hint = f"give --root {source}=DIR, roots={{'{source}': DIR}} or {root_variable(source)}"
    return SourceError(what + more, where=", ".join(missing), hint=hint)


def require_roots(
    manifest: Manifest, parts: Collection[Part], sources: Mapping[str, Source], *, more: str = ""
) -> None:
    """Raise SourceError that names all sources of ``parts`` that have no root; ``more`` follows."""
    source_of = {manifest.source_of(group): group for _, group in reversed(list(parts))}
    if missing := {name: group for name, group in sorted(source_of.items()) if name not in sources}:
        raise no_root(missing, more)


def present(source: Source, ids: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.bool_]:
    """Return for each id whether the root has the image, from a scan of names: no image is read."""
    if not source.rooted:
        return np.ones(len(ids), bool)
    scanned = [batch.column("image_id") for batch in source.scan()]
    mask = pc.is_in(ids, value_set=pa.chunked_array(scanned, pa.string()).combine_chunks())
    return np.asarray(mask.to_numpy(zero_copy_only=False) if isinstance(mask, pa.Array) else mask, bool)


def stack(arrays: Sequence[Pixels], ids: Sequence[str]) -> Pixels:
    """Stack (h, w, 3) arrays into an (n, 3, h, w) array; DataError names two images whose sizes differ."""
    if not arrays:
        return np.empty((0, 3, 0, 0), np.uint8)
    for array, image_id in zip(arrays, ids, strict=True):
        if array.shape != arrays[0].shape:
            raise different_sizes(array.shape, image_id, arrays[0].shape, ids[0])
    return np.ascontiguousarray(np.stack(arrays).transpose(0, 3, 1, 2))


def different_sizes(a: Sequence[int], a_id: str, b: Sequence[int], b_id: str) -> DataError:
    """Build the error for two images, (h, w, 3) each, that do not fit into one array."""
    return DataError(
        f"image {a_id!r} has {a[0]} x {a[1]} pixels and {b_id!r} has {b[0]} x {b[1]}: "
        "they do not fit into one array",
        hint="a `transform` makes them one size: `--transform resize-32`, or `transforms` in the recipe",
    )


def png(image: Image.Image) -> bytes:
    """Return an image as a PNG file."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


_MAGIC = {b"\xff\xd8": ".jpg", b"\x89PNG": ".png", b"GIF8": ".gif", b"BM": ".bmp", b"RIFF": ".webp"}
_MAGIC |= {b"II*\0": ".tif", b"MM\0*": ".tif"}
_MAGIC |= {b"P1": ".pbm", b"P4": ".pbm", b"P2": ".pgm", b"P5": ".pgm", b"P3": ".ppm", b"P6": ".ppm"}
MAGIC_BYTES = max(map(len, _MAGIC))
FILE_EXTENSIONS = tuple(dict.fromkeys(_MAGIC.values()))


def file_extension(data: bytes) -> str:
    """Return the extension that fits an image file's first bytes, "" for another format."""
    return next((ext for magic, ext in _MAGIC.items() if data.startswith(magic)), "")


class ResizedImages(PartImages):
    """Images in an output folder, by row of ``ids``; each is compared with its pixel hash on reading.

    Parameters
    ----------
    output : the opened folder, with the same resize spec as the part's view.
    source : the source of all the images.
    ids : image_id of every row.
    """

    def __init__(self, output: Output, source: str, ids: pa.Array) -> None:
        self._output, self._source, self._ids = output, source, ids

    def image_id(self, row: int) -> str:
        """Return the id of an image."""
        return str(self._ids[row].as_py())

    def pictures(self, rows: RowNumbers) -> Iterator[Image.Image]:
        """Yield RGB images in the order of ``rows``; DataError if the pixels of an image were altered."""
        ids = map(self.image_id, rows.tolist())
        return (Image.fromarray(self._output.pixels(image_id, self._source)) for image_id in ids)
