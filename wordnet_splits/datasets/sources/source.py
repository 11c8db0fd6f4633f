"""A source of images: a dataset under one root, whose images are listed, read, decoded and digested.

A source lists the layouts of its dataset; a `Layout` locates the images.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

import numpy as np
import pyarrow as pa
from PIL import Image

from fix_resize.decode import check_bytes, decode_array, decode_bytes
from wordnet_splits.base import digests, errors
from wordnet_splits.base.digests import as_rgb
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.base.registry import Registry
from wordnet_splits.datasets.catalog import Catalog, load_catalog
from wordnet_splits.datasets.catalog.table import CATALOGS_OF_PACKAGES
from wordnet_splits.datasets.sources.layouts.layout import Layout, Location, Order, Raw, Row

SCAN_SCHEMA = pa.schema([("image_id", pa.string()), ("class_id", pa.string()), ("split", pa.string())])
"""Columns of the batches of :meth:`Source.scan`."""

BATCH_ROWS = 65_536
UNEXPECTED_NAMES = 10_000  # distinct names counted separately: a wrong root may hold millions
OTHER_NAMES = "(other names)"
_REVIVED_SOURCES = 4  # unpickled sources that a process keeps

SOURCES: Final[Registry[type[Source]]] = Registry("source", str(__package__), "wordnet_splits.sources")
"""Classes of sources by name."""

S = TypeVar("S", bound="type[Source]")

_REVIVED: OrderedDict[str, Source] = OrderedDict()


@dataclass(frozen=True)
class Download:
    """One file of the publisher: its name, and a checksum where one is known for certain.

    Parameters
    ----------
    unpacked_md5 : MD5 of the unpacked file: copies are often packed again.
    url : its open address; None if absent or unknown.
    unpack : whether it is an archive that must be unpacked to be read.
    wanted : whether it is fetched by default.
    """

    file: str
    md5: str | None = None
    sha256: str | None = None
    unpacked_md5: str | None = None
    url: str | None = None
    unpack: bool = False
    wanted: bool = True


@dataclass(frozen=True)
class HubCopy:
    """A copy on the Hugging Face Hub in a known layout: its dataset repository and its files."""

    repo: str
    files: str


@dataclass(frozen=True)
class SourceInfo:
    """A dataset's publication, licence and expected tree, from ``data/sources.toml``.

    ``module`` is the module that reads it, if that imports no layouts of files.
    """

    name: str
    title: str = ""
    url: str = ""
    licence: str = ""
    size: str = ""
    how: str = ""
    tree: str = ""
    bibtex: str = ""
    module: str = ""
    files: tuple[Download, ...] = field(default=())
    hub: HubCopy | None = None


class Source(ABC):
    """One dataset under one root.

    All pickles of a source become the same object in each process that unpickles them: a CIFAR batch takes a
    second to load and an LMDB file may be opened only once per process, so a worker that receives the source
    with each chunk of ids must reuse the files that it opened for the previous chunk.

    Attributes
    ----------
    name : the source's name, as in catalogs and recipes.
    splits : the publisher's splits, in the publisher's order.
    lossless : whether a digest is of pixels (True) or of the file's bytes (False).
    multilabel : whether an image may have several classes.
    rooted : whether the source needs a folder (False for embedded and generated ones).
    expected_files : one clause: which entries make a root this dataset.
    info : its publication and licence, if ``data/sources.toml`` has no entry for it.
    catalog_file : its catalog, of a source of another package.
    root : the dataset's folder, resolved; None where not ``rooted``.
    storage : how the images lie under the root.
    unexpected : names of entries in the last scan that are not images of this source -> number of times.
    extra_classes : image_id -> additional classes, of the images in the last scan with several labels.
    """

    name: ClassVar[str]
    splits: ClassVar[tuple[str, ...]]
    lossless: ClassVar[bool] = False
    multilabel: ClassVar[bool] = False
    rooted: ClassVar[bool] = True
    expected_files: ClassVar[str] = ""
    info: ClassVar[SourceInfo | None] = None
    catalog_file: ClassVar[Path | None] = None

    def __init__(self, root: Path | None, storage: Layout) -> None:
        self.root = root
        self.storage = storage
        self.unexpected: dict[str, int] = {}
        self.extra_classes: dict[str, tuple[str, ...]] = {}
        self._token = uuid.uuid4().hex  # identifies the opened source in a process, is part of no result

    # -- of the dataset ---------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the layouts of this dataset found in ``root``, the preferred layout first.

        ``root`` is ignored by a source that is not ``rooted``.
        """

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return the name of the layout that ``root`` has, None if it is not this dataset."""
        if cls.rooted == (root is None):
            return None
        layout = next(cls.layouts(root or Path()), None)
        return None if layout is None else layout.name

    @classmethod
    def is_unambiguous(cls, root: Path) -> bool:
        """Return whether ``root`` cannot be another dataset."""
        return any(layout.is_unambiguous() for layout in cls.layouts(root))

    @classmethod
    def open(cls, root: Path | None, layout: Layout, **params: Any) -> Self:
        """Return the source over a layout that was found; sources on disk have no parameters."""
        if params:
            raise SourceError(f"source {cls.name} has no parameter {min(params)!r}")
        return cls(root, layout)

    @classmethod
    def class_of(cls, image_id: str) -> str | None:
        """Return the class of an image without a shipped inventory, None if its id does not contain it.

        Raises KeyError for an impossible id.
        """
        return None

    @classmethod
    def expected(cls) -> dict[str, int | None]:
        """Return how many images the publisher has of each split, None where that is not known."""
        catalog = cls.catalog()
        return {split: catalog.total(split) if split in catalog.splits else None for split in cls.splits}

    @classmethod
    def catalog(cls) -> Catalog:
        """Return the classes of the source."""
        return load_catalog(cls.name)

    # -- of its copy ------------------------------------------------------------------------------

    @property
    def layout(self) -> str:
        """The name of the root's layout."""
        return self.storage.name

    @property
    def order(self) -> Order:
        """The order of the images: "unknown" if ids are positions and it may not be the publisher's."""
        return self.storage.order

    def scan(self, splits: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the images under the root, as record batches of ``SCAN_SCHEMA``, in any order.

        Parameters
        ----------
        splits : publisher's splits to scan; all by default.

        Raises
        ------
        UnknownNameError : a split the source does not have.
        SourceError : a folder that cannot be read, or two images with the same id.
        """
        checked = self._check_splits(splits)
        self.unexpected, self.extra_classes = {}, {}
        return _batches(self.rows(checked))

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) of every image in ``splits``, in any order."""
        for image in self.storage.images(self.on_skipped, splits):
            if image.split in splits:
                yield image.image_id, image.class_id, image.split

    def count(self, splits: Collection[str] | None = None) -> dict[str, int]:
        """Return how many images the root has of each split (0 for a split it lacks)."""
        checked = self._check_splits(splits)
        self.unexpected = {}
        counts = dict.fromkeys(checked, 0)
        if (stored := self.storage.count(checked)) is not None:
            return counts | dict(stored)
        for _, _, split in self.rows(checked):
            counts[split] += 1
        return counts

    def read(self, ids: Sequence[str]) -> list[Raw]:
        """Return images as stored (file bytes or uint8 pixels), in the order of ``ids``.

        Raises MissingImageError with the first id whose pixels are absent under the root.
        """
        locations = [self._locate(image_id) for image_id in ids]
        raws: list[Raw] = [b""] * len(ids)
        order: Iterable[int] = range(len(ids))
        if self.storage.positioned:
            order = sorted(order, key=lambda n: self._storage_position(locations[n]))
        for n in order:
            raws[n] = self._read(ids[n], locations[n])
        return raws

    def file(self, image_id: str) -> Path | None:
        """Return the file that holds only this image, None if the image shares a file.

        Raises MissingImageError if the image is absent.
        """
        try:
            return self.storage.file(self.storage.locate(image_id))
        except (KeyError, FileNotFoundError) as error:
            raise self.missing(image_id) from error

    def decode(self, raw: Raw, image_id: str | None = None) -> Image.Image:
        """Return an RGB image, by the rules of `fix_resize.decode.RULES`.

        Raises SourceError for a corrupt, truncated or absurdly large image; names ``image_id`` when given.
        """
        if isinstance(raw, np.ndarray):
            return Image.fromarray(as_rgb(raw))
        return decode_bytes(raw, where=self.describe(image_id))

    def decode_array(self, raw: Raw, image_id: str | None = None) -> digests.Pixels:
        """Return the pixels of `decode`, uint8 (h, w, 3). Raises as `decode`."""
        if isinstance(raw, np.ndarray):
            return as_rgb(raw)
        return decode_array(raw, where=self.describe(image_id))

    def digest(self, raw: Raw) -> bytes:
        """Return the 32-byte digest of an image: of its pixels if stored losslessly, else of its file."""
        if isinstance(raw, np.ndarray):
            return digests.digest_pixels(raw)
        if self.lossless:
            return digests.digest_pixels(self.decode_array(raw))
        return digests.digest_file(raw)

    def check_image(self, raw: Raw) -> str | None:
        """Return why an image cannot be decoded, or None where it can; every byte is decoded."""
        return None if isinstance(raw, np.ndarray) else check_bytes(raw)

    def describe(self, image_id: str | None) -> str:
        """Return ``source:image_id under root`` for messages."""
        subject = self.name if image_id is None else f"{self.name}:{image_id}"
        return f"{subject} under {self.root}" if self.root else subject

    def on_skipped(self, name: str) -> None:
        """Count an entry that is not an image; beyond ``UNEXPECTED_NAMES`` names there is one count."""
        if name not in self.unexpected and len(self.unexpected) >= UNEXPECTED_NAMES:
            name = OTHER_NAMES
        self.unexpected[name] = self.unexpected.get(name, 0) + 1

    def missing(self, image_id: str, why: str = "is not there") -> MissingImageError:
        """Build the error for an id whose pixels cannot be read."""
        return MissingImageError(
            f"image {image_id!r} of {self.name} {why}",
            where=str(self.root) if self.root else self.name,
            hint=f"layout {self.layout}; 'wordnet-splits sources check' counts the images under the root",
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "extra_classes": {}}

    def __reduce__(self) -> tuple[Any, ...]:
        return revive, (type(self), self._token, self.__getstate__())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(root={str(self.root)!r}, layout={self.layout!r})"

    def _check_splits(self, splits: Collection[str] | None) -> tuple[str, ...]:
        if splits is None:
            return self.splits
        for split in splits:
            if split not in self.splits:
                raise errors.unknown("split", split, self.splits, where=self.name)
        return tuple(split for split in self.splits if split in set(splits))

    def _locate(self, image_id: str) -> Location:
        try:
            return self.storage.locate(image_id)
        except KeyError as error:
            raise self.missing(image_id) from error

    def _storage_position(self, location: Location) -> tuple[int, ...]:
        try:
            return self.storage.storage_position(location)
        except (KeyError, OSError):
            return ()  # reading it raises the error

    def _read(self, image_id: str, location: Location) -> Raw:
        try:
            return self.storage.read(location)
        except (KeyError, FileNotFoundError, NotADirectoryError) as error:
            raise self.missing(image_id) from error
        except PermissionError as error:
            raise self.missing(image_id, "may not be read (permission denied)") from error
        except OSError as error:
            raise self.missing(image_id, f"cannot be read ({error.strerror or error})") from error
        except SourceError as error:
            if not self.storage.decoded:
                raise
            raise self.missing(image_id, f"cannot be read: {error.what}") from error


def register_source(cls: S) -> S:
    """Register a source class under its ``name``, and the catalog that it brings."""
    if cls.catalog_file is not None:
        CATALOGS_OF_PACKAGES.add(cls.name, cls.catalog_file)
    return SOURCES.register(cls.name)(cls)


def revive(cls: type[Source], token: str, state: dict[str, Any]) -> Source:
    """Return the source of a pickle, the same object for all pickles of a source."""
    if token not in _REVIVED:
        source = cls.__new__(cls)
        source.__dict__.update(state)
        _REVIVED[token] = source
        if len(_REVIVED) > _REVIVED_SOURCES:
            _REVIVED.popitem(last=False)
    _REVIVED.move_to_end(token)
    return _REVIVED[token]


def _batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, BATCH_ROWS)):
        columns = [pa.array(column, pa.string()) for column in zip(*chunk, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=SCAN_SCHEMA)
