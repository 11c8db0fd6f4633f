"""``wordnet-splits.json`` beside an export: the recipe and fingerprints that an import restores.

It is optional: without it an import makes a recipe from the lists alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from wordnet_splits.base.schemas import (
    BenchmarkName,
    Name,
    Sha256,
    StrictModel,
    read_sealed,
    validate,
    write_sealed,
)
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.data import Declared, MissingRow, PartRow
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

    def full_recipe(self) -> Recipe:
        """Return the recipe; DataError if it is invalid."""
        return validate(Recipe, self.recipe.as_dict(), where=f"the recipe in {NAME}")


def write_sidecar(manifest: Manifest, format_name: str, folder: Path) -> None:
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
    )
    recipe = data.recipe.as_dict()
    write_sealed(folder / NAME, {**content.model_dump(by_alias=True), "recipe": recipe})


def read_sidecar(path: Path) -> Sidecar | None:
    """Read the sidecar in a folder, or beside a file; None if there is none.

    Raises
    ------
    DataError : it is malformed, or was altered.
    """
    file = (path if path.is_dir() else path.parent) / NAME
    if not os.path.lexists(file):  # a broken link is an error, not an absent file
        return None
    hint = "remove it to import the lists as somebody else's"
    return read_sealed(file, Sidecar, hint=hint)
