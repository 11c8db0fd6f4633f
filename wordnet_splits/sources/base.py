"""What every source of images can do: scan the ids a root holds, read, decode and digest them.

A source knows one dataset as its publisher lays it out on disk; nothing else knows the layout.
"""

from __future__ import annotations

import os
import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import pyarrow as pa
from PIL import Image

from wordnet_splits.base import digests, errors
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.catalog import Catalog, load_catalog
from wordnet_splits.sources.pixels import check_bytes, decode_bytes

SCAN_SCHEMA = pa.schema([("image_id", pa.string()), ("class_id", pa.string()), ("split", pa.string())])
"""Columns of what :meth:`Source.scan` yields."""

Raw = bytes | np.ndarray[Any, np.dtype[np.uint8]]
"""An image as it is stored: a file's bytes, or uint8 pixels (h, w, 3) or (h, w)."""

Row = tuple[str, str, str]
"""image_id, class_id, split."""

Order = Literal["published", "unknown"]

BATCH_ROWS = 65_536
UNEXPECTED_NAMES = 10_000  # distinct names counted separately: a wrong root may hold millions
OTHER_NAMES = "(other names)"
MOST_DIGITS = 9  # of an id that is a position
_KEPT = 4  # sources a worker remembers

T = TypeVar("T")
S = TypeVar("S", bound="type[Source]")

_REGISTERED: dict[str, type[Source]] = {}
_REVIVED: OrderedDict[str, Source] = OrderedDict()


def register(cls: S) -> S:
    """Enter a source class under its ``name``; the table of modules in the package finds its file."""
    _REGISTERED[cls.name] = cls
    return cls


def registered(name: str) -> type[Source] | None:
    """Return the class registered under ``name``, or None before its module is imported."""
    return _REGISTERED.get(name)


class Source(ABC):
    """One dataset under one root.

    Picklable: handles and indexes live in :meth:`cached`, which is per process and never pickled.

    Attributes
    ----------
    name : the source's name, as in catalogs and recipes.
    splits : the publisher's splits, in the publisher's order.
    lossless : whether a digest is of pixels (True) or of the file's bytes (False).
    several : whether an image may show several classes.
    rooted : whether the source needs a folder (False for embedded and generated ones).
    looks_for : one clause: which entries make a root this dataset.
    root : the folder given, resolved; None where not ``rooted``.
    layout : which of the known layouts the root has.
    order : "unknown" where ids are positions and the copy is not the publisher's.
    unexpected : names the last scan met that are not ids of this source, and how often each.
    also : the further classes of each image that the last scan met and that shows several.
    """

    name: ClassVar[str]
    splits: ClassVar[tuple[str, ...]]
    lossless: ClassVar[bool] = False
    several: ClassVar[bool] = False
    rooted: ClassVar[bool] = True
    looks_for: ClassVar[str] = ""

    def __init__(self, root: Path | None, layout: str, *, order: Order = "published") -> None:
        self.root = root
        self.layout = layout
        self.order: Order = order
        self.unexpected: dict[str, int] = {}
        self.also: dict[str, tuple[str, ...]] = {}
        self._cache: dict[str, Any] = {}
        self._pid = os.getpid()

    # -- to be written by each source ------------------------------------------------------------

    @classmethod
    @abstractmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return the layout that ``root`` has, or None where it is not this dataset."""

    @classmethod
    def certain(cls, root: Path) -> bool:
        """Return whether ``root`` is this dataset beyond doubt (used to name what a wrong root is)."""
        return cls.detect(root) is not None

    @classmethod
    @abstractmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> Source:
        """Build the source over a root whose ``layout`` was detected."""

    @abstractmethod
    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) of every valid image in ``splits``, in any order.

        Names that are not ids go to :meth:`note_unexpected`.
        """

    @abstractmethod
    def read_one(self, image_id: str) -> Raw:
        """Return one image as stored; raise KeyError or FileNotFoundError where it is absent."""

    @classmethod
    def class_of(cls, image_id: str) -> str | None:
        """Return the class of an image of which no inventory is shipped, None where its id does not say it.

        Raises KeyError for what cannot be an id of this source.
        """
        return None

    def file(self, image_id: str) -> Path | None:
        """Return the file that holds just this image, None where it lies in no file of its own.

        Raises KeyError or FileNotFoundError where it is absent.
        """
        return None

    # -- what callers use -------------------------------------------------------------------------

    def scan(self, splits: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the images the root holds, as record batches of ``SCAN_SCHEMA``, in any order.

        Parameters
        ----------
        splits : publisher's splits to scan; all of them by default.

        Raises
        ------
        UnknownNameError : a split the source does not have.
        SourceError : a folder that cannot be read, or one id held twice.
        """
        chosen = self._chosen(splits)
        self.unexpected, self.also = {}, {}
        return _batches(self.rows(chosen))

    def read(self, ids: Sequence[str]) -> list[Raw]:
        """Return images as stored (file bytes or uint8 pixels), in the order of ``ids``.

        Raises
        ------
        MissingImageError : naming the first id whose pixels are absent under the root.
        """
        return [self._read_named(image_id) for image_id in ids]

    def decode(self, raw: Raw, image_id: str | None = None) -> Image.Image:
        """Return an RGB image, by the rules of `wordnet_splits.sources.pixels.RULES`.

        Raises
        ------
        SourceError : a corrupt, truncated or absurdly large image; names ``image_id`` when given.
        """
        if isinstance(raw, np.ndarray):
            return Image.fromarray(as_rgb(raw))
        return decode_bytes(raw, where=self.describe(image_id))

    def digest(self, raw: Raw) -> bytes:
        """Return the 32 bytes that identify the picture: of its pixels if lossless, else of its file."""
        if isinstance(raw, np.ndarray):
            return digests.digest_pixels(as_rgb(raw))
        if self.lossless:
            return digests.digest_pixels(np.asarray(self.decode(raw)))
        return digests.digest_file(raw)

    def check_image(self, raw: Raw) -> str | None:
        """Return why an image cannot be decoded, or None where it can; every byte is decoded."""
        return None if isinstance(raw, np.ndarray) else check_bytes(raw)

    def count(self, splits: Collection[str] | None = None) -> dict[str, int]:
        """Return how many valid images the root holds of each split (0 for a split it lacks)."""
        chosen = self._chosen(splits)
        self.unexpected = {}
        held = dict.fromkeys(chosen, 0)
        for _, _, split in self.rows(chosen):
            held[split] += 1
        return held

    @classmethod
    def expected(cls) -> dict[str, int | None]:
        """Return how many images the publisher has of each split, None where that is not known."""
        catalog = cls.catalog()
        return {split: catalog.total(split) if split in catalog.splits else None for split in cls.splits}

    @classmethod
    def catalog(cls) -> Catalog:
        """Return the classes of the source."""
        return load_catalog(cls.name)

    def describe(self, image_id: str | None) -> str:
        """Return ``source:image_id under root`` for messages."""
        place = self.name if image_id is None else f"{self.name}:{image_id}"
        return f"{place} under {self.root}" if self.root else place

    # -- for the sources --------------------------------------------------------------------------

    def note_unexpected(self, name: str, times: int = 1) -> None:
        """Count a name that is not an id of this source; past ``UNEXPECTED_NAMES`` they share one entry."""
        if name not in self.unexpected and len(self.unexpected) >= UNEXPECTED_NAMES:
            name = OTHER_NAMES
        self.unexpected[name] = self.unexpected.get(name, 0) + times

    def cached(self, key: str, make: Callable[[], T]) -> T:
        """Return ``make()``, kept per process: forked and spawned workers make their own."""
        if self._pid != os.getpid():  # after a fork: a file offset or an LMDB reader must not be shared
            self._cache, self._pid = {}, os.getpid()
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    def missing(self, image_id: str, why: str = "is not there") -> MissingImageError:
        """Build the error for an id whose pixels cannot be read."""
        return MissingImageError(
            f"image {image_id!r} of {self.name} {why}",
            where=str(self.root) if self.root else self.name,
            hint=f"layout {self.layout}; 'wordnet-splits sources check' counts what the root holds",
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "also": {}, "_cache": {}, "_pid": -1}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(root={str(self.root)!r}, layout={self.layout!r})"

    def _chosen(self, splits: Collection[str] | None) -> tuple[str, ...]:
        if splits is None:
            return self.splits
        for split in splits:
            if split not in self.splits:
                raise errors.unknown("split", split, self.splits, where=self.name)
        return tuple(split for split in self.splits if split in set(splits))

    def _read_named(self, image_id: str) -> Raw:
        try:
            return self.read_one(image_id)
        except (KeyError, FileNotFoundError, NotADirectoryError) as error:
            raise self.missing(image_id) from error
        except PermissionError as error:
            raise self.missing(image_id, "may not be read (permission denied)") from error
        except OSError as error:
            raise self.missing(image_id, f"cannot be read ({error.strerror or error})") from error


class OneCopyPerProcess(Source):
    """A source of which all pickles of one object become one object in the process that unpickles them.

    A CIFAR batch takes a second to load and an LMDB file may be opened only once per process; a worker that
    is sent the source with each chunk of ids must find what it opened for the last one.
    """

    def __init__(self, root: Path | None, layout: str, *, order: Order = "published") -> None:
        super().__init__(root, layout, order=order)
        self._token = uuid.uuid4().hex  # tells opened sources apart, is part of no result

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self._token, self.__getstate__())


def _revive(cls: type[OneCopyPerProcess], token: str, state: dict[str, Any]) -> Source:
    if token not in _REVIVED:
        source = cls.__new__(cls)
        source.__dict__.update(state)
        _REVIVED[token] = source
        if len(_REVIVED) > _KEPT:
            _REVIVED.popitem(last=False)
    _REVIVED.move_to_end(token)
    return _REVIVED[token]


def parse_position(text: str) -> int:
    """Return the position written as ``text``; KeyError where it is not written as we write it."""
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS or str(int(text)) != text:
        raise KeyError(text)
    return int(text)


def as_rgb(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return uint8 (h, w, 3) from uint8 (h, w), (h, w, 1) or (h, w, 3); grey is repeated."""
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise SourceError(f"pixels must be uint8 (h, w, 3) or (h, w), not {pixels.dtype} {pixels.shape}")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] != 3:
        raise SourceError(f"pixels must have 1 or 3 channels, not {pixels.shape[2]}")
    return np.ascontiguousarray(pixels)


def _batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, BATCH_ROWS)):
        columns = [pa.array(column, pa.string()) for column in zip(*chunk, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=SCAN_SCHEMA)
