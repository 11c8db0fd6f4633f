"""A source made from a declaration: its layout's images, except in classes that its catalog lacks."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from wordnet_splits.base.errors import unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import StrictModel
from wordnet_splits.datasets.catalog import Catalog
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.catalog.table import load_declared_catalog
from wordnet_splits.datasets.sources.layouts.archives import ClassTar, find_archive
from wordnet_splits.datasets.sources.layouts.catalog_folders import (
    as_published,
    below_letter,
    by_index,
    find_class_folders,
    find_flat_folder,
    with_blanks,
)
from wordnet_splits.datasets.sources.layouts.layout import (
    CompositeLayout,
    DeclaredLayout,
    Layout,
    Row,
    layout_class,
    open_layout,
)
from wordnet_splits.datasets.sources.layouts.named_files import NamedFiles, Naming
from wordnet_splits.datasets.sources.layouts.walk import bases
from wordnet_splits.datasets.sources.source import Source, register_source, revive

SPELLINGS: Final = {
    "published": as_published,
    "blanks": with_blanks,
    "index": by_index,
    "letter": below_letter,
}


class Part(StrictModel):
    """Images of some splits in one folder or archive; ``data/trees.toml`` documents the keys."""

    splits: list[str]
    stem: str
    qualified: bool = True
    prefix: str = ""
    layouts: list[Literal["class-folders", "one-folder"]] = Field(default=["class-folders"])
    inside: list[str] = Field(default=[""])
    uncertain: list[str] = Field(default=[])
    inner: list[str] = Field(default=[""])
    spellings: Literal["published", "blanks", "index", "letter"] = "published"
    archive: str | None = None
    name: str = "flat"
    marker: str = ""

    def find(self, source: str, base: Path, root: Path) -> NamedFiles | None:
        """Return the part below ``base``, None if it is absent."""
        naming = Naming(
            *(source, tuple(self.splits), self.stem),
            qualified=self.qualified,
            prefix=self.prefix,
            underscored=self.spellings == "blanks",
        )
        spellings = SPELLINGS[self.spellings]
        files: NamedFiles | None
        for path in self.inside:
            for layout in self.layouts:
                if layout == "one-folder":
                    files = find_flat_folder(base, path, root, naming, self.name, self.marker)
                else:
                    files = find_class_folders(
                        base, path, root, naming, inner=self.inner, spellings=spellings
                    )
                if files is not None and (path not in self.uncertain or files.is_unambiguous()):
                    return files
        if self.archive is not None and (tar := find_archive(base, self.archive, root)):
            return ClassTar(tar, naming, spellings)
        return None


class Tree(StrictModel):
    """A source; ``data/trees.toml`` documents the keys."""

    splits: list[str]
    expected_files: str
    begins: list[str]
    lossless: bool = False
    parts: list[Part]


class TreeSource(Source):
    """A source whose parts lie in one of a few known places."""

    tree: ClassVar[Tree]

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the parts in the first place that has any."""
        for base in bases(root, *cls.tree.begins):
            parts = (part.find(cls.name, base, root) for part in cls.tree.parts)
            if present := [part for part in parts if part is not None]:
                yield CompositeLayout(present)
                return


def _classes() -> Iterator[tuple[str, type[TreeSource]]]:
    text = resources.files("wordnet_splits").joinpath("data/trees.toml").read_text("utf-8")
    for name, keys in tomllib.loads(text).items():
        tree = _tree(keys)
        attributes = {
            "__module__": __name__,
            "name": name,
            "splits": tuple(tree.splits),
            "lossless": tree.lossless,
            "expected_files": tree.expected_files,
            "tree": tree,
        }
        yield name, register_source(type(name, (TreeSource,), attributes))


def _tree(keys: dict[str, Any]) -> Tree:
    """Return a declaration; a source with a single part has its keys at the top."""
    splits = keys.pop("splits", ["all"])
    of_source = {key: keys.pop(key) for key in ("expected_files", "begins", "lossless") if key in keys}
    return Tree(splits=splits, **of_source, parts=keys.pop("parts", None) or [Part(splits=splits, **keys)])


globals().update(_classes())  # a worker that is sent a source finds its class here, by its name


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
        for image in self.storage.images(self.on_skipped, splits):
            if image.class_id not in catalog:
                self.on_skipped(f"class {printable(image.class_id)}")
            elif image.split not in self.splits:
                self.on_skipped(f"split {printable(image.split)}")
            elif image.split in splits:
                if image.image_id in ids:
                    raise self.storage.duplicate_id(image.image_id)
                ids.add(image.image_id)
                if image.extra_classes:
                    self.extra_classes[image.image_id] = image.extra_classes
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
    layout = layout_class(declaration)
    return type(
        "DeclaredSource",
        (DeclaredSource,),
        {
            "__doc__": f"The dataset {declaration.name}, declared in {declaration.file}.",
            "name": declaration.name,
            "splits": declaration.splits or catalog.splits,
            "lossless": declaration.lossless,
            "multilabel": layout.multilabel,
            "expected_files": f"{layout.about} with classes such as {catalog.classes[0].class_id}",
            "declaration": declaration,
        },
    )


def _revive(declaration: Declaration, token: str, state: dict[str, Any]) -> Any:
    return revive(declared_class(declaration), token, state)
