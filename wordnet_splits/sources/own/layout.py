"""How the images of a dataset may lie under its root, for datasets that are declared.

A layout is one class: it yields the images and reads one. Another package adds a layout by an entry point of
the group ``wordnet_splits.layouts``, whose name is the layout's and whose object is such a class.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final, NamedTuple

from wordnet_splits.base.errors import SourceError, unknown
from wordnet_splits.base.names import is_one_line
from wordnet_splits.catalog.declarations import Declaration
from wordnet_splits.sources.pixels import EXTENSIONS

GROUP: Final = "wordnet_splits.layouts"
ALL: Final = "all"
"""The split of a dataset that has none."""

_OURS = {
    "folders": "wordnet_splits.sources.own.folders:Folders",
    "csv": "wordnet_splits.sources.own.csv_table:CsvTable",
    "parquet": "wordnet_splits.sources.own.parquet_rows:ParquetRows",
    "hub": "wordnet_splits.sources.own.hub_rows:HubRows",
    "coco": "wordnet_splits.sources.own.coco:Coco",
    "webdataset": "wordnet_splits.sources.own.webdataset:WebDataset",
}

Place = tuple[str | int, ...]
"""Where an image is, as its layout says it: a path, or a table's row."""


class Image(NamedTuple):
    """One image that a root holds, before anything is asked of its class.

    Attributes
    ----------
    also : the other classes that it shows; it is taken only where they all have one role.
    """

    image_id: str
    class_id: str
    split: str
    place: Place
    also: tuple[str, ...] = ()


class Layout(ABC):
    """The images under one root.

    Attributes
    ----------
    about : one clause: which entries make a root of this layout.
    several : whether an image may show several classes, so that its role is known only with those of all.
    """

    about: ClassVar[str]
    several: ClassVar[bool] = False

    def __init__(self, root: Path, declared: Declaration) -> None:
        self.root = root
        self.declared = declared

    @abstractmethod
    def images(self, note: Callable[[str], None]) -> Iterator[Image]:
        """Yield every image, in any order; ``note`` takes the name of what is none.

        Raises SourceError where the root is not of this layout.
        """

    @abstractmethod
    def read(self, place: Place) -> bytes:
        """Return an image file's bytes; KeyError or OSError where it is not there."""

    def classes(self) -> Mapping[str, str]:
        """Return class -> superclass or "", in the publisher's order; nothing where no file says it."""
        return {}

    def file(self, place: Place) -> Path | None:
        """Return the file that holds just this image, None where it lies in no file of its own."""
        return None


def layout_names() -> tuple[str, ...]:
    """Return the names of the layouts: ours, then those of other packages, sorted."""
    return (*_OURS, *sorted({found.name for found in entry_points(group=GROUP)} - set(_OURS)))


def open_layout(root: Path, declared: Declaration) -> Layout:
    """Return the images under ``root``.

    Raises
    ------
    UnknownNameError : there is no such layout.
    SourceError : another package's layout cannot be loaded.
    """
    return layout_class(declared.layout, where=str(declared.file))(root, declared)


def layout_class(name: str, *, where: str) -> type[Layout]:
    """Return the class of a layout. Raises as `open_layout`."""
    if name in _OURS:
        module, _, attribute = _OURS[name].partition(":")
        found = getattr(importlib.import_module(module), attribute)
    else:
        others = [point for point in entry_points(group=GROUP) if point.name == name]
        if not others:
            raise unknown("layout", name, layout_names(), where=where)
        found = _loaded(others[0])
    if not (isinstance(found, type) and issubclass(found, Layout)):
        raise SourceError(f"the layout {name!r} is no class of layouts: {found!r}", where=where)
    return found


def _loaded(point: EntryPoint) -> object:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise SourceError(
            f"the layout {point.name!r} cannot be loaded: {error}", where=point.value, hint="install it again"
        ) from error


def without_extension(path: str) -> str | None:
    """Return a relative path without its extension, as ids have it; None where it is no picture's."""
    name = PurePosixPath(path)
    if name.suffix[1:].lower() not in EXTENSIONS or not is_one_line(path):
        return None
    return str(name.with_suffix(""))
