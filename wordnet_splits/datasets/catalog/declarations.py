"""Datasets that a user declares: in a recipe, or in ``dataset.toml`` next to the images.

``dataset.toml`` is at the root of the dataset::

    name = "mypics"
    layout = "folders"
    catalog = "mypics.tsv"

Relative paths are relative to the file, and must stay below its folder: it may come from another person.

A recipe has such a table as ``[[source]]``, and a manifest carries the declarations of the datasets that it
was built from. `Sources` holds those that a benchmark declares. A different dataset of the same name on this
machine is refused, since results would be ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from wordnet_splits.base.about import About
from wordnet_splits.base.errors import DataError, UnknownNameError, unknown
from wordnet_splits.base.files import FileId, file_id
from wordnet_splits.base.parquet import LARGEST_TABLE
from wordnet_splits.base.text_formats import NAME_PATTERN, Name, read_toml, toml_table, validate
from wordnet_splits.base.untrusted import path_below, sha256_of
from wordnet_splits.datasets.catalog.own_hierarchy import CARRIED_NAMES, OwnHierarchy

DECLARATION_FILE: Final = "dataset.toml"
INVENTORY: Final = ".inventory.parquet"

DESCRIPTIVE_KEYS: Final = frozenset({"name", "title", "url", "licence", "bibtex", "about", "hierarchy"})
"""Descriptive keys of a declaration: they do not affect which images belong to the dataset."""

Text = Annotated[str, Field(min_length=1)]


class Columns(BaseModel):
    """The columns of a table of images, where they do not have the usual names.

    Attributes
    ----------
    image : the image, or its path.
    class : its class.
    split : its split.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    image: Text | None = None
    class_: Text | None = Field(default=None, alias="class")
    split: Text | None = None


class Declaration(BaseModel):
    """Declaration of a user's dataset.

    Attributes
    ----------
    name : its name in recipes and roots; not the name of a shipped source.
    layout : arrangement of its images, one of `wordnet_splits.datasets.sources.layouts.layout_names`.
    catalog : file of its classes and their synsets, as ``wordnet-splits catalog make`` writes it.
    inventory : file of its ids and digests; next to the catalog by default.
    splits : the splits to read; all of the catalog by default.
    images : pattern of the table of images below the root; the layout has a default.
    columns : the columns ``image``, ``class`` and ``split`` of that table, where they have other names.
    dataset : in the layout ``hub``, the dataset's name, ``ORG/NAME[@REVISION]``; by default the root's.
    config : its configuration, where it has several.
    lossless : whether digests are of the pixels instead of the file's bytes, so that losslessly stored images
        in different copies have equal digests.
    title : description in a line.
    url : address of its publisher.
    licence : its licence.
    bibtex : its citation.
    about : its authors and terms, in place of ``url`` and ``licence``.
    hierarchy : the hierarchy of its classes, in place of WordNet; the catalog's column ``wnids`` names nodes.
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
    about: About = About()
    hierarchy: OwnHierarchy | None = None
    _file: Path = PrivateAttr(default=Path())

    @model_validator(mode="after")
    def _dataset_of_the_hub(self) -> Declaration:
        if self.layout != "hub" and (self.dataset is not None or self.config is not None):
            raise ValueError('dataset and config are keys of layout = "hub"')
        return self

    @model_validator(mode="after")
    def _name_is_free(self) -> Declaration:
        if self.name in CARRIED_NAMES:
            raise ValueError(f"the name {self.name!r} is that of a file of a hierarchy: choose another")
        return self

    @model_validator(mode="after")
    def _terms_once(self) -> Declaration:
        if twice := [key for key in ("url", "licence") if getattr(self, key) and getattr(self.about, key)]:
            raise ValueError(f"{twice[0]} is given twice, in [about] too: remove one of them")
        return self

    def located(self, file: Path) -> Declaration:
        """Return a copy of the declaration with ``file`` as its origin."""
        hierarchy = self.hierarchy and self.hierarchy.located(file)
        declaration = self.model_copy(update={"hierarchy": hierarchy})
        declaration._file = file
        return declaration

    def over(self, hierarchy: OwnHierarchy | None) -> Declaration:
        """Return the declaration with a benchmark's hierarchy; None changes nothing."""
        return self if hierarchy is None else self.model_copy(update={"hierarchy": hierarchy})

    @property
    def file(self) -> Path:
        """The file of the declaration."""
        return self._file

    @property
    def catalog_file(self) -> Path:
        """Path of the catalog; DataError if it is not below the folder of the declaration."""
        return self._path(self.catalog)

    @property
    def inventory_file(self) -> Path:
        """Path of the inventory, whether it exists or not; DataError as for the catalog."""
        if self.inventory is not None:
            return self._path(self.inventory)
        return self.catalog_file.with_name(self.name + INVENTORY)

    def as_toml(self, catalog: str, inventory: str | None = None) -> str:
        """Return the declaration as TOML with other paths; ``inventory`` defaults to the catalog's folder."""
        moved = self.model_copy(update={"catalog": catalog, "inventory": inventory})
        keys = moved.model_dump(by_alias=True, exclude_defaults=True, mode="json")
        return toml_table(keys)

    def _path(self, text: str) -> Path:
        try:
            return path_below(self._file.parent, text)
        except DataError as error:
            raise error.within(str(self._file)) from None


_REGISTERED: dict[str, Declaration] = {}  # declarations of the roots that this process has opened


@dataclass(frozen=True)
class Sources:
    """The datasets available to a benchmark in addition to the shipped datasets.

    They include the datasets under roots that this process has opened.

    Attributes
    ----------
    declared : the datasets that the benchmark declares or carries, by name.
    hierarchy : the benchmark's hierarchy, which places the classes of all datasets; None for WordNet, and for
        the hierarchies that datasets declare.
    """

    declared: Mapping[str, Declaration] = field(default_factory=dict)
    hierarchy: OwnHierarchy | None = None

    @classmethod
    def of(cls, *sets: Mapping[str, Declaration], hierarchy: OwnHierarchy | None = None) -> Sources:
        """Return the datasets of recipes and manifests, and the benchmark's own hierarchy, if it has one.

        Raises DataError if two sets, or a set and this machine, declare different datasets of one name.
        """
        declared = merge_declarations(sets)
        for name in declared.keys() & _REGISTERED.keys():
            _check_same(declared[name], _REGISTERED[name])
        return cls(declared, hierarchy)

    @property
    def by_name(self) -> Mapping[str, Declaration]:
        """The declared datasets by name."""
        declared = {**_REGISTERED, **self.declared}
        return {name: declaration.over(self.hierarchy) for name, declaration in declared.items()}

    def find(self, name: str) -> Declaration | None:
        """Return the declaration of a dataset, None if it is not declared."""
        declaration = self.declared.get(name) or _REGISTERED.get(name)
        return declaration and declaration.over(self.hierarchy)


LOCAL: Final = Sources()
"""The datasets known without a benchmark."""


def merge_declarations(sets: Iterable[Mapping[str, Declaration]]) -> dict[str, Declaration]:
    """Return the declared datasets of several recipes and manifests.

    Raises DataError if two declare different datasets under the same name.
    """
    merged: dict[str, Declaration] = {}
    for declarations in sets:
        for name, declaration in declarations.items():
            _check_same(merged.setdefault(name, declaration), declaration)
    return merged


def _check_same(a: Declaration, b: Declaration) -> None:
    difference = _difference(a, b)
    if difference is not None:
        hint = "give one of them another name, build again if the benchmark is out of date, "
        hint += "or take one benchmark at a time"
        carried = [declaration.file.parent.name == "sources" for declaration in (a, b)]
        if any(carried):
            other = b.file if carried[0] else a.file
            hint += f"; for a benchmark as it was built, move {other} away, and give a root with its images"
        message = f"declares another dataset {a.name!r} than {a.file}: {difference}"
        raise DataError(message, where=str(b.file), hint=hint)


def _difference(a: Declaration, b: Declaration) -> str | None:
    """Return how the images of two declarations differ; a file that only one has is not compared."""
    if a is b:
        return None
    for key in sorted(Declaration.model_fields.keys() - DESCRIPTIVE_KEYS - {"catalog", "inventory"}):
        if getattr(a, key) != getattr(b, key):
            return f"{key} is {getattr(b, key)}, not {getattr(a, key)}"
    for key in ("catalog", "inventory"):
        files = [getattr(declaration, f"{key}_file") for declaration in (a, b)]
        if all(file.is_file() for file in files) and len({_sha256(file_id(file)) for file in files}) > 1:
            return f"its {key} differs"
    return None


@lru_cache(maxsize=64)
def _sha256(file: FileId) -> str:
    return sha256_of(Path(file[0]), largest=LARGEST_TABLE)


def declare(*declarations: Declaration) -> None:
    """Register datasets in this process, as opening their roots does."""
    _REGISTERED.update({declaration.name: declaration for declaration in declarations})


def register_declaration(root: Path, name: str, sources: Sources = LOCAL) -> None:
    """Register the declaration in a folder's ``dataset.toml``, if there is one.

    Raises DataError if the file is malformed; it declares another dataset than ``name``, and nothing else
    declares that; or it differs from the dataset of that name in the benchmark in use.
    """
    path = root / DECLARATION_FILE
    try:
        declaration = _read_declaration(file_id(path))
    except OSError:  # no such file or folder; opening the root will report a missing folder
        return
    if declaration.name == name:
        _check_same(sources.declared.get(name, declaration), declaration)
        _REGISTERED[name] = declaration
    elif name not in sources.by_name:
        message = f"declares the dataset {declaration.name!r}, not {name!r}"
        raise DataError(message, where=str(path), hint=f"--root {declaration.name}={root}")


def read_declaration(path: Path) -> Declaration:
    """Return the declaration in a ``dataset.toml``; its paths must stay below the file's folder."""
    return _read_declaration(file_id(path))


def declared_name(root: Path) -> str | None:
    """Return the name of the dataset in a folder's ``dataset.toml``, None without such a file."""
    try:
        return _read_declaration(file_id(root / DECLARATION_FILE)).name
    except OSError:
        return None


def unknown_source(
    name: str, sources: tuple[str, ...], *, where: str | None = None, root: Path | None = None
) -> UnknownNameError:
    """Return the error for an unknown source, not shipped and not declared."""
    error = unknown("source", name, sources, where=where)
    if not re.match(NAME_PATTERN, name):
        return error
    folder = f"and --root {name}=ITS-FOLDER" if root is None else f"in {root}"
    hint = f"a custom dataset needs {DECLARATION_FILE} {folder}, or [[source]] in the recipe"
    hint += "; see docs/custom-benchmarks.md"
    hint = hint if error.hint is None else f"{error.hint}; {hint}"
    return UnknownNameError(error.what, where=where, hint=hint, near=error.near)


@lru_cache(maxsize=64)
def _read_declaration(file: FileId) -> Declaration:
    path = Path(file[0])
    return parse_declaration(read_toml(path), str(path)).located(path)


def parse_declaration(table: Mapping[str, Any], where: str) -> Declaration:
    """Return the declaration in a table; DataError names the first wrong key."""
    hint = 'name, layout and catalog, as in catalog = "mypics.tsv"; see docs/custom-benchmarks.md'
    return validate(Declaration, table, where=where, hint=hint)
