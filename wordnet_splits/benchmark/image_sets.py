"""Open any set of images by name: a dataset, benchmark, packed store or folder.

====================  ===================================================================================
``NAME:SPLIT,SPLIT``  a dataset as its publisher lays it out, under its root
``NAME:GROUP:SPLIT``  a group of the benchmark called NAME
``DIR:GROUP:SPLIT``   a group of a folder with a manifest (``manifest.json``), with a packed store
                      (``packed.json``), or written by ``fix-resize build`` (``output.json``)
``DIR``               a dataset with ``dataset.toml``, or image files below a folder (an id is the relative
                      path without extension), or Parquet files with a column of images
====================  ===================================================================================

Without a group or split, the set contains all groups or all splits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from PIL import Image

from fix_resize.output import OUTPUT, Output, open_output
from wordnet_splits.base.errors import SourceError, unknown
from wordnet_splits.base.untrusted import expand_home
from wordnet_splits.benchmark.images import open_store
from wordnet_splits.benchmark.images.raw_images import (
    RAW_VIEW,
    RawImages,
    awaiting_parts,
    check_selection,
    is_selected,
    open_sources,
    require_roots,
)
from wordnet_splits.benchmark.images.store import PackedImages, is_store
from wordnet_splits.benchmark.manifest import Part
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.resolve import is_path, load_manifest, unknown_benchmark
from wordnet_splits.datasets.catalog.declarations import declared_name, register_declaration
from wordnet_splits.datasets.sources import Source, open_source, source_class, source_names
from wordnet_splits.datasets.sources.image_set import ImageSet, folder_images, source_images
from wordnet_splits.datasets.sources.roots import Roots


def open_images(text: str, roots: Roots | None = None, *, as_stored: bool = False) -> ImageSet:
    """Open a set of images by name (see above).

    The name of a dataset or benchmark takes precedence over a folder of that name.

    Parameters
    ----------
    roots : folder of each source.
    as_stored : read the images of a manifest as their source stores them, not in the views of their groups.

    Raises
    ------
    UnknownNameError : no such folder, benchmark, dataset, group or split.
    SourceError : the set has no images, or the root of a source is missing.
    """
    roots = roots or {}
    name, *parts = text.split(":")
    if not name:
        hint = "give a folder, benchmark or dataset"
        raise SourceError("the set of images has no name", where=repr(text), hint=hint)
    if not is_path(name):
        if name in source_names():
            are_splits = len(parts) == 1 and set(parts[0].split(",")) <= set(source_class(name).splits)
            if not parts or are_splits or name not in manifest_names():
                return _dataset_images(text, name, roots, parts)
        if name in manifest_names():
            return _manifest_images(text, name, parts, roots, as_stored)
    folder, parts = _existing_folder(text)
    if folder is None:
        if is_path(name):
            raise SourceError(
                "the folder does not exist", where=text, hint="give a folder, benchmark or dataset"
            )
        raise unknown("folder, benchmark or dataset", name, {*manifest_names(), *source_names()})
    if (folder / "manifest.json").is_file():
        if not is_path(name):
            raise unknown_benchmark(name, manifest_names())
        return _manifest_images(text, folder, parts, roots, as_stored)
    if is_store(folder):
        return _packed_images(text, folder, parts)
    if (folder / OUTPUT).is_file():
        return _resized_images(text, folder, parts)
    if parts:
        hint = "only manifests, packed stores and outputs of fix-resize have groups"
        raise SourceError("a folder of images has no groups", where=text, hint=hint)
    if (declared := declared_name(folder)) is not None:
        register_declaration(folder, declared)
        return source_images(text, open_source(declared, folder))
    return folder_images(text, folder)


def _existing_folder(text: str) -> tuple[Path | None, list[str]]:
    """Return the longest part of a text that is a folder, which may contain colons, and the rest."""
    words = text.split(":")
    for length in range(len(words), 0, -1):
        path = expand_home(":".join(words[:length]), where=text)
        if path.is_dir():
            return path, words[length:]
        if path.is_file():
            raise SourceError("is a file, not a folder", where=text, hint="give the folder that contains it")
    return None, []


def _dataset_images(text: str, name: str, roots: Roots, parts: Sequence[str]) -> ImageSet:
    if len(parts) > 1:
        raise SourceError("a dataset has no groups", where=text, hint="as in NAME:SPLIT,SPLIT")
    source = open_source(name, roots.get(name) if source_class(name).rooted else None)
    return source_images(text, source, parts[0].split(",") if parts else ())


@dataclass(frozen=True)
class GroupReader:
    """Reads images of a manifest by ``NUMBER/DIGEST/ID``, each compared with its digest if it is known."""

    groups: Sequence[tuple[Source, str]]

    def image(self, key: str) -> Image.Image:
        """Return an RGB image in the view of its group."""
        number, digest, image_id = key.split("/", 2)
        source, view = self.groups[int(number)]
        digests = pa.array([bytes.fromhex(digest) or None], pa.binary(32))
        return RawImages(source, pa.array([image_id]), digests, view).picture(0)


def _manifest_images(
    text: str, benchmark: str | Path, parts: Sequence[str], roots: Roots, as_stored: bool
) -> ImageSet:
    manifest = load_manifest(benchmark)
    groups, splits = _groups_and_splits(text, parts)
    check_selection(manifest, groups, splits)
    if awaiting := awaiting_parts(manifest, groups, splits):
        raise SourceError(
            f"the images of {' and '.join(awaiting)} are not known yet",
            where=text,
            hint="build the benchmark with a root of their source, then give the folder",
        )
    selected = [part for part in manifest.parts if is_selected(part, groups, splits)]
    names = [manifest.source_of(group) for _, group in selected]
    sources = open_sources(names, roots, manifest.declarations)
    require_roots(manifest, selected, sources)
    readable: list[tuple[Source, str]] = []
    rows = []
    for split, group in selected:
        name = manifest.source_of(group)
        table = manifest.images(split, group)
        columns = (table[c].to_pylist() for c in ("source", "split", "class_id", "image_id", "digest"))
        number = len(readable)
        readable.append((sources[name], RAW_VIEW if as_stored else str(table["view"][0].as_py())))
        rows += [(*key, f"{number}/{(d or b'').hex()}/{key[3]}") for *key, d in zip(*columns, strict=True)]
    roots_read = {source.root for source, _ in readable}
    return ImageSet.from_rows(
        text, rows, GroupReader(readable), roots_read.pop() if len(roots_read) == 1 else None
    )


@dataclass(frozen=True)
class PackedReader:
    """Reads the images of a packed store by ``PART/ROW``."""

    parts: Sequence[PackedImages]

    def image(self, key: str) -> Image.Image:
        """Return an RGB image."""
        part, row = map(int, key.split("/"))
        return self.parts[part].picture(row)


def _packed_images(text: str, folder: Path, parts: Sequence[str]) -> ImageSet:
    store = open_store(folder)
    opened = [store.images(part) for part in _choose(text, parts, sorted(store.parts))]
    rows = [
        (images.entry.source, images.entry.split, "", image_id, f"{n}/{row}")
        for n, images in enumerate(opened)
        for row, image_id in enumerate(images.ids.to_pylist())
    ]
    return ImageSet.from_rows(text, rows, PackedReader(opened), folder)


@dataclass(frozen=True)
class ResizedReader:
    """Reads the images of an output of ``fix-resize`` by ``SOURCE/ID``, each compared with its hash."""

    output: Output

    def image(self, key: str) -> Image.Image:
        """Return an RGB image."""
        source, image_id = key.split("/", 1)
        return Image.fromarray(self.output.pixels(image_id, source))


def _resized_images(text: str, folder: Path, parts: Sequence[str]) -> ImageSet:
    output = open_output(folder)
    columns = ("source", "split", "class_id", "image_id", "group")
    rows = list(zip(*(output.table[c].to_pylist() for c in columns), strict=True))
    chosen = set(_choose(text, parts, list(dict.fromkeys((row[1], row[4]) for row in rows))))
    keyed = sorted({(*row[:4], f"{row[0]}/{row[3]}") for row in rows if (row[1], row[4]) in chosen})
    return ImageSet.from_rows(text, keyed, ResizedReader(output), folder)


def _groups_and_splits(text: str, parts: Sequence[str]) -> tuple[list[str], list[str]]:
    if len(parts) > 2:
        raise SourceError(
            "has more parts than a group and a split", where=text, hint="as in NAME:GROUP:SPLIT"
        )
    group, split = (*parts, "", "")[:2]
    return [group] if group else [], split.split(",") if split else []


def _choose(text: str, parts: Sequence[str], available: Collection[Part]) -> list[Part]:
    """Return the (split, group) pairs that a text names; UnknownNameError for a name without images."""
    groups, splits = _groups_and_splits(text, parts)
    for kind, names, place in (("split", splits, 0), ("group", groups, 1)):
        for name in names:
            if name not in (choices := dict.fromkeys(part[place] for part in available)):
                raise unknown(kind, name, choices, where=text)
    return [part for part in available if is_selected(part, groups, splits)]
