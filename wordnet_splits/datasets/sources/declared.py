"""A source made from a declaration: its layout's images, except in classes that its catalog lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.base.errors import unknown
from wordnet_splits.base.names import printable
from wordnet_splits.datasets.catalog import Catalog
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.catalog.table import load_declared_catalog
from wordnet_splits.datasets.sources.layouts.layout import LAYOUTS, DeclaredLayout, Layout, Row, open_layout
from wordnet_splits.datasets.sources.source import Source, revive


class DeclaredSource(Source):
    """A declared dataset under one root; `declared_class` makes a subclass for each dataset.

    An opened source keeps its declaration: in a worker, or while another benchmark is worked on, its name may
    mean another dataset.
    """

    declaration: ClassVar[Declaration]
    storage: DeclaredLayout

    @classmethod
    def catalog(cls) -> Catalog:
        """Return the classes that the declaration names."""
        return load_declared_catalog(cls.declaration)

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the declared layout; reading the root finds out whether it fits."""
        yield open_layout(root, cls.declaration)

    @classmethod
    def is_unambiguous(cls, root: Path) -> bool:
        """Return whether the root holds an image of a class in the catalog."""
        catalog = cls.catalog()
        images = open_layout(root, cls.declaration).images(lambda name: None, cls.splits)
        return any(image.class_id in catalog for image in images)

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield the images whose class is in the catalog; an id that two images have is refused."""
        catalog = self.catalog()
        ids: set[str] = set()
        for image in self.storage.images(self.note_unexpected, splits):
            if image.class_id not in catalog:
                self.note_unexpected(f"class {printable(image.class_id)}")
            elif image.split not in self.splits:
                self.note_unexpected(f"split {printable(image.split)}")
            elif image.split in splits:
                if image.image_id in ids:
                    raise self.storage.duplicate_id(image.image_id)
                ids.add(image.image_id)
                if image.also:
                    self.also[image.image_id] = image.also
                yield image.image_id, image.class_id, image.split

    def __reduce__(self) -> tuple[Any, ...]:  # a worker cannot find a generated class by name
        _, (_, *arguments) = super().__reduce__()
        return _revive, (self.declaration, *arguments)


def declared_class(declaration: Declaration) -> type[DeclaredSource]:
    """Return the class that reads a declared dataset.

    Raises
    ------
    UnknownNameError : its layout is unknown, or its catalog lacks one of its splits.
    DataError : its catalog is absent or malformed.
    """
    catalog = load_declared_catalog(declaration)
    for split in declaration.splits or ():
        if split not in catalog.splits:
            raise unknown("split", split, catalog.splits, where=f"{declaration.file}: {declaration.name}")
    layout = LAYOUTS.find(declaration.layout, where=str(declaration.file))
    return type(
        "DeclaredSource",
        (DeclaredSource,),
        {
            "__doc__": f"The dataset {declaration.name}, declared in {declaration.file}.",
            "name": declaration.name,
            "splits": declaration.splits or catalog.splits,
            "lossless": declaration.lossless,
            "multilabel": layout.multilabel,
            "looks_for": f"{layout.about} with classes such as {catalog.classes[0].class_id}",
            "declaration": declaration,
        },
    )


def _revive(declaration: Declaration, token: str, state: dict[str, Any]) -> Any:
    return revive(declared_class(declaration), token, state)
