"""Hierarchies that a user brings in place of WordNet: in a recipe, or beside the declaration of a dataset.

The table ``[hierarchy]`` names a file of edges, or a lexicon of the library `wn` on this machine. Nodes then
take the place of wnids in catalogs, rules and class tables. A benchmark carries the hierarchy in two files of
canonical text, ``sources/hierarchy.tsv`` and ``sources/nodes.tsv``, so that neither the original files nor
`wn` are needed to verify it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, PrivateAttr, model_validator

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import FileId, file_id
from wordnet_splits.base.names import check_name, printable
from wordnet_splits.base.untrusted import path_below

if TYPE_CHECKING:
    from wordnet_splits.datasets.catalog.table import Catalog, CatalogClass
    from wordnet_splits.wordnet.taxonomy import Taxonomy

TREE, NODES = "hierarchy.tsv", "nodes.tsv"
"""Names of the carried files: the edges, and the names and glosses of the nodes."""
CARRIED_NAMES: Final = (Path(TREE).stem, Path(NODES).stem)
"""Names that no declared dataset may have: its carried catalog would be one of these files."""


def _line(text: str) -> str:
    try:
        check_name("value", text, where="")
    except DataError as error:
        raise ValueError(error.what) from None
    return text


Line = Annotated[str, AfterValidator(_line)]


class Digests(NamedTuple):
    """SHA-256 of the two canonical files of a hierarchy."""

    tree: str
    nodes: str


class OwnHierarchy(BaseModel):
    """A hierarchy of classes that takes the place of WordNet: the table ``[hierarchy]``.

    Attributes
    ----------
    file : file of edges, with the columns ``child``, ``parent`` and optionally ``kind``; in place of ``wn``.
    wn : a lexicon of the library `wn` on this machine, as ``oewn:2024``; in place of ``file``.
    nodes : file of the nodes' names and glosses; by default ``nodes.tsv`` next to ``file``, if it exists.
    root : name of the root to add above several roots.
    name : name in sentences and in the manifest; by default that of the file or the lexicon.
    version : version of the hierarchy; by default the lexicon's, or the start of the content's SHA-256.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Line | None = None
    wn: Line | None = None
    nodes: Line | None = None
    root: Line | None = None
    name: Line | None = None
    version: Line | None = None
    _location: Path = PrivateAttr(default=Path())

    @model_validator(mode="after")
    def _one_origin(self) -> OwnHierarchy:
        if (self.file is None) == (self.wn is None):
            raise ValueError("give exactly one of file, wn")
        if self.wn is not None and self.nodes is not None:
            raise ValueError("`nodes` only applies with `file`")
        return self

    def located(self, file: Path) -> OwnHierarchy:
        """Return a copy whose paths are relative to the folder of ``file``, and must stay below it."""
        hierarchy = self.model_copy()
        hierarchy._location = file
        return hierarchy

    @property
    def folder(self) -> Path:
        """The folder that its paths are relative to."""
        return self._location.parent

    @property
    def where(self) -> str:
        """Location of the table, for errors."""
        return f"{self._location}: [hierarchy]"

    @property
    def label(self) -> str:
        """The name in sentences and in the manifest."""
        return self.name or (Path(self.file).name if self.file else str(self.wn).partition(":")[0])

    def taxonomy(self) -> Taxonomy:
        """Return the hierarchy, read again only if its files have changed.

        Raises
        ------
        TaxonomyError : a file is malformed, or is no hierarchy; the error has its line.
        DataError : a file is absent, or its path leaves the folder.
        MissingPackageError : `wn` is not installed.
        """
        if self.file is None:
            return _lexicon(str(self.wn), self.root, self.label, self.version or "")
        tree_file = self._file_id(self.file)
        nodes = self.nodes or (Path(self.file).parent / NODES).as_posix()
        nodes_file = self._file_id(nodes) if self.nodes or self._path(nodes).exists() else None
        return _read(tree_file, nodes_file, self.root, self.label, self.version or "")

    def _path(self, text: str) -> Path:
        try:
            return path_below(self._location.parent, text)
        except DataError as error:
            raise DataError(error.what, where=self.where) from None

    def _file_id(self, text: str) -> FileId:
        try:
            return file_id(self._path(text))
        except OSError:
            is_lexicon = re.fullmatch(r"[\w-]+:[\w.-]+", text)
            hint = f'a lexicon: write wn = "{text}" in [hierarchy] of the recipe' if is_lexicon else None
            raise DataError(f"no file {printable(text)}", where=self.where, hint=hint) from None

    def digests(self) -> Digests:
        """Return the SHA-256 of the canonical files. Raises as `taxonomy`."""
        return _digests(self.taxonomy())

    def write(self, folder: Path) -> None:
        """Write the canonical files into a folder. Raises as `taxonomy`."""
        self.taxonomy().to_files(folder / TREE, folder / NODES)

    def carried(self, folder: str = "") -> OwnHierarchy:
        """Return the table that names the carried files below ``folder``. Raises as `taxonomy`."""
        at = Path(folder)
        return OwnHierarchy(
            file=(at / TREE).as_posix(),
            nodes=(at / NODES).as_posix(),
            name=self.label,
            version=self.version or self.taxonomy().version,
        )

    def is_same(self, other: OwnHierarchy) -> bool:
        """Return whether both have the same content, name and version. Raises as `taxonomy`."""
        if self == other and self._location.parent == other._location.parent:
            return True
        a, b = self.taxonomy(), other.taxonomy()
        return (a.title, self.digests()) == (b.title, other.digests())

    def place(self, catalog: Catalog, file: Path | None = None) -> Catalog:
        """Return a catalog with each class at its nodes.

        These are the nodes in its column ``wnids``; else the node whose id is the class id, with underscores
        for spaces, which ids of nodes lack; else none.

        Parameters
        ----------
        file : file of a declared catalog, whose column may name nodes only.

        Raises
        ------
        DataError : a cell of a declared catalog names no node; the error has its line.
        TaxonomyError : as of `taxonomy`.
        """
        return place_classes(catalog, self.taxonomy(), file)


@lru_cache(maxsize=16)
def _read(tree: FileId, nodes: FileId | None, root: str | None, name: str, version: str) -> Taxonomy:
    from wordnet_splits.wordnet.taxonomy import Taxonomy

    paths = Path(tree[0]), None if nodes is None else Path(nodes[0])
    return Taxonomy.from_files(*paths, root=root, name=name, version=version)


@lru_cache(maxsize=4)
def _lexicon(spec: str, root: str | None, name: str, version: str) -> Taxonomy:
    from wordnet_splits.wordnet.taxonomy import Taxonomy

    return Taxonomy.from_lexicon(spec, root=root, name=name, version=version)


@lru_cache(maxsize=16)
def _digests(taxonomy: Taxonomy) -> Digests:
    return Digests(*(hashlib.sha256(table).hexdigest() for table in taxonomy.tables()))


@lru_cache(maxsize=64)
def place_classes(catalog: Catalog, taxonomy: Taxonomy, file: Path | None = None) -> Catalog:
    """Return a catalog with each class at its nodes, as `OwnHierarchy.place`."""

    def placed(item: CatalogClass) -> CatalogClass:
        nodes = tuple(wnid for wnid in item.wnids if wnid in taxonomy)
        if file is not None and len(nodes) < len(item.wnids):
            absent = next(wnid for wnid in item.wnids if wnid not in taxonomy)
            raise DataError(
                f"{absent!r} is not a node of {taxonomy.title}",
                where=f"{file}:{catalog.line(item.class_id)}",
                hint="write the id of a node in the column wnids, or leave it empty",
            )
        if nodes:
            return replace(item, wnids=nodes)
        if (node := item.class_id.replace(" ", "_")) in taxonomy:
            return replace(item, wnids=(node,), mapped="exact", why="")
        return replace(item, wnids=(), mapped="")

    return replace(catalog, classes=tuple(map(placed, catalog)))
