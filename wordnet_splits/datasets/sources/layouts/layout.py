"""How the images of a dataset lie under its root: one protocol for shipped and for declared datasets.

A layout lists the images and reads one. A declaration names one of `layout_names`; another package adds a
layout with `register_layout` and an entry point of the group ``wordnet_splits.layouts``.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar

import numpy as np

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.names import is_one_line, printable
from wordnet_splits.base.registry import Registry
from wordnet_splits.base.untrusted import check_link, read_image
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.catalog.table import load_declared_catalog

DVC: Final = ".dvc"
"""Extension of the file that replaces or accompanies an image in a dataset of DVC."""

ALL: Final = "all"
"""The split of a dataset that has none."""

Raw = bytes | np.ndarray[Any, np.dtype[np.uint8]]
"""An image as it is stored: a file's bytes, or uint8 pixels (h, w, 3) or (h, w)."""

Order = Literal["published", "unknown"]

Row = tuple[str, str, str]
"""image_id, class_id, split."""

Location = tuple[str | int, ...]
"""Location of an image in its layout: a path, or the row of a table."""

Note = Callable[[str], None]
"""Takes the name of an entry that is not an image of the dataset."""

T = TypeVar("T")


class Image(NamedTuple):
    """An image under a root.

    Attributes
    ----------
    extra_classes : its additional classes; it is taken only if all its classes have the same role.
    """

    image_id: str
    class_id: str
    split: str
    location: Location
    extra_classes: tuple[str, ...] = ()


class Layout(ABC):
    """The images under one root.

    Picklable: open files and indexes lie in :meth:`cached`, which is per process and never pickled.

    Attributes
    ----------
    multilabel : whether an image may have several classes, which together determine its role.
    decoded : whether `read` returns pixels; an image that cannot be decoded then counts as missing.
    positioned : whether images are read faster in the order of their `storage_position`.
    name : the layout's name, as ``wordnet-splits sources check`` prints it.
    order : "unknown" where ids are positions and the files are not the publisher's.
    """

    multilabel: ClassVar[bool] = False
    decoded: ClassVar[bool] = False
    positioned: ClassVar[bool] = False
    name: str = ""
    order: Order = "published"

    @abstractmethod
    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images of some splits, in any order; images of other splits are ignored.

        Raises SourceError if the root cannot be read in this layout.
        """

    @abstractmethod
    def read(self, location: Location) -> Raw:
        """Return an image as stored; KeyError or OSError where it is absent."""

    @abstractmethod
    def locate(self, image_id: str) -> Location:
        """Return the location of an image; KeyError if the root cannot have it."""

    def storage_position(self, location: Location) -> tuple[int, ...]:
        """Return the sorting key that gives the images' storage order; KeyError if absent."""
        return ()

    def file(self, location: Location) -> Path | None:
        """Return the file that holds only this image, None if the image shares a file."""
        return None

    def classes(self) -> Mapping[str, str]:
        """Return class -> superclass or "", in the publisher's order; empty if no file lists the classes."""
        return {}

    def count(self, splits: Collection[str]) -> Mapping[str, int] | None:
        """Return the number of images of each split, None if the images must be listed to count them."""
        return None

    def is_unambiguous(self) -> bool:
        """Return whether no other dataset could look like this."""
        return True

    def prepare(self) -> None:  # noqa: B027 (most layouts need none)
        """Compute, when a source is opened, whatever all its workers need."""

    def cached(self, key: str, make: Callable[[], T]) -> T:
        """Return ``make()``, computed once per process: forked and spawned workers compute their own."""
        process, values = self.__dict__.get("_cache", (None, {}))
        if process != os.getpid():  # a file offset or an LMDB reader must not be shared after a fork
            values = {}
            self.__dict__["_cache"] = (os.getpid(), values)
        if key not in values:
            values[key] = make()
        value: T = values[key]
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}


class CompositeLayout(Layout):
    """Several layouts under one root, with different images.

    Parameters
    ----------
    layouts : at least one; an image is looked up in the first that may have it.
    unexpected : names of entries outside all layouts.
    """

    positioned: ClassVar[bool] = True

    def __init__(self, layouts: Iterable[Layout], unexpected: Iterable[str] = ()) -> None:
        self.layouts = tuple(layouts)
        self.name = "+".join(dict.fromkeys(layout.name for layout in self.layouts))
        self._unexpected = tuple(unexpected)

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images of all layouts."""
        for name in self._unexpected:
            note(name)
        for number, layout in enumerate(self.layouts):
            for image_id, class_id, split, location, extra_classes in layout.images(note, splits):
                yield Image(image_id, class_id, split, (number, *location), extra_classes)

    def locate(self, image_id: str) -> Location:
        """Return the number of the layout that may have an image, and the location in it."""
        for number, layout in enumerate(self.layouts):
            try:
                return number, *layout.locate(image_id)
            except KeyError:
                continue
        raise KeyError(image_id)

    def read(self, location: Location) -> Raw:
        """Return an image as stored."""
        return self.layouts[int(location[0])].read(location[1:])

    def storage_position(self, location: Location) -> tuple[int, ...]:
        """Return the position within the layout that has the image."""
        return self.layouts[int(location[0])].storage_position(location[1:])

    def file(self, location: Location) -> Path | None:
        """Return the file that holds only this image, None if the image shares a file."""
        return self.layouts[int(location[0])].file(location[1:])

    def count(self, splits: Collection[str]) -> Mapping[str, int] | None:
        """Return the number of images of each split, if all layouts can count theirs."""
        totals = dict.fromkeys(splits, 0)
        for layout in self.layouts:
            counts = layout.count(splits)
            if counts is None:
                return None
            for split, count in counts.items():
                totals[split] += count
        return totals

    def is_unambiguous(self) -> bool:
        """Return whether one of the layouts cannot be another dataset's."""
        return any(layout.is_unambiguous() for layout in self.layouts)


class DeclaredLayout(Layout):
    """A layout that ``dataset.toml`` or another declaration names. A subclass lists images and reads one.

    Attributes
    ----------
    about : one clause: the entries that make a root of this layout.
    root : the dataset's folder.
    declaration : its name, splits, columns, ...
    """

    about: ClassVar[str] = ""

    def __init__(self, root: Path, declaration: Declaration) -> None:
        self.root = root
        self.declaration = declaration
        self.name = declaration.layout

    def locate(self, image_id: str) -> Location:
        """Return the location of an image; all images are listed once per process.

        Raises SourceError if two images have one id.
        """
        return self.cached("locations", self._list_locations)[image_id]

    def _list_locations(self) -> dict[str, Location]:
        splits = self.declaration.splits or load_declared_catalog(self.declaration).splits
        locations: dict[str, Location] = {}
        for image_id, _, split, location, _ in self.images(lambda name: None, splits):
            if split in splits and locations.setdefault(image_id, location) != location:
                raise self.duplicate_id(image_id)
        return locations

    def duplicate_id(self, image_id: str) -> SourceError:
        """Build the error for an id that two images have."""
        return SourceError(
            f"two images have the id {printable(image_id)!r} of {self.declaration.name}",
            where=str(self.root),
            hint="they differ in their extension only, or are listed twice: rename or remove one",
        )

    def __reduce__(self) -> tuple[Any, ...]:  # opened files stay behind
        return type(self), (self.root, self.declaration)


class ImageFiles(DeclaredLayout):
    """A layout with a file per image; the location of an image is its path below the root."""

    def read(self, location: Location) -> bytes:
        """Return an image file's bytes."""
        path = self.root / str(location[0])
        try:
            return read_image(path, self.root)
        except FileNotFoundError as error:
            if path.is_symlink():
                raise OSError(
                    errno.EIO, "a link to a file that is not here: git annex get, or dvc pull"
                ) from error
            if path.with_name(path.name + DVC).exists():
                raise OSError(errno.EIO, "a DVC file is in its place: dvc pull") from error
            raise

    def file(self, location: Location) -> Path | None:
        """Return an image's file, its links followed."""
        path = self.root / str(location[0])
        if path.is_symlink():
            check_link(path, self.root)
        return path.resolve(strict=True)


DeclaredLayoutClass = TypeVar("DeclaredLayoutClass", bound=type[DeclaredLayout])

LAYOUTS: Final = Registry[type[DeclaredLayout]]("layout", str(__package__), "wordnet_splits.layouts")


def register_layout(name: str) -> Callable[[DeclaredLayoutClass], DeclaredLayoutClass]:
    """Register the decorated class as the layout that a declaration names."""
    return LAYOUTS.register(name)


def layout_names() -> tuple[str, ...]:
    """Return the layouts that a declaration may name, sorted."""
    return LAYOUTS.names()


def layout_class(declaration: Declaration) -> type[DeclaredLayout]:
    """Return the class of a declared layout.

    Raises UnknownNameError if it does not exist, DataError if it is not a subclass of `DeclaredLayout`.
    """
    layout: object = LAYOUTS.find(declaration.layout, where=str(declaration.file))
    if not (isinstance(layout, type) and issubclass(layout, DeclaredLayout)):
        message = f"the layout {declaration.layout!r} must be a subclass of DeclaredLayout, got {layout!r}"
        raise DataError(printable(message), where=str(declaration.file))
    return layout


def open_layout(root: Path, declaration: Declaration) -> DeclaredLayout:
    """Return the images under ``root``. Raises as `layout_class`."""
    return layout_class(declaration)(root, declaration)


def without_extension(path: str) -> str | None:
    """Return a relative path without its extension, as in ids; None if it has no extension of an image."""
    name = PurePosixPath(path)
    if name.suffix[1:].lower() not in EXTENSIONS or not is_one_line(path):
        return None
    return str(name.with_suffix(""))
