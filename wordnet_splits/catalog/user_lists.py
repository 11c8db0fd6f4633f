"""Lists of a user's own, named in recipes as the shipped ones are: ``lists/<family>/<name>.parquet``.

They are looked for beside the recipe's file (or the folder of its manifest), then in the folder that
``WORDNET_SPLITS_LISTS`` names. A shipped list of the same name wins, so that no benchmark of ours changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from wordnet_splits.base.errors import UnknownNameError, unknown
from wordnet_splits.catalog.inventory import check_list, list_names, load_list

ENVIRONMENT = "WORDNET_SPLITS_LISTS"
FOLDER = "lists"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}/[a-z0-9][a-z0-9_-]{0,127}")


def available_lists(beside: Path | None = None) -> tuple[str, ...]:
    """Return the names of the lists that a recipe in the folder ``beside`` can use, sorted."""
    found = (
        f"{path.parent.name}/{path.stem}"
        for folder in _folders(beside)
        for path in folder.glob("*/*.parquet")
        if path.is_file()
    )
    return tuple(sorted({*list_names(), *filter(_NAME.fullmatch, found)}))


def find_list(name: str, beside: Path | None = None) -> pa.Table:
    """Return a list that a recipe names; columns as `load_list`.

    Raises
    ------
    UnknownNameError : there is none of that name.
    DataError : it is damaged.
    """
    if name in list_names():
        return load_list(name)
    for folder in _folders(beside) if _NAME.fullmatch(name) else ():
        path = folder / f"{name}.parquet"
        if path.is_file():
            return check_list(path)
    raise unknown_list(name, beside)


def unknown_list(name: str, beside: Path | None = None, *, where: str | None = None) -> UnknownNameError:
    """Build the error for a list that is not at hand: a manifest carries none, so it says where one goes."""
    error = unknown("list", name, available_lists(beside), where=where)
    if not _NAME.fullmatch(name):
        return error
    folders = " or ".join(str(folder) for folder in _folders(beside)) or f"the folder of {ENVIRONMENT}"
    hint = f"a list of its author's own: put {name}.parquet into {folders}"
    return UnknownNameError(error.what, where=where, hint=hint, near=error.near)


def _folders(beside: Path | None) -> Iterator[Path]:
    if beside is not None:
        yield beside / FOLDER
    if ENVIRONMENT in os.environ:
        yield Path(os.environ[ENVIRONMENT])
