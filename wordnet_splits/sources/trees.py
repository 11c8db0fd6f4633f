"""Shipped sources that are one tree of pictures each: ``data/trees.toml`` declares them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any, Final, Literal

from pydantic import Field

from wordnet_splits.base.schemas import StrictModel
from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InClassFolders, InOneFolder
from wordnet_splits.sources.layouts.names import Naming


class Tree(StrictModel):
    """The keys of a source; ``data/trees.toml`` says what they are."""

    stem: str
    begins: list[str]
    looks_for: str
    layout: Literal["class-folders", "one-folder"] = "class-folders"
    splits: list[str] = Field(default=["all"])
    qualified: bool = True
    inside: list[str] = Field(default=[""])
    spellings: Literal["published", "blanks", "index"] = "published"


class WithBlanks(InClassFolders):
    """Copies differ in whether folders have underscores or blanks; ids have underscores."""

    @classmethod
    def spellings(cls, class_id: str) -> tuple[str, ...]:
        """Return the folder with underscores and the one with blanks."""
        return tuple(dict.fromkeys((class_id, class_id.replace("_", " "))))


class ByIndex(InClassFolders):
    """A folder is called by the class's number."""

    @classmethod
    def spellings(cls, class_id: str) -> tuple[str, ...]:
        """Return the class's number, and its id for copies that are sorted by that."""
        return str(cls.catalog()[class_id].index), class_id


CLASS_FOLDERS: Final = {"published": InClassFolders, "blanks": WithBlanks, "index": ByIndex}


def _sources() -> Iterator[tuple[str, Any]]:
    text = resources.files("wordnet_splits").joinpath("data/trees.toml").read_text("utf-8")
    for name, keys in tomllib.loads(text).items():
        tree = Tree(**keys)
        splits = tuple(tree.splits)
        naming = Naming(
            name, splits, tree.stem, qualified=tree.qualified, underscored=tree.spellings == "blanks"
        )
        base = InOneFolder if tree.layout == "one-folder" else CLASS_FOLDERS[tree.spellings]
        told = {"name": name, "splits": splits, "looks_for": tree.looks_for, "images": naming}
        told |= {"begins": tuple(tree.begins), "inside": tuple(tree.inside), "__module__": __name__}
        yield name, register(type(name, (base,), told))


globals().update(_sources())  # a worker that is sent a source finds its class here, by its name
