"""Datasets of a user's own, declared as data: ``dataset.toml`` beside the pictures, or ``sources.toml``.

``dataset.toml`` lies at the root of the dataset::

    name = "mypics"
    layout = "folders"
    catalog = "mypics.tsv"

``sources.toml`` is in the user's config folder and has such a table for each dataset, under its name. What
lies beside the data wins. Relative paths are relative to the file; those of a ``dataset.toml``, which
somebody else may have written, stay below its folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from wordnet_splits.errors import DataError, UnknownNameError, unknown
from wordnet_splits.fields import NAME_PATTERN, Name
from wordnet_splits.files import FileId, file_id
from wordnet_splits.untrusted import below, expanded, read_toml, validated

BESIDE: Final = "dataset.toml"
CONFIG: Final = "sources.toml"
INVENTORY: Final = ".inventory.parquet"

Text = Annotated[str, Field(min_length=1)]


class Columns(BaseModel):
    """The columns of a table of images, where a layout cannot find them by their usual names."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    image: Text | None = None
    class_: Text | None = Field(default=None, alias="class")
    split: Text | None = None


class Declaration(BaseModel):
    """A dataset, declared.

    Attributes
    ----------
    layout : how its images lie, one of `wordnet_splits.sources.own.layout_names`.
    catalog : its classes and their synsets, as ``wordnet-splits catalog make`` writes them.
    inventory : its frozen ids and digests; beside the catalog by default.
    splits : those that are read; all of the catalog by default.
    images : the table of images below the root, as a pattern; what a layout looks for by default.
    dataset : in the layout ``hub``, the dataset by name, ``ORG/NAME[@REVISION]``; by default what the root
        holds.
    config : its configuration, where it has several.
    lossless : whether a digest is of the pixels, not of the file's bytes: pictures that are stored without
        loss are then equal to those of another copy.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    layout: Name
    catalog: Text
    inventory: Text | None = None
    splits: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    images: Text | None = None
    dataset: Text | None = None
    config: Text | None = None
    columns: Columns = Columns()
    lossless: bool = False
    title: str = ""
    url: str = ""
    licence: str = ""
    bibtex: str = ""
    _file: Path = PrivateAttr(default=Path())
    _confined: bool = PrivateAttr(default=True)

    @model_validator(mode="after")
    def _dataset_of_the_hub(self) -> Declaration:
        if self.layout != "hub" and (self.dataset is not None or self.config is not None):
            raise ValueError('dataset and config are keys of layout = "hub"')
        return self

    def read_from(self, file: Path, *, confined: bool) -> Declaration:
        """Note the file that declares it, and whether its paths must stay below that file's folder."""
        self._file, self._confined = file, confined
        return self

    @property
    def file(self) -> Path:
        """Return the file that declares it."""
        return self._file

    @property
    def confined(self) -> bool:
        """Say whether its paths must stay below the folder of that file."""
        return self._confined

    @property
    def catalog_file(self) -> Path:
        """Return where its catalog is; DataError where that may not be."""
        return self._path(self.catalog)

    @property
    def inventory_file(self) -> Path:
        """Return where its inventory is, or would be; DataError where that may not be."""
        if self.inventory is not None:
            return self._path(self.inventory)
        return self.catalog_file.with_name(self.name + INVENTORY)

    def _path(self, text: str) -> Path:
        try:
            if self._confined:
                return below(self._file.parent, text)
        except DataError as error:
            raise error.within(str(self._file)) from None
        return self._file.parent / expanded(text, where=str(self._file))


_BESIDE: dict[str, Declaration] = {}  # what the roots of this process declare


def own_sources() -> Mapping[str, Declaration]:
    """Return every dataset that is declared, by name.

    Raises
    ------
    DataError : ``sources.toml`` is malformed.
    """
    return {**_configured(), **_BESIDE}


def declare(declaration: Declaration) -> None:
    """Make a dataset known in this process; one declared before under that name is forgotten."""
    _BESIDE[declaration.name] = declaration


def declare_beside(root: Path, name: str) -> None:
    """Make known what a folder's ``dataset.toml`` declares, if it has one.

    Raises
    ------
    DataError : it is malformed, or declares another dataset than ``name``, which nothing else declares.
    """
    path = root / BESIDE
    try:
        found = _read_beside(file_id(path))
    except OSError:  # none there, or no folder at all: whoever opens the root says so
        return
    if found.name == name:
        declare(found)
    elif name not in own_sources():
        raise DataError(
            f"declares the dataset {found.name!r}, not {name!r}",
            where=str(path),
            hint=f"--root {found.name}={root}",
        )


def name_beside(root: Path) -> str | None:
    """Return the name of the dataset that a folder's ``dataset.toml`` declares, None without one."""
    try:
        return _read_beside(file_id(root / BESIDE)).name
    except OSError:
        return None


def unknown_source(
    name: str, known: tuple[str, ...], *, where: str | None = None, root: Path | None = None
) -> UnknownNameError:
    """Build the error for a source that nothing declares."""
    error = unknown("source", name, known, where=where)
    if not re.match(NAME_PATTERN, name):
        return error
    folder = f"and --root {name}=ITS-FOLDER" if root is None else f"in {root}"
    own = f"a dataset of your own needs {BESIDE} {folder}; see docs/your-own-benchmark.md"
    hint = own if error.hint is None else f"{error.hint}; {own}"
    return UnknownNameError(error.what, where=where, hint=hint, near=error.near)


@lru_cache(maxsize=64)
def _read_beside(file: FileId) -> Declaration:
    path = Path(file[0])
    return _declaration(read_toml(path), path, str(path)).read_from(path, confined=True)


def _configured() -> Mapping[str, Declaration]:
    try:
        return _read_config(file_id(platformdirs.user_config_path("wordnet-splits") / CONFIG))
    except OSError:
        return {}


@lru_cache(maxsize=4)
def _read_config(file: FileId) -> Mapping[str, Declaration]:
    path = Path(file[0])
    found = {}
    for name, table in read_toml(path).items():
        where = f"{path}: [{name}]"
        if not isinstance(table, dict):
            raise DataError(
                "is not a table", where=where, hint='as in [mypics], then layout = "folders" below'
            )
        found[name] = _declaration({"name": name, **table}, path, where).read_from(path, confined=False)
    return found


def _declaration(table: Mapping[str, Any], path: Path, where: str) -> Declaration:
    hint = 'name, layout and catalog, as in catalog = "mypics.tsv"; see docs/your-own-benchmark.md'
    return validated(Declaration, table, where=where, hint=hint)
