"""Datasets of a user's own, declared as data: in a recipe or beside the pictures, or in ``sources.toml``.

``dataset.toml`` lies at the root of the dataset::

    name = "mypics"
    layout = "folders"
    catalog = "mypics.tsv"

``sources.toml`` is in the user's config folder and has such a table for each dataset, under its name. What
lies beside the data wins. Relative paths are relative to the file; those of a ``dataset.toml``, which
somebody else may have written, stay below its folder.

A recipe has such a table as ``[[source]]``, and a manifest carries the datasets that it was built from. They
hold while that benchmark is worked on (`using_sources`); another dataset of the same name on this machine is
refused, for nobody could say which of the two a number is of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from wordnet_splits.base.errors import DataError, UnknownNameError, unknown
from wordnet_splits.base.files import FileId, file_id
from wordnet_splits.base.parquet import LARGEST_TABLE
from wordnet_splits.base.schemas import NAME_PATTERN, Name, validate
from wordnet_splits.base.text_formats import read_toml
from wordnet_splits.base.untrusted import expand_home, path_below, sha256_of

BESIDE: Final = "dataset.toml"
CONFIG: Final = "sources.toml"
INVENTORY: Final = ".inventory.parquet"

DESCRIPTIVE_KEYS: Final = frozenset({"name", "title", "url", "licence", "bibtex"})
"""What of a declaration does not decide which pictures there are."""

Text = Annotated[str, Field(min_length=1)]


class Columns(BaseModel):
    """The columns of a table of images, where a layout cannot find them by their usual names.

    Attributes
    ----------
    image : the picture, or its path.
    class : its class.
    split : its split.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    image: Text | None = None
    class_: Text | None = Field(default=None, alias="class")
    split: Text | None = None


class Declaration(BaseModel):
    """A dataset of one's own, declared.

    Attributes
    ----------
    name : by which recipes and roots call it; none of ours.
    layout : how its images lie, one of `wordnet_splits.sources.own.layout_names`.
    catalog : its classes and their synsets, as ``wordnet-splits catalog make`` writes them.
    inventory : its frozen ids and digests; beside the catalog by default.
    splits : those that are read; all of the catalog by default.
    images : the table of images below the root, as a pattern; what a layout looks for by default.
    columns : the columns ``image``, ``class`` and ``split`` of that table, where they have other names.
    dataset : in the layout ``hub``, the dataset by name, ``ORG/NAME[@REVISION]``; by default what the root
        holds.
    config : its configuration, where it has several.
    lossless : whether a digest is of the pixels, not of the file's bytes: pictures that are stored without
        loss are then equal to those of another copy.
    title : what it is, in a line.
    url : where it is published.
    licence : under which terms.
    bibtex : how to cite it.
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

    def as_toml(self, catalog: str, inventory: str | None = None) -> str:
        """Return the declaration as text, a line a key, with other paths; None is beside the catalog."""
        told = self.model_copy(update={"catalog": catalog, "inventory": inventory})
        keys = told.model_dump(by_alias=True, exclude_defaults=True)
        return "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())

    def _path(self, text: str) -> Path:
        try:
            if self._confined:
                return path_below(self._file.parent, text)
        except DataError as error:
            raise error.within(str(self._file)) from None
        return self._file.parent / expand_home(text, where=str(self._file))


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    # TOML's strings, lists and truth values are JSON's, but for one character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_BESIDE: dict[str, Declaration] = {}  # what the roots of this process declare
_IN_FORCE: ContextVar[Mapping[str, Declaration]] = ContextVar("in force", default=MappingProxyType({}))


def declared_sources() -> Mapping[str, Declaration]:
    """Return every dataset that is declared, by name.

    Raises
    ------
    DataError : ``sources.toml`` is malformed.
    """
    return {**_configured(), **_BESIDE, **_IN_FORCE.get()}


@contextmanager
def using_sources(own: Mapping[str, Declaration]) -> Iterator[None]:
    """Have the datasets of a recipe or manifest be those of their names, in all that is called meanwhile.

    Raises
    ------
    DataError : this machine declares another dataset under one of the names.
    """
    here = {**_configured(), **_BESIDE} if own else {}
    for name, carried in own.items():
        if name in here:
            _check_same(carried, here[name])
    token = _IN_FORCE.set({**_IN_FORCE.get(), **own})
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def merge_declarations(several: Iterable[Mapping[str, Declaration]]) -> dict[str, Declaration]:
    """Return the datasets of several recipes and manifests.

    Raises
    ------
    DataError : two of them have another dataset under one name.
    """
    found: dict[str, Declaration] = {}
    for own in several:
        for name, declared in own.items():
            _check_same(found.setdefault(name, declared), declared)
    return found


def _check_same(carried: Declaration, other: Declaration) -> None:
    difference = _difference(carried, other)
    if difference is not None:
        raise DataError(
            f"declares another dataset {carried.name!r} than {carried.file}: {difference}",
            where=str(other.file),
            hint="give one of them another name, build again if the benchmark is out of date, "
            "or take one benchmark at a time",
        )


def _difference(a: Declaration, b: Declaration) -> str | None:
    """Say in what two declarations mean other pictures; a file that only one of them has tells nothing."""
    if a is b:
        return None
    for key in sorted(Declaration.model_fields.keys() - DESCRIPTIVE_KEYS - {"catalog", "inventory"}):
        one, other = getattr(a, key), getattr(b, key)
        if one != other:
            return f"{key} is {other}, not {one}"
    for what in ("catalog", "inventory"):
        files = [getattr(declared, f"{what}_file") for declared in (a, b)]
        if all(file.is_file() for file in files) and len({_sha256(file_id(file)) for file in files}) > 1:
            return f"its {what} differs"
    return None


@lru_cache(maxsize=64)
def _sha256(file: FileId) -> str:
    return sha256_of(Path(file[0]), largest=LARGEST_TABLE)


def register_declaration(root: Path, name: str) -> None:
    """Make known what a folder's ``dataset.toml`` declares, if it has one.

    Raises
    ------
    DataError : it is malformed; declares another dataset than ``name``, which nothing else declares; or is
        not what the benchmark at work means by that name.
    """
    path = root / BESIDE
    try:
        found = _read_beside(file_id(path))
    except OSError:  # none there, or no folder at all: whoever opens the root says so
        return
    if found.name == name:
        _check_same(_IN_FORCE.get().get(name, found), found)
        _BESIDE[name] = found
    elif name not in declared_sources():
        raise DataError(
            f"declares the dataset {found.name!r}, not {name!r}",
            where=str(path),
            hint=f"--root {found.name}={root}",
        )


def declared_name(root: Path) -> str | None:
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
    own = f"a dataset of your own needs {BESIDE} {folder}, or [[source]] in the recipe"
    own += "; see docs/your-own-benchmark.md"
    hint = own if error.hint is None else f"{error.hint}; {own}"
    return UnknownNameError(error.what, where=where, hint=hint, near=error.near)


@lru_cache(maxsize=64)
def _read_beside(file: FileId) -> Declaration:
    path = Path(file[0])
    return parse_declaration(read_toml(path), str(path)).read_from(path, confined=True)


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
        found[name] = parse_declaration({"name": name, **table}, where).read_from(path, confined=False)
    return found


def parse_declaration(table: Mapping[str, Any], where: str) -> Declaration:
    """Return what a table declares; DataError names the first key that is wrong."""
    hint = 'name, layout and catalog, as in catalog = "mypics.tsv"; see docs/your-own-benchmark.md'
    return validate(Declaration, table, where=where, hint=hint)
