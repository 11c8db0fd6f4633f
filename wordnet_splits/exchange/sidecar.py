"""Files beside an export: ``wordnet-splits.json``, ``sources/`` with the users' datasets, ``pairs/``.

``wordnet-splits.json`` has the recipe and fingerprints that an import restores. It is optional: without it an
import makes a recipe from the lists alone. ``sources/`` and ``pairs/`` are as in a manifest
(`manifest.carried`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.schemas import (
    BenchmarkName,
    Name,
    Sha256,
    StrictModel,
    read_sealed,
    validate,
    write_sealed,
)
from wordnet_splits.catalog.declarations import Declaration
from wordnet_splits.exchange.paths import PathKind
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.carried import altered_files, carried_names, carried_tables, read_carried
from wordnet_splits.manifest.data import Declared, MissingRow, PairTableRow, PartRow, SourceRow
from wordnet_splits.recipe import Recipe

NAME: Final = "wordnet-splits.json"


class Sidecar(StrictModel):
    """The content of the file.

    Attributes
    ----------
    recipe : as in ``manifest.json``.
    classes, fingerprint : fingerprints of the class table and of all images, the latter None if a group
        awaits its source.
    parts : fingerprints of each exported (split, group).
    missing : images that were left out.
    paths : kind of paths in lists, of `disk_paths.PATHS`.
    sources : files of the users' datasets that the export carries.
    pair_tables : tables of pairs that the recipe names and the export carries.
    """

    schema_: Literal[1] = Field(alias="schema")
    format: Name
    benchmark: BenchmarkName
    version: Annotated[int, Field(ge=1)]
    seed: int
    recipe: Declared
    classes: Sha256
    fingerprint: Sha256 | None
    parts: list[PartRow]
    missing: list[MissingRow]
    paths: PathKind = "tree"
    sources: list[SourceRow] = Field(default_factory=list)
    pair_tables: list[PairTableRow] = Field(default_factory=list)

    def full_recipe(self, path: Path) -> Recipe:
        """Return the recipe of the export in a folder, or of a file; DataError if it is invalid."""
        recipe = validate(Recipe, self.recipe.as_dict(), where=f"the recipe in {NAME}")
        recipe.remember_carried_tables(carried_tables(_folder(path), self.pair_tables))
        return recipe


def write_sidecar(manifest: Manifest, format_name: str, folder: Path, paths: PathKind = "tree") -> None:
    """Write the file of a manifest. Raises OutputError."""
    data = manifest.data
    content = Sidecar(
        schema=1,
        format=format_name,
        benchmark=data.name,
        version=data.version,
        seed=data.seed,
        recipe=data.recipe,
        classes=data.fingerprints.classes,
        fingerprint=data.fingerprint,
        parts=data.fingerprints.images,
        missing=data.missing,
        paths=paths,
        sources=data.fingerprints.sources,
        pair_tables=data.fingerprints.pair_tables,
    )
    without = {name for name in ("sources", "pair_tables") if not getattr(content, name)}
    without |= {"paths"} if paths == "tree" else set()
    dumped = content.model_dump(by_alias=True, exclude=without)
    write_sealed(folder / NAME, {**dumped, "recipe": data.recipe.as_dict()})


def read_sidecar(path: Path) -> Sidecar | None:
    """Read the sidecar in a folder, or beside a file; None if there is none.

    Raises DataError if it is malformed, or was altered.
    """
    file = _folder(path) / NAME
    if not os.path.lexists(file):  # a broken link is an error, not an absent file
        return None
    hint = "remove it to import the lists as somebody else's"
    return read_sealed(file, Sidecar, hint=hint)


def read_export_declarations(path: Path, sidecar: Sidecar | None = None) -> dict[str, Declaration]:
    """Return the users' datasets that the export in a folder, or of a file, carries.

    Raises
    ------
    ManifestError : a declaration is malformed, or not as an export writes it.
    DataError : a file is not the one that the sidecar names.
    """
    folder = _folder(path)
    rows = [] if sidecar is None else sidecar.sources
    declarations = read_carried(folder, carried_names(folder) if sidecar is None else [r.name for r in rows])
    for problem in altered_files(folder, rows, [] if sidecar is None else sidecar.pair_tables):
        raise DataError(problem, where=printable(folder), hint="export the benchmark again")
    return declarations


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent
