"""Declared datasets and tables of pairs that a manifest carries, so that it can be verified without them.

``sources/<name>.toml`` is the declaration, ``sources/<name>.tsv`` the catalog, and
``sources/<name>.inventory.parquet`` the inventory, if any. ``pairs/1.tsv`` is the first of the tables of
pairs of images that the recipe names. ``sources/hierarchy.tsv`` and ``sources/nodes.tsv`` are the hierarchy
in place of WordNet, if any. ``manifest.json`` has the SHA-256 of each file.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, ManifestError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import LARGEST_TABLE
from wordnet_splits.base.text_formats import LARGEST_CSV, LARGEST_TOML, parse_toml, validate
from wordnet_splits.base.untrusted import LARGEST_TEXT, path_below, read_text, sha256_of
from wordnet_splits.benchmark.manifest.metadata import (
    Carried,
    HierarchyRow,
    ManifestData,
    PairTableRow,
    SourceRow,
)
from wordnet_splits.datasets.catalog import inventory as inventories
from wordnet_splits.datasets.catalog.declarations import INVENTORY, Declaration, parse_declaration
from wordnet_splits.datasets.catalog.own_hierarchy import NODES, TREE, OwnHierarchy
from wordnet_splits.datasets.catalog.table import load_declared_catalog
from wordnet_splits.datasets.sources.by_name import is_installed
from wordnet_splits.wordnet.taxonomy.hierarchy_files import LARGEST

FOLDER: Final = "sources"
PAIRS: Final = "pairs"


@dataclass(frozen=True)
class CarriedFile:
    """A carried file: its path in the manifest's folder, and the most bytes to read."""

    path: str
    sha256: str
    largest: int


def carried_files(prints: Carried) -> list[CarriedFile]:
    """Return the files of the datasets, the tables of pairs and the hierarchy that a manifest carries."""
    carried = []
    for row in prints.sources:
        stem = f"{FOLDER}/{row.name}"
        carried.append(CarriedFile(f"{stem}.toml", row.declaration, LARGEST_TOML))
        carried.append(CarriedFile(f"{stem}.tsv", row.catalog, LARGEST_TEXT))
        if row.inventory is not None:
            carried.append(CarriedFile(stem + INVENTORY, row.inventory, LARGEST_TABLE))
    for number, table in enumerate(prints.pair_tables, 1):
        carried.append(CarriedFile(f"{PAIRS}/{number}.tsv", table.sha256, LARGEST_CSV))
    if (hierarchy := prints.hierarchy) is not None:
        files = (TREE, hierarchy.tree), (NODES, hierarchy.nodes)
        carried += [CarriedFile(f"{FOLDER}/{name}", digest, LARGEST) for name, digest in files]
    return carried


def carried_tables(folder: Path, rows: Sequence[PairTableRow]) -> dict[str, Path]:
    """Return the path of each carried table of pairs by its name in the recipe, in the order of the rows.

    The files are numbered, as a name in a recipe may have folders and any character.
    """
    return {row.name: folder / PAIRS / f"{number}.tsv" for number, row in enumerate(rows, 1)}


def pair_table_rows(tables: Mapping[str, Path]) -> list[PairTableRow]:
    """Return the rows of ``manifest.json`` for tables of pairs. Raises DataError for one that is absent."""
    return [
        PairTableRow(name=name, sha256=sha256_of(path, largest=LARGEST_CSV)) for name, path in tables.items()
    ]


def source_rows(declarations: Mapping[str, Declaration]) -> list[SourceRow]:
    """Return the rows of ``manifest.json`` for the datasets that a new manifest carries."""
    rows = []
    for name, declared in sorted(declarations.items()):
        inventory = declared.inventory_file
        rows.append(
            SourceRow(
                name=name,
                declaration=hashlib.sha256(_text(declared).encode()).hexdigest(),
                catalog=sha256_of(declared.catalog_file, largest=LARGEST_TEXT),
                inventory=sha256_of(inventory, largest=LARGEST_TABLE) if inventory.is_file() else None,
            )
        )
    return rows


def hierarchy_row(hierarchy: OwnHierarchy | None) -> HierarchyRow | None:
    """Return the row of ``manifest.json`` for the hierarchy that a new manifest carries."""
    return None if hierarchy is None else HierarchyRow(**hierarchy.digests()._asdict())


def carried_hierarchy(folder: Path, data: ManifestData) -> OwnHierarchy | None:
    """Return the hierarchy that a manifest carries; `altered_files` compares its files.

    Raises ManifestError for a name or version that is not a line of text.
    """
    if data.fingerprints.hierarchy is None:
        return None
    table = {"file": TREE, "nodes": NODES, "name": data.taxonomy.name, "version": data.taxonomy.version}
    where = f"{folder}/manifest.json: taxonomy"
    hierarchy = validate(OwnHierarchy, table, where=where, error=ManifestError, hint="build it again")
    return hierarchy.located((folder / FOLDER / TREE).absolute())


def carried_names(folder: Path) -> list[str]:
    """Return the names of the datasets that are declared in ``sources/`` of a folder, sorted."""
    return sorted(path.stem for path in (folder / FOLDER).glob("*.toml"))


def read_carried(folder: Path, names: Iterable[str]) -> dict[str, Declaration]:
    """Return the datasets that a manifest or export carries; `altered_files` compares their files.

    Raises
    ------
    ManifestError : a declaration is absent, malformed, not as it is written, or has the name of a source of
        this program or of an installed package, whose classes and images may be others.
    """
    declarations = {}
    for name in names:
        path = _inside(folder, f"{FOLDER}/{name}.toml")
        text = read_text(path, largest=LARGEST_TOML, error=ManifestError)
        table = parse_toml(text, where=str(path), error=ManifestError)
        declared = parse_declaration(table, str(path)).located(path.absolute())
        if is_installed(name):
            raise ManifestError(
                f"cannot use the carried dataset {printable(name)}: an installed source has the same name",
                where=str(path),
                hint="uninstall the package of that source, or rename the dataset and build again",
            )
        if declared.name != name or text != _text(declared):
            raise ManifestError(
                f"is not the declaration of {printable(name)} as `build` writes it",
                where=str(path),
                hint="fetch it or build it again",
            )
        declarations[name] = declared
    return declarations


def altered_files(folder: Path, prints: Carried) -> Iterator[str]:
    """Yield a sentence for each carried file that differs from its hash in ``manifest.json``."""
    for file in carried_files(prints):
        try:
            digest = sha256_of(_inside(folder, file.path), largest=file.largest, error=ManifestError)
        except ManifestError as error:
            yield f"{file.path}: {error.what}"
            continue
        if digest != file.sha256:
            yield f"{file.path}: the file gives {digest}, manifest.json says {file.sha256}"
    for row in prints.sources:
        inventory = f"{FOLDER}/{row.name}{INVENTORY}"
        if row.inventory is None and (folder / inventory).exists():
            yield f"{inventory} is not in manifest.json"


def carried_problems(
    folder: Path, prints: Carried, declarations: Mapping[str, Declaration], classes: pa.Table
) -> list[str]:
    """Return the problems of carried files: altered files, otherwise contradictions in the datasets.

    Parameters
    ----------
    declarations : as of `read_carried`.
    classes : the class table, which has every class of each catalog.
    """
    listed: dict[str, set[str]] = {}
    for source, class_id in zip(*(classes[name].to_pylist() for name in ("source", "class_id")), strict=True):
        listed.setdefault(source, set()).add(class_id)
    problems = list(altered_files(folder, prints))
    if not problems:
        for name, declared in declarations.items():
            problems += _contradictions(declared, listed.get(name, set()))
    return problems


def _contradictions(declared: Declaration, listed: set[str]) -> Iterator[str]:
    """Yield the contradictions in the files of a dataset; ``listed`` are its classes in the manifest."""
    stem = f"{FOLDER}/{declared.name}"
    try:
        catalog = load_declared_catalog(declared)
        tables = inventories.load_declared_inventory(declared).items()
    except DataError as error:
        yield f"{stem}: {error.line()}"
        return
    if difference := listed.symmetric_difference(c.class_id for c in catalog):
        yield f"{stem}.tsv: {min(difference)!r} is not both in the catalog and in the class table"
    for split, table in tables:
        classes = set(table["class_id"].unique().to_pylist())
        if "also" in table.column_names:
            classes |= set(pc.unique(pc.list_flatten(table["also"])).to_pylist())
        if split not in catalog.splits or not classes <= listed:
            stray = split if split not in catalog.splits else min(classes - listed)
            yield f"{stem}{INVENTORY}: {stray!r} is not in the catalog"


def write_carried(
    prints: Carried,
    folder: Path,
    declarations: Mapping[str, Declaration],
    pair_tables: Mapping[str, Path] = MappingProxyType({}),
    hierarchy: OwnHierarchy | None = None,
) -> None:
    """Write the datasets, the tables of pairs and the hierarchy that a manifest carries into its folder.

    Parameters
    ----------
    prints : their rows in ``manifest.json``.
    declarations, pair_tables : the datasets, and the paths of the tables, by name.
    """
    for row in prints.sources:
        declared, stem = declarations[row.name], folder / FOLDER / row.name
        write_text(stem.with_name(f"{row.name}.toml"), _text(declared))
        shutil.copyfile(declared.catalog_file, stem.with_name(f"{row.name}.tsv"))
        if row.inventory is not None:
            shutil.copyfile(declared.inventory_file, stem.with_name(row.name + INVENTORY))
    for name, path in carried_tables(folder, prints.pair_tables).items():
        path.parent.mkdir(exist_ok=True)
        shutil.copyfile(pair_tables[name], path)
    if hierarchy is not None and prints.hierarchy is not None:
        hierarchy.write(folder / FOLDER)
    for problem in altered_files(folder, prints):
        raise ManifestError(f"{problem}: it has changed meanwhile", where=str(folder), hint="try again")


def _text(declared: Declaration) -> str:
    return declared.over(declared.hierarchy and declared.hierarchy.carried()).as_toml(f"{declared.name}.tsv")


def _inside(folder: Path, path: str) -> Path:
    try:
        return path_below(folder, path)
    except DataError as error:  # a link that leaves the folder
        raise ManifestError(error.what, where=error.where, hint=error.hint) from None
