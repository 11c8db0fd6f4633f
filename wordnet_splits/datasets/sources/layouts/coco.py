"""COCO-style JSON: ``images``, ``annotations`` and ``categories``, a file a split.

The classes of an image are the categories of its annotations. Its main class has the annotations that cover
the largest area together; ties go to the first class in the file. An id is ``[split/]file name``,
without the extension. The split is in the name of the JSON file or of its folder
(``instances_train2017.json``, ``valid/_annotations.coco.json``).
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from io import BufferedReader
from json import JSONDecodeError, JSONDecoder
from pathlib import Path, PurePosixPath
from types import UnionType
from typing import Any, ClassVar, Final, NamedTuple

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.files import FileId, file_id
from wordnet_splits.base.names import is_one_line, printable
from wordnet_splits.base.text_formats import LONE_SURROGATE, has_lone_surrogate
from wordnet_splits.base.untrusted import GiB, MiB, open_untrusted
from wordnet_splits.datasets.sources.layouts.conventions import same_name, shards, splits_of
from wordnet_splits.datasets.sources.layouts.layout import (
    ALL,
    Image,
    ImageFiles,
    Note,
    register_layout,
    without_extension,
)

USUAL: Final = "instances_*.json"
TRIED: Final = 100
"""Number of images looked for in a folder before another folder is tried."""

_BETWEEN = re.compile(r"[^A-Za-z0-9]+")


class _Annotated(NamedTuple):
    """Contents of a file: class -> superclass, and (image, classes), the main class first."""

    classes: dict[str, str]
    images: tuple[tuple[str, tuple[str, ...]], ...]


@register_layout("coco")
class Coco(ImageFiles):
    """Layout with an image in each entry of ``images``."""

    about: ClassVar[str] = "COCO-style JSON of images, annotations and categories"
    multilabel: ClassVar[bool] = True

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images that have a category and are there."""
        split_of = splits_of(path.relative_to(self.root) for path in self._files())
        for path, split in zip(self._files(), split_of.values(), strict=True):
            images = _annotated(file_id(path)).images
            folder = self._folder(path, [name for name, _ in images[:TRIED]])
            for name, classes in images:
                stem = without_extension(name)
                path_below = f"{folder}{name}"
                if stem is None or not classes or not _inside(name) or not (self.root / path_below).is_file():
                    note(printable(name) if classes else f"{path.name}: an image without a category")
                else:
                    image_id = stem if split == ALL else f"{split}/{stem}"
                    yield Image(image_id, classes[0], split, (path_below,), classes[1:])

    def classes(self) -> dict[str, str]:
        """Return the categories of all files, with their supercategories."""
        classes: dict[str, str] = {}
        for path in self._files():
            classes |= _annotated(file_id(path)).classes
        return classes

    def _files(self) -> list[Path]:
        paths = shards(self.root, self.declaration.images, ".json", "JSON file")
        usual = [path for path in paths if path.match(USUAL)]
        return usual if usual and self.declaration.images is None else paths

    def _folder(self, path: Path, names: list[str]) -> str:
        """Return the folder with the images of a JSON file, below the root, with its slash."""
        words = [word for word in _BETWEEN.split(path.stem) if word][::-1]
        own_folder = PurePosixPath(path.parent.relative_to(self.root))
        tried = [PurePosixPath(f) for f in (".", "images", *words, *(f"images/{word}" for word in words))]
        tried += [own_folder, own_folder / "images", *(own_folder.parent / word for word in words)]
        for folder in tried:
            if any(_inside(name) and (self.root / folder / name).is_file() for name in names):
                return "" if str(folder) == "." else f"{folder}/"
        if any(map(_inside, names)):
            message = f"cannot find any of its images, such as {printable(names[0])}"
            raise SourceError(message, where=str(path), hint=f"looked for it in {', '.join(map(str, tried))}")
        return ""


@lru_cache(maxsize=4)
def _annotated(file: FileId) -> _Annotated:
    """Return the contents of a file. Raises SourceError."""
    path = Path(file[0])
    names: dict[Any, str] = {}
    areas: dict[Any, dict[Any, float]] = {}
    categories: dict[Any, str] = {}
    superclasses: dict[str, str] = {}
    keys = set()
    for key, item in json_items(path):
        keys.add(key)
        if key == "images":
            name = _value(item, "file_name", str, path, key).replace("\\", "/")  # as Windows writes paths
            if names.setdefault(_value(item, "id", int | str, path, key), name) != name:
                raise SourceError(f"two images have the id {printable(item['id'])}", where=str(path))
        elif key == "categories":
            name = _value(item, "name", str, path, key)
            category = _value(item, "id", int | str, path, key)
            if categories.setdefault(category, name) != name:
                raise SourceError(f"two categories have the id {printable(category)}", where=str(path))
            superclass = item.get("supercategory")
            is_name = isinstance(superclass, str) and superclass not in ("none", name)
            superclasses.setdefault(name, str(superclass) if is_name else "")
        elif key == "annotations":
            image = _value(item, "image_id", int | str, path, key)
            category = _value(item, "category_id", int | str, path, key)
            image_areas = areas.setdefault(image, {})
            image_areas[category] = image_areas.get(category, 0.0) + _area(item, path)
    if missing := [key for key in ("images", "annotations", "categories") if key not in keys]:
        message = f"has no {missing[0]}"
        raise SourceError(message, where=str(path), hint='name the files: images = "instances_*.json"')
    _check_names(categories, {category for image_areas in areas.values() for category in image_areas}, path)
    order = {category: n for n, category in enumerate(categories)}
    images = []
    for image, name in sorted(names.items(), key=lambda item: item[1]):
        image_areas = areas.get(image, {})
        if unknown := image_areas.keys() - order.keys():
            message = f"the category {printable(min(unknown, key=str))} is not among the categories"
            raise SourceError(message, where=f"{path}: {printable(name)}")
        ranked = sorted((-area, order[category], category) for category, area in image_areas.items())
        images.append((name, tuple(dict.fromkeys(categories[category] for _, _, category in ranked))))
    return _Annotated(superclasses, tuple(images))


def _check_names(categories: dict[Any, str], used: set[Any], path: Path) -> None:
    """Refuse two categories with the same name, except unused categories, which some exports list first."""
    by_name: dict[str, Any] = {}
    for category, name in categories.items():
        if category in used and by_name.setdefault(name, category) != category:
            raise same_name(name, by_name[name], category, where=str(path))


def _area(item: dict[str, Any], path: Path) -> float:
    """Return the area of an annotation, or of its box; 0 where neither is a positive number."""
    area, box = item.get("area"), item.get("bbox")
    if not isinstance(area, int | float) and isinstance(box, list) and len(box) == 4:
        area = _float(box[2]) * _float(box[3]) if all(isinstance(side, int | float) for side in box) else 0
    if not isinstance(area, int | float):
        return 0.0
    if not math.isfinite(value := _float(area)):
        some = f" of id {printable(item['id'])}" if "id" in item else ""
        raise SourceError(f"the area of an annotation{some} is not finite", where=str(path))
    return max(value, 0.0)


def _float(number: int | float) -> float:
    """Return a number of JSON, which may have any number of digits; infinite where it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _value(item: dict[str, Any], name: str, kind: type | UnionType, path: Path, key: str) -> Any:
    """Return the value of an object's key, a text without blanks around it. Raises SourceError."""
    value = item.get(name)
    value = value.strip() if kind is str and isinstance(value, str) else value
    if not isinstance(value, kind) or value == "":
        some = f" of id {printable(item['id'])}" if "id" in item else ""
        hint = 'another file: images = "instances_*.json"'
        raise SourceError(f"an object{some} among {key} has no {name}", where=str(path), hint=hint)
    return value


def _inside(name: str) -> bool:
    """Return whether a name stays below the folder that it is relative to; links are seen on reading."""
    path = PurePosixPath(name)
    return is_one_line(name) and not path.is_absolute() and ".." not in path.parts


LARGEST: Final = 64 * GiB
LARGEST_ITEM: Final = 16 * MiB
"""Largest number of characters in an object; COCO's largest, a crowd's outline, has some 100,000."""
PIECE: Final = 1 * MiB

_NUMBER = "0123456789.eE+-"


def json_items(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (key, object) for every object in the arrays at the top level of a JSON file.

    Other values are ignored. One object is in memory at a time, whatever the file's size.

    Raises SourceError if the file is absent, unreadable or not of that form, has a key twice at the top
    level, or does not end after the object.
    """
    with open_untrusted(path, largest=LARGEST, error=SourceError) as file:
        text = _Text(file, path)
        keys = set()
        for _ in _separated(text, "{", "}"):
            key = str(text.value())
            if key in keys:
                raise text.wrong(f"the key {printable(key)} occurs twice")
            keys.add(key)
            text.expect(":")
            if text.peek() == "[":
                for _ in _separated(text, "[", "]"):
                    if isinstance(item := text.value(), dict):
                        yield key, item
            else:
                text.value()
        text.end()


def _separated(text: _Text, opening: str, closing: str) -> Iterator[None]:
    """Stop before each of the comma-separated values between two brackets."""
    text.expect(opening)
    if text.peek() != closing:
        yield
        while text.peek() != closing:
            text.expect(",")
            yield
    text.expect(closing)


class _Text:
    """A text that is read piece by piece."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._file, self._path = file, path
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")()
        self._decoder = JSONDecoder()
        self._text, self._at, self._before = "", 0, 0
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is not white space; SourceError at the end."""
        if not (character := self._next()):
            raise self.wrong("it ends too early")
        return character

    def _next(self) -> str:
        """Return the next character that is not white space, "" at the end."""
        while True:
            while self._at < len(self._text):
                if (character := self._text[self._at]) not in " \t\r\n":
                    return character
                self._at += 1
            if not self._more():
                return ""

    def expect(self, character: str) -> None:
        """Skip the next character, which must be this one."""
        if self.peek() != character:
            raise self.wrong(f"{character!r} expected")
        self._at += 1

    def end(self) -> None:
        """Refuse further text."""
        if self._next():
            raise self.wrong("something follows the object")

    def value(self) -> Any:
        """Return the next value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                # a number may go on: 1 as 12, 1. as 1.5
                if self._text[end : end + 1] not in _NUMBER or not self._more():
                    if has_lone_surrogate(self._text, value, self._at, end):
                        raise self.wrong(LONE_SURROGATE)
                    self._at = end
                    return value
            except JSONDecodeError as cause:
                if len(self._text) - self._at > LARGEST_ITEM or not self._more():
                    raise self.wrong(cause.msg) from None
            except (ValueError, RecursionError) as cause:
                raise self.wrong(str(cause)) from None

    def _more(self) -> bool:
        """Read as much again as is not parsed yet, so that a long value is tried few times."""
        if self._ended:
            return False
        data = self._file.read(max(PIECE, len(self._text) - self._at))
        self._ended = not data
        try:
            decoded = self._bytes.decode(data, final=self._ended)
        except UnicodeDecodeError:
            raise SourceError("is not UTF-8 text", where=str(self._path)) from None
        self._before += self._at
        self._text, self._at = self._text[self._at :] + decoded, 0
        return True

    def wrong(self, problem: str) -> SourceError:
        """Build the error for a problem at this character."""
        return SourceError(
            f"is not JSON of an object of arrays: {problem} at character {self._before + self._at:,}",
            where=str(self._path),
        )
