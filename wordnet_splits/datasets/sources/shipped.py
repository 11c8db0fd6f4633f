"""Shipped sources of image files in folders or a tar, which ``data/trees.toml`` declares."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from wordnet_splits.base.schemas import StrictModel
from wordnet_splits.datasets.sources.layouts.archives import ClassTar, find_archive
from wordnet_splits.datasets.sources.layouts.catalog_folders import (
    as_published,
    below_letter,
    by_index,
    find_class_folders,
    find_flat_folder,
    with_blanks,
)
from wordnet_splits.datasets.sources.layouts.layout import JoinedLayouts, Layout
from wordnet_splits.datasets.sources.layouts.named_files import NamedFiles, Naming
from wordnet_splits.datasets.sources.layouts.walk import bases
from wordnet_splits.datasets.sources.source import Source, register_source

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
    looks_for: str
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
                yield JoinedLayouts(present)
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
            "looks_for": tree.looks_for,
            "tree": tree,
        }
        yield name, register_source(type(name, (TreeSource,), attributes))


def _tree(keys: dict[str, Any]) -> Tree:
    """Return a declaration; a source with a single part has its keys at the top."""
    splits = keys.pop("splits", ["all"])
    of_source = {key: keys.pop(key) for key in ("looks_for", "begins", "lossless") if key in keys}
    return Tree(splits=splits, **of_source, parts=keys.pop("parts", None) or [Part(splits=splits, **keys)])


globals().update(_classes())  # a worker that is sent a source finds its class here, by its name
