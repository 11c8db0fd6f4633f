"""Inventories and lists of images.

An inventory has every image of a split of a source, with its class and digest. It is complete or absent:
draws use all its images, so a partial inventory would change them.

A published list is a selection of images: a shipped one, or a user's own ``lists/<family>/<name>.parquet``.
A user's lists are looked up next to the recipe's file (or the folder of its manifest), then in the folder of
the environment variable ``WORDNET_SPLITS_LISTS``. A shipped list of the same name takes precedence, so that
no shipped benchmark changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, UnknownNameError, unknown
from wordnet_splits.base.files import FileId, file_id
from wordnet_splits.base.parquet import read_table, schema_of
from wordnet_splits.datasets.catalog.declarations import LOCAL, Declaration, Sources, unknown_source
from wordnet_splits.datasets.catalog.table import (
    CATALOGS_OF_PACKAGES,
    catalog_names,
    known_sources,
    load_catalog,
)

DATA = Path(__file__).parent.parent.parent / "data"
INVENTORY_SCHEMA = schema_of("image_id class_id split digest:sha256")
MULTILABEL_SCHEMA = INVENTORY_SCHEMA.append(pa.field("also", pa.list_(pa.string())))
"""Inventory of a declared dataset with several labels per image; ``also`` lists the additional classes."""


def inventory_splits(source: str, sources: Sources = LOCAL) -> tuple[str, ...]:
    """Return the publisher's splits of ``source`` whose image ids are known without pixels, sorted.

    Raises
    ------
    UnknownNameError : the source does not exist.
    DataError : the inventory of a declared dataset is damaged.
    """
    shipped = _shipped_splits(source)
    return tuple(sorted(_declared_inventory(source, sources))) if shipped is None else shipped


@cache
def _shipped_splits(source: str) -> tuple[str, ...] | None:
    if source not in catalog_names():
        return None
    return tuple(sorted(path.stem for path in (DATA / "inventories" / source).glob("*.parquet")))


def load_inventory(source: str, split: str, sources: Sources = LOCAL) -> pa.Table | None:
    """Return every image of a publisher's split, or None where the ids are not known.

    Returns
    -------
    Columns image_id, class_id, split (all ``split``) and digest (32 bytes; present for all images or for no
    image, see ``wordnet_splits.base.digests``), sorted by image_id, which is unique; where images show
    several classes, ``also`` lists the additional classes.

    Raises
    ------
    UnknownNameError : the publisher has no such source or split.
    DataError : the table is damaged.
    """
    if split not in inventory_splits(source, sources):
        splits = load_catalog(source, sources).splits
        if split not in splits:
            raise unknown("split", split, splits, where=source)
        return None
    if _shipped_splits(source) is None:
        return _declared_inventory(source, sources)[split]
    return _load_shipped(source, split)


@cache
def _load_shipped(source: str, split: str) -> pa.Table:
    path = DATA / "inventories" / source / f"{split}.parquet"
    table = read_sorted_table(path, INVENTORY_SCHEMA, key=("image_id",))
    if pc.unique(table["split"]).to_pylist() != [split]:
        raise DataError(f"holds other splits than {split!r}", where=str(path))
    if table["digest"].null_count not in (0, len(table)):
        raise DataError("has digests of some images only", where=str(path))
    return table


def _declared_inventory(source: str, sources: Sources) -> Mapping[str, pa.Table]:
    if source in CATALOGS_OF_PACKAGES:
        return {}
    declaration = sources.find(source)
    if declaration is None:
        raise unknown_source(source, known_sources(sources))
    return load_declared_inventory(declaration)


def load_declared_inventory(declaration: Declaration) -> Mapping[str, pa.Table]:
    """Return the inventory of a declared dataset by split, {} before it is made; DataError if damaged."""
    try:
        return _read_inventory(file_id(declaration.inventory_file))
    except OSError:
        return {}


@lru_cache(maxsize=8)
def _read_inventory(file: FileId) -> Mapping[str, pa.Table]:
    """Return the inventory in a file by split; every image has a digest."""
    path = Path(file[0])
    table = read_sorted_table(path, INVENTORY_SCHEMA, MULTILABEL_SCHEMA, key=("split", "image_id"))
    if table["digest"].null_count:
        raise DataError("has an empty digest", where=str(path), hint="make it again with `sources inventory`")
    splits = pc.unique(table["split"]).to_pylist()
    return {split: table.filter(pc.equal(table["split"], split)) for split in splits}


def read_sorted_table(path: Path, *schemas: pa.Schema, key: tuple[str, ...]) -> pa.Table:
    """Read a table and check it: one of ``schemas``, no nulls but digests, sorted by a unique ``key``.

    Raises DataError if the table cannot be read or fails the check.
    """
    table = read_table(path)
    if not any(table.schema.equals(schema) for schema in schemas):
        raise DataError(f"has columns {_columns(table.schema)}, not {_columns(schemas[0])}", where=str(path))
    for name in table.schema.names:
        if name != "digest" and table[name].null_count:
            raise DataError(f"has an empty {name}", where=str(path))
    if not _strictly_ascending(table.select(list(key)).combine_chunks()):
        raise DataError(f"is not sorted by unique {', '.join(key)}", where=str(path))
    return table


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _strictly_ascending(keys: pa.Table) -> bool:
    pairs = max(len(keys) - 1, 0)
    above = pa.repeat(False, pairs)
    for name in reversed(keys.column_names):  # lexicographic: earlier columns decide, later ones break ties
        previous, following = keys[name].slice(0, pairs), keys[name].slice(1)
        above = pc.or_(pc.less(previous, following), pc.and_(pc.equal(previous, following), above))
    return pc.all(above, min_count=0).as_py() is True


ENVIRONMENT = "WORDNET_SPLITS_LISTS"
FOLDER = "lists"
LIST_SCHEMA = schema_of("source image_id class_id label:int32")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}/[a-z0-9][a-z0-9_-]{0,127}")


@cache
def list_names() -> tuple[str, ...]:
    """Return the names of the published lists, ``family/name``, sorted."""
    return tuple(sorted(_names_in(DATA / "lists")))


@cache
def load_list(name: str) -> pa.Table:
    """Return a published list of images, e.g. ``openset-imagenet/p3_val``.

    Returns
    -------
    Columns source, image_id, class_id and label (int32, as published: the publisher defines negative
    labels), sorted by source and image_id; the schema's metadata holds origin and sha256.

    Raises
    ------
    UnknownNameError : the list does not exist.
    DataError : the shipped table is damaged.
    """
    if name not in list_names():
        raise unknown("list", name, list_names())
    return check_list(DATA / "lists" / f"{name}.parquet")


def check_list(path: Path) -> pa.Table:
    """Return the list in a file; DataError where it is damaged or lacks its origin or SHA-256."""
    table = read_sorted_table(path, LIST_SCHEMA, key=("source", "image_id"))
    metadata = table.schema.metadata or {}
    for key in ("origin", "sha256"):
        if not metadata.get(key.encode()):
            raise DataError(f"has no {key} in its metadata", where=str(path))
    return table


def available_lists(recipe_folder: Path | None = None) -> tuple[str, ...]:
    """Return the names of the lists that a recipe in a folder can use, sorted."""
    names = (
        name for folder in _folders(recipe_folder) for name in _names_in(folder) if _NAME.fullmatch(name)
    )
    return tuple(sorted({*list_names(), *names}))


def find_list(name: str, recipe_folder: Path | None = None) -> pa.Table:
    """Return a list that a recipe in a folder names. Columns and errors as `load_list`."""
    if name in list_names():
        return load_list(name)
    for folder in _folders(recipe_folder) if _NAME.fullmatch(name) else ():
        if (path := folder / f"{name}.parquet").is_file():
            return check_list(path)
    raise unknown_list(name, recipe_folder)


def unknown_list(
    name: str, recipe_folder: Path | None = None, *, where: str | None = None
) -> UnknownNameError:
    """Return the error for a list that is not available; its hint names the folders to put the list into."""
    error = unknown("list", name, available_lists(recipe_folder), where=where)
    if not _NAME.fullmatch(name):
        return error
    folders = " or ".join(str(folder) for folder in _folders(recipe_folder)) or f"the folder of {ENVIRONMENT}"
    hint = f"this list is not shipped: put {name}.parquet into {folders}"
    return UnknownNameError(error.what, where=where, hint=hint, near=error.near)


def _names_in(folder: Path) -> Iterator[str]:
    paths = (path for path in folder.glob("*/*.parquet") if path.is_file())
    return (f"{path.parent.name}/{path.stem}" for path in paths)


def _folders(recipe_folder: Path | None) -> Iterator[Path]:
    if recipe_folder is not None:
        yield recipe_folder / FOLDER
    if ENVIRONMENT in os.environ:
        yield Path(os.environ[ENVIRONMENT])
