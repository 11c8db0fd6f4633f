"""Folders of frozen manifests: a user's folder, and the shipped benchmarks.

The installed package has image tables without digests, which cannot be compressed: it has each once, in the
shipped inventories or in ``manifests/digests.parquet`` (source, image_id, digest). `with_digests` adds them
when a table is read. ``tools/wheel.py`` writes this form.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.parquet import read_table, schema_of
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.benchmark.manifest.metadata import ManifestData, check_data
from wordnet_splits.benchmark.manifest.parts import Manifest, write_manifest
from wordnet_splits.benchmark.manifest.tables import IMAGE_SCHEMA
from wordnet_splits.datasets.catalog.inventory import inventory_splits, load_inventory

ENVIRONMENT = "WORDNET_SPLITS_MANIFESTS"
"""Environment variable with the path of a user's folder of manifests."""
CHANGELOG = "CHANGELOG.md"
"""The author's changelog of a frozen manifest."""
LONGEST_NAME = 255
"""Most bytes of a folder's name."""
_VERSIONED = re.compile(r"([a-z0-9][a-z0-9-]*)@v([1-9][0-9]{0,8})")


def shipped_folder() -> Path:
    """Return the folder of the benchmarks that come with the program: the checkout's, or the package's."""
    return next((folder for folder in shipped_folders() if folder.is_dir()), shipped_folders()[0])


def shipped_folders() -> tuple[Path, ...]:
    """Return the folders that may hold the shipped benchmarks, first match first."""
    package = Path(str(files("wordnet_splits")))
    return package.parent / "manifests", package / "_manifests"


def shipped_data(name: str) -> ManifestData | None:
    """Return the ``manifest.json`` of the benchmark of that name that comes with the program."""
    path = shipped_folder() / name.partition("@")[0] / "manifest.json"
    return check_data(read_json(path, error=ManifestError), str(path)) if path.is_file() else None


def manifest_folders(manifests: Path | None = None) -> Iterator[Path]:
    """Yield the folders that may hold manifests, first match first."""
    if manifests is not None:
        yield manifests
        return
    if ENVIRONMENT in os.environ:
        yield Path(os.environ[ENVIRONMENT])
    yield from shipped_folders()


def frozen_folders(manifests: Path | None = None, *, earlier: bool = False) -> dict[str, Path]:
    """Return the folder of each frozen benchmark by its name, sorted.

    Parameters
    ----------
    earlier : include the earlier versions that `freeze` kept, as ``NAME@v1``.
    """
    folders: dict[str, Path] = {}
    for parent in manifest_folders(manifests):
        for file in parent.glob("*/manifest.json"):
            if file.is_file() and (earlier or version_of(file.parent.name) is None):
                folders.setdefault(file.parent.name, file.parent)
    return dict(sorted(folders.items()))


def version_of(name: str) -> int | None:
    """Return the version that a name as ``mine@v1`` has, None for a name without version."""
    match = _VERSIONED.fullmatch(name)
    return int(match[2]) if match else None


def frozen_folder(name: str, manifests: Path | None = None) -> Path | None:
    """Return the folder of a frozen benchmark, or None.

    ``mine@v1`` is the version that `freeze` kept when it froze a later one, or the latest if it is that.
    """
    if not 0 < len(name.encode(errors="replace")) <= LONGEST_NAME:
        return None
    for parent in manifest_folders(manifests):
        if (parent / name / "manifest.json").is_file():
            return parent / name
        latest = parent / name.partition("@")[0]
        if version_of(name) is not None and (latest / "manifest.json").is_file():
            data = check_data(read_json(latest / "manifest.json", error=ManifestError), str(latest))
            if data.version == version_of(name):
                return latest
    return None


def manifest_names(manifests: Path | None = None) -> tuple[str, ...]:
    """Return the names of the frozen benchmarks, sorted."""
    return tuple(frozen_folders(manifests))


DIGESTS = "digests.parquet"
DIGEST_SCHEMA = schema_of("source image_id digest:sha256")


def with_digests(table: pa.Table, path: Path) -> pa.Table:
    """Return the image table read from ``path`` with its digests; an unknown digest is null.

    A table that has the column, or that is not the package's, is returned as it is.
    """
    manifests = path.parents[3]
    packaged = (manifests / DIGESTS).is_file() and {"source", "image_id"} <= set(table.column_names)
    if "digest" in table.column_names or not packaged:
        return table
    sources = table["source"].unique().to_pylist()  # at most one: a group has one source
    ids, digests = packaged_digests(sources[0] if sources else "", manifests)
    column = digests.take(pc.index_in(table["image_id"], ids))
    at = IMAGE_SCHEMA.get_field_index("digest")
    return table.add_column(at, IMAGE_SCHEMA.field(at), column)


@cache
def packaged_digests(source: str, manifests: Path | None) -> tuple[pa.Array, pa.Array]:
    """Return the ids and digests of a source's images in the package, unique ids of the inventories first.

    Parameters
    ----------
    manifests : the folder that holds ``digests.parquet``; None for the inventories alone.
    """
    tables = [*_inventories(source)]
    if manifests is not None:
        every = read_table(manifests / DIGESTS, error=ManifestError)
        tables.append(every.filter(pc.equal(every["source"], source)).select(["image_id", "digest"]))
    whole = pa.concat_tables(tables).combine_chunks()
    return whole["image_id"].combine_chunks(), whole["digest"].combine_chunks()


def _inventories(source: str) -> Iterator[pa.Table]:
    yield DIGEST_SCHEMA.empty_table().select(["image_id", "digest"])
    for split in inventory_splits(source):
        inventory = load_inventory(source, split)
        if inventory is not None:
            yield inventory.select(["image_id", "digest"]).replace_schema_metadata(None)


@cache
def _unpacked(folder: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="wordnet-splits-")


def whole_folder(manifest: Manifest) -> Path:
    """Return a folder with a manifest's files as they are published: its folder, or a temporary copy.

    A manifest of the installed package, whose image tables have no digests, is copied; the copy is removed
    when this process ends.
    """
    folder = manifest.folder
    assert folder is not None
    if folder.parent not in shipped_folders() or not (folder.parent / DIGESTS).is_file():
        return folder
    copy = Path(_unpacked(folder).name) / manifest.name
    if not copy.is_dir():
        write_manifest(manifest, copy.parent)
    return copy
