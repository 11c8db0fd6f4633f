"""A source that a declaration makes: its layout's images, less those of classes that its catalog lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.base.errors import SourceError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.catalog import Catalog
from wordnet_splits.catalog.catalog import load_declared_catalog
from wordnet_splits.catalog.declarations import Declaration
from wordnet_splits.sources.base import OneCopyPerProcess, Row
from wordnet_splits.sources.own.layout import Layout, Place, layout_class, open_layout


class OwnSource(OneCopyPerProcess):
    """A declared dataset under one root; each has a class of its own, made by `own_class`.

    Once opened it asks nobody what its name stands for: in a worker, or after another benchmark was taken
    up, that may be something else.
    """

    declared: ClassVar[Declaration]

    @classmethod
    def catalog(cls) -> Catalog:
        """Return the classes that the declaration names."""
        return load_declared_catalog(cls.declared)

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return the layout that is declared: what the root lacks, reading it says."""
        return None if root is None else cls.declared.layout

    @classmethod
    def certain(cls, root: Path) -> bool:
        """Return whether the root holds an image of a class in the catalog."""
        catalog = cls.catalog()
        images = open_layout(root, cls.declared).images(lambda name: None)
        return any(image.class_id in catalog for image in images)

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> OwnSource:
        """Open the root; a source on disk takes no parameters."""
        if params:
            raise SourceError(f"source {cls.name} takes no parameter {sorted(params)[0]!r}")
        return cls(root, layout)

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield the images whose class the catalog has, refusing an id held twice."""
        catalog = self.catalog()
        held: set[str] = set()
        for image in self._images().images(self.note_unexpected):
            if image.class_id not in catalog:
                self.note_unexpected(f"class {printable(image.class_id)}")
            elif image.split not in self.splits:
                self.note_unexpected(f"split {printable(image.split)}")
            elif image.split in splits:
                if image.image_id in held:
                    raise _twice(self, image.image_id)
                held.add(image.image_id)
                if image.also:
                    self.also[image.image_id] = image.also
                yield image.image_id, image.class_id, image.split

    def read_one(self, image_id: str) -> bytes:
        """Return the bytes of an image's file."""
        return self._images().read(self._places()[image_id])

    def file(self, image_id: str) -> Path | None:
        """Return the file of an image, None where it lies in a table."""
        try:
            return self._images().file(self._places()[image_id])
        except (KeyError, FileNotFoundError) as error:
            raise self.missing(image_id) from error

    def _images(self) -> Layout:
        assert self.root is not None
        root = self.root
        return self.cached("layout", lambda: open_layout(root, self.declared))

    def _places(self) -> dict[str, Place]:
        """Return where each image is: nothing but an id found under the root reaches the file system."""
        return self.cached("places", self._find)

    def _find(self) -> dict[str, Place]:
        places: dict[str, Place] = {}
        for image in self._images().images(lambda name: None):
            if image.split in self.splits and places.setdefault(image.image_id, image.place) != image.place:
                raise _twice(self, image.image_id)
        return places

    def __reduce__(self) -> tuple[Any, ...]:  # a class that is made has no name by which a worker finds it
        revive, (_, *rest) = super().__reduce__()
        return _revive, (self.declared, self.declared.file, self.declared.confined, revive, *rest)


def own_class(declared: Declaration) -> type[OwnSource]:
    """Return the class that reads a declared dataset.

    Raises
    ------
    UnknownNameError : its layout is unknown, or a split of it is not in its catalog.
    DataError : its catalog is absent or malformed.
    """
    catalog = load_declared_catalog(declared)
    for split in declared.splits or ():
        if split not in catalog.splits:
            raise unknown("split", split, catalog.splits, where=f"{declared.file}: {declared.name}")
    layout = layout_class(declared.layout, where=str(declared.file))
    return type(
        "OwnSource",
        (OwnSource,),
        {
            "__doc__": f"The dataset {declared.name}, as {declared.file} declares it.",
            "name": declared.name,
            "splits": declared.splits or catalog.splits,
            "lossless": declared.lossless,
            "several": layout.several,
            "looks_for": f"{layout.about} with classes such as {catalog.classes[0].class_id}",
            "declared": declared,
        },
    )


def _revive(declared: Declaration, file: Path, confined: bool, revive: Any, *rest: Any) -> Any:
    return revive(own_class(declared.read_from(file, confined=confined)), *rest)


def _twice(source: OwnSource, image_id: str) -> SourceError:
    return SourceError(
        f"two images have the id {printable(image_id)!r} of {source.name}",
        where=str(source.root),
        hint="they differ in their ending only, or are listed twice: rename or remove one",
    )
