"""Published lists of images: the shipped ones, and a user's own as ``lists/<family>/<name>.parquet``.

A user's lists are looked for beside the recipe's file (or the folder of its manifest), then in the folder of
the environment variable ``WORDNET_SPLITS_LISTS``. A shipped list of the same name takes precedence, so that
no shipped benchmark changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa

from wordnet_splits.base.errors import DataError, UnknownNameError, unknown
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.datasets.catalog.inventory import DATA, read_sorted_table

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
    UnknownNameError : there is no such list.
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


def available_lists(beside: Path | None = None) -> tuple[str, ...]:
    """Return the names of the lists that a recipe in the folder ``beside`` can use, sorted."""
    names = (name for folder in _folders(beside) for name in _names_in(folder) if _NAME.fullmatch(name))
    return tuple(sorted({*list_names(), *names}))


def find_list(name: str, beside: Path | None = None) -> pa.Table:
    """Return a list that a recipe in the folder ``beside`` names. Columns and errors as `load_list`."""
    if name in list_names():
        return load_list(name)
    for folder in _folders(beside) if _NAME.fullmatch(name) else ():
        if (path := folder / f"{name}.parquet").is_file():
            return check_list(path)
    raise unknown_list(name, beside)


def unknown_list(name: str, beside: Path | None = None, *, where: str | None = None) -> UnknownNameError:
    """Return the error for a list that is not available; its hint names the folders to put the list into."""
    error = unknown("list", name, available_lists(beside), where=where)
    if not _NAME.fullmatch(name):
        return error
    folders = " or ".join(str(folder) for folder in _folders(beside)) or f"the folder of {ENVIRONMENT}"
    hint = f"this list is not shipped: put {name}.parquet into {folders}"
    return UnknownNameError(error.what, where=where, hint=hint, near=error.near)


def _names_in(folder: Path) -> Iterator[str]:
    paths = (path for path in folder.glob("*/*.parquet") if path.is_file())
    return (f"{path.parent.name}/{path.stem}" for path in paths)


def _folders(beside: Path | None) -> Iterator[Path]:
    if beside is not None:
        yield beside / FOLDER
    if ENVIRONMENT in os.environ:
        yield Path(os.environ[ENVIRONMENT])
