"""Manifests of the installed package: image tables without digests, which are stored once.

Digests cannot be compressed, and many benchmarks have the same image. The wheel has them in the shipped
inventories and in one ``digests.parquet`` beside the benchmarks (source, image_id, digest). `with_digests`
adds them when a table is read. ``tools/wheel.py`` writes this form.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.parquet import read_table, schema_of
from wordnet_splits.benchmark.manifest.parts import Manifest, write_manifest
from wordnet_splits.benchmark.manifest.places import shipped_folders
from wordnet_splits.benchmark.manifest.tables import IMAGE_SCHEMA
from wordnet_splits.datasets.catalog.inventory import inventory_splits, load_inventory

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
