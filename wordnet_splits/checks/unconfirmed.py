"""The classes of a benchmark whose synset was proposed at low confidence, and which nobody confirmed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.catalog.catalog import Catalog, CatalogClass, load_declared_catalog
from wordnet_splits.catalog.declarations import declared_sources
from wordnet_splits.manifest import Manifest
from wordnet_splits.propose.model import is_unconfirmed
from wordnet_splits.rules.evidence import counted


@dataclass(frozen=True)
class UnconfirmedClass:
    """A class of a dataset that a manifest carries, and the line of its catalog where the proposal stands."""

    item: CatalogClass
    line: int

    def __str__(self) -> str:
        confidence = "" if self.item.confidence is None else f" at confidence {self.item.confidence:.2f}"
        return f"{self.item.class_id} as {' '.join(self.item.wnids)}{confidence} (line {self.line})"


def unconfirmed_classes(manifest: Manifest) -> dict[str, list[UnconfirmedClass]]:
    """Return, per source of its author's own, the unconfirmed classes that a group of the benchmark holds.

    Raises
    ------
    DataError : a carried catalog is absent or malformed.
    """
    columns = manifest.classes.select(["source", "class_id", "role"]).to_pylist()
    grouped = {(row["source"], row["class_id"]) for row in columns if row["role"] != "excluded"}
    unconfirmed = {}
    for name, declared in manifest.own.items():
        catalog = load_declared_catalog(declared)
        classes = [c for c in catalog if (name, c.class_id) in grouped and is_unconfirmed(c)]
        if classes:
            unconfirmed[name] = _with_lines(catalog, classes)
    return unconfirmed


def _with_lines(catalog: Catalog, classes: Iterable[CatalogClass]) -> list[UnconfirmedClass]:
    return [UnconfirmedClass(c, catalog.line(c.class_id)) for c in classes]


def check_confirmed(manifest: Manifest, *, never: str) -> None:
    """Raise ManifestError, naming every class and its line, where a group holds an unconfirmed class.

    Parameters
    ----------
    never : what is not done with such a benchmark, for the error.
    """
    for name, classes in unconfirmed_classes(manifest).items():
        # the copy in the benchmark's folder is no file to edit, where the dataset's own is known
        declared = declared_sources().get(name, manifest.own[name])
        raise ManifestError(
            f"{manifest.name} is never {never} while nobody has confirmed the synsets proposed for "
            f"{counted(len(classes), 'class')} of {name}: {'; '.join(map(str, classes))}",
            where=str(declared.catalog_file),
            hint="in each of these lines of the dataset's catalog write `hand` for `proposed`, with the "
            "synset that is meant, or answer `wordnet-splits catalog make` on a terminal; then build again",
        )
