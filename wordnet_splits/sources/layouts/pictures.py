"""Layouts of small pictures that share a file, or have other names than the publisher's.

A picture is identified by its published name where the copy has names, else by its digest: by (split, class,
digest) where the shipped inventory has digests, equal ones in image_id order. Where ids are positions, they
hold only for files with the publisher's checksums; without digests the ``order`` of another copy is
"unknown".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from wordnet_splits.base.digests import Pixels, digest_pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.sources.layouts.layout import Image, Layout, Location, Note, Order, parse_position
from wordnet_splits.sources.pixels import as_rgb, decode_bytes

WHOLE_COPY = ""
"""Split under which a copy lists its pictures if it does not tell the splits apart."""


@dataclass(frozen=True)
class Listing:
    """The pictures of one split, in the order stored.

    Attributes
    ----------
    classes : class_id of each picture, None where its label is not one of a class.
    describe : position -> how an unidentified picture is counted.
    names : published file name of each picture, without extension; empty where the copy has no names.
    unexpected : names of entries that are not pictures.
    """

    classes: Sequence[str | None]
    describe: Callable[[int], str]
    names: Sequence[str] = ()
    unexpected: Mapping[str, int] = field(default_factory=dict)


def positional_listing(
    split: str, classes: Sequence[str | None], bad_label: str = "label of no class"
) -> Listing:
    """Return the listing of pictures that only their positions tell apart."""
    return Listing(
        classes, lambda n: f"{split}: {bad_label if classes[n] is None else 'pixels of no known image'}"
    )


class PictureCopy(ABC):
    """The opened files of one copy.

    Attributes
    ----------
    by_split : whether the copy tells its splits apart; if not, all pictures are listed as `WHOLE_COPY`.
    """

    by_split: bool = True

    @abstractmethod
    def listing(self, split: str) -> Listing:
        """Return the pictures of a split, none if it is absent. Raises SourceError."""

    @abstractmethod
    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture, uint8 (h, w, 3) or (h, w); SourceError if it cannot be decoded."""


@dataclass
class Index:
    """Location of each identified image of some splits, and the number of unexpected entries by name."""

    locations: dict[str, Location] = field(default_factory=dict)
    unexpected: Counter[str] = field(default_factory=Counter)


class Pictures(Layout):
    """Pictures in a `PictureCopy`, identified by name or digest; ids are ``<split>/<class>/<name>``.

    Parameters
    ----------
    name : of the layout.
    source, splits : the dataset and its splits.
    root : the dataset's folder.
    open_copy : opens the files; picklable, called once per process.
    certain : whether this cannot be another dataset; picklable.
    """

    decoded: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        source: str,
        splits: tuple[str, ...],
        root: Path,
        open_copy: Callable[[], PictureCopy],
        certain: Callable[[], bool] | None = None,
    ) -> None:
        self.name, self.root = name, root
        self._source, self._splits = source, splits
        self._open_copy, self._certain = open_copy, certain

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every picture that has an id."""
        counted: set[int] = set()
        for split in splits:
            index = self._index(split)
            for image_id, location in index.locations.items():
                if image_id.partition("/")[0] == split:
                    class_id = self._listing(str(location[0])).classes[int(location[1])]
                    assert class_id is not None, "identified by its class"
                    yield Image(image_id, class_id, split, location)
            if id(index) not in counted:  # a copy that does not tell its splits apart has one index
                counted.add(id(index))
                _note_all(index.unexpected, note)

    def locate(self, image_id: str) -> Location:
        """Return the split and the position in it under which the copy has an image."""
        split = image_id.partition("/")[0]
        if split not in self._splits:
            raise KeyError(image_id)
        return self._index(split).locations[image_id]

    def read(self, location: Location) -> Pixels:
        """Return the pixels, uint8 (h, w, 3) or (h, w)."""
        return self._copy().pixels(str(location[0]), int(location[1]))

    def is_certain(self) -> bool:
        """Return whether no other dataset could look like this."""
        return self._certain is None or self._certain()

    def _copy(self) -> PictureCopy:
        return self.cached("copy", self._open_copy)

    def _listing(self, split: str) -> Listing:
        return self.cached(f"listing {split}", lambda: self._copy().listing(split))

    def _index(self, split: str) -> Index:
        by_split = self._copy().by_split
        splits = (split,) if by_split else self._splits
        listed = split if by_split else WHOLE_COPY
        return self.cached(f"index {listed}", lambda: self._identify(splits, listed))

    def _identify(self, splits: Sequence[str], listed: str) -> Index:
        """Return the index of a listing whose pictures are in ``splits``.

        Raises SourceError where two pictures have one name, or an inventory is needed and not there.
        """
        listing = self._listing(listed)
        index = Index(unexpected=Counter(listing.unexpected))
        inventory = _Inventory(self._source, splits)
        unnamed: list[int] = []
        for position, class_id in enumerate(listing.classes):
            if class_id is None:
                index.unexpected[listing.describe(position)] += 1
                continue
            name = listing.names[position] if listing.names else ""
            ids = [i for s in splits if name and (i := f"{s}/{class_id}/{name}") in inventory.digests]
            if len(ids) != 1:
                unnamed.append(position)
            elif ids[0] in index.locations:
                raise SourceError(
                    f"image {ids[0]!r} of {self._source} is there twice",
                    where=f"{self.root}: {listing.describe(position)}",
                )
            else:
                index.locations[ids[0]] = listed, position
        inventory.leave_out(index.locations)
        for position in unnamed:
            image_id = self._id_by_digest(listed, position, inventory)
            if image_id is None:
                index.unexpected[listing.describe(position)] += 1
            else:
                index.locations[image_id] = listed, position
        return index

    def _id_by_digest(self, listed: str, position: int, inventory: _Inventory) -> str | None:
        if not inventory.unidentified:
            return None
        try:
            digest = digest_pixels(as_rgb(self._copy().pixels(listed, position)))
        except (SourceError, OSError):
            return None
        ids = inventory.unidentified.get((str(self._listing(listed).classes[position]), digest))
        return ids.pop(0) if ids else None


class PositionalPictures(Pictures):
    """Pictures without names in a `PictureCopy`; ids are ``<split>/<position>``, counted from 0.

    Parameters
    ----------
    find_order : whether the files are the publisher's, whose order makes the ids; picklable, called once. By
        default the order is unknown.

    Other parameters as of `Pictures`.
    """

    def __init__(
        self,
        name: str,
        source: str,
        splits: tuple[str, ...],
        root: Path,
        open_copy: Callable[[], PictureCopy],
        certain: Callable[[], bool] | None = None,
        find_order: Callable[[], Order] | None = None,
    ) -> None:
        super().__init__(name, source, splits, root, open_copy, certain)
        self._find_order = find_order
        self._by_digest = False

    def prepare(self) -> None:
        """Compare the files with the publisher's checksums."""
        order: Order = "unknown" if self._find_order is None else self._find_order()
        self._by_digest = order == "unknown" and _has_all_digests(self._source, self._splits)
        self.order = "published" if self._by_digest else order

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every picture of a class, in the order stored."""
        if self._by_digest:
            yield from super().images(note, splits)
            return
        for split in splits:
            listing = self._listing(split)
            for position, class_id in enumerate(listing.classes):
                if class_id is None:
                    note(listing.describe(position))
                else:
                    yield Image(f"{split}/{position}", class_id, split, (split, position))

    def locate(self, image_id: str) -> Location:
        """Return the split and the position of an image."""
        split, _, text = image_id.partition("/")
        position = parse_position(text)
        if self._by_digest or split not in self._splits:
            return super().locate(image_id)
        if position >= len(self._listing(split).classes):
            raise KeyError(image_id)
        return split, position


class _Inventory:
    """Ids of some splits: their digests, and the ids that no picture has yet by class and digest."""

    def __init__(self, source: str, splits: Sequence[str]) -> None:
        self.digests: dict[str, bytes | None] = {}
        self._classes: dict[str, str] = {}
        self.unidentified: dict[tuple[str, bytes], list[str]] = {}
        for split in splits:
            table = load_inventory(source, split)
            if table is None:
                raise SourceError(
                    f"the inventory of {source} {split} is not installed", hint="reinstall wordnet-splits"
                )
            ids, classes, digests = (table[c].to_pylist() for c in ("image_id", "class_id", "digest"))
            self.digests.update(zip(ids, digests, strict=True))
            self._classes.update(zip(ids, classes, strict=True))

    def leave_out(self, identified: Collection[str]) -> None:
        """Collect the ids that have a digest and are not ``identified``, in image_id order."""
        unidentified: defaultdict[tuple[str, bytes], list[str]] = defaultdict(list)
        for image_id, digest in self.digests.items():
            if digest is not None and image_id not in identified:
                unidentified[self._classes[image_id], digest].append(image_id)
        self.unidentified = dict(unidentified)


def _note_all(counts: Mapping[str, int], note: Note) -> None:
    for name, count in counts.items():
        for _ in range(count):
            note(name)


def _has_all_digests(source: str, splits: Collection[str]) -> bool:
    """Return whether the digest of every image of a source is shipped."""
    if set(inventory_splits(source)) != set(splits):
        return False
    tables = (load_inventory(source, split) for split in splits)
    return all(table is not None and table["digest"].null_count == 0 for table in tables)


def decode_pixels(data: bytes, *, where: str, shape: tuple[int, int, int]) -> Pixels:
    """Return the pixels of an image file, uint8 of ``shape`` (h, w, 3); SourceError for another shape."""
    pixels = np.array(decode_bytes(data, where=where), dtype=np.uint8)
    if pixels.shape != shape:
        height, width = pixels.shape[:2]
        raise SourceError(f"an image of {height} x {width} pixels, not {shape[0]} x {shape[1]}", where=where)
    return pixels
