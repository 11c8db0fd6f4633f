"""Gives the images of a copy their ids: by file name where it has one, else by what the picture is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from wordnet_splits.base.digests import Pixels, digest_pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.catalog.inventory import load_inventory
from wordnet_splits.sources.pixels import decode_bytes

Place = TypeVar("Place")


@dataclass(frozen=True)
class UnnamedPicture(Generic[Place]):
    """One picture of a copy, before it has an id.

    ``class_id`` is the publisher's class, ``name`` the file name without extension ("" where the copy has
    none), ``place`` where the copy keeps it, ``label`` what to call it where it cannot be matched.
    """

    class_id: str
    name: str
    place: Place
    label: str


class Copy(ABC, Generic[Place]):
    """One copy of a dataset of small pictures, whatever its layout."""

    by_split: bool = True
    """Whether the copy tells its splits apart; if not, ``items`` gives those of all splits."""

    @abstractmethod
    def items(self, split: str, unexpected: Counter[str]) -> Iterator[UnnamedPicture[Place]]:
        """Yield the pictures of a split; count everything else in ``unexpected``."""

    @abstractmethod
    def pixels(self, place: Place) -> Pixels:
        """Return one picture, uint8 (h, w, 3); SourceError where it is corrupt."""


@dataclass
class Index(Generic[Place]):
    """Where each image of some splits is, and what could not be given an id."""

    places: dict[str, Place] = field(default_factory=dict)
    unexpected: Counter[str] = field(default_factory=Counter)


def match(source: str, splits: Sequence[str], copy: Copy[Place], where: str) -> Index[Place]:
    """Return the index of a copy, whose ids are ``<split>/<class_id>/<name>``.

    An item whose name the inventory holds has that id. Every other is matched by (split, class_id, digest),
    equal ones in image_id order; what still has none is counted in ``unexpected``. ``where`` is the root.

    Raises SourceError where two items have one name, or an inventory is needed and not there.
    """
    index: Index[Place] = Index()
    known = _inventory(source, splits)
    nameless: list[UnnamedPicture[Place]] = []
    for item in _items(copy, splits, index.unexpected):
        ids = [i for s in splits if item.name and (i := f"{s}/{item.class_id}/{item.name}") in known]
        if len(ids) != 1:
            nameless.append(item)
        elif ids[0] in index.places:
            raise SourceError(f"image {ids[0]!r} of {source} is there twice", where=f"{where}: {item.label}")
        else:
            index.places[ids[0]] = item.place
    pool = _pool(known, index.places)
    for item in nameless:
        image_id = _by_digest(item, pool, copy) if pool else None
        if image_id is None:
            index.unexpected[item.label] += 1
        else:
            index.places[image_id] = item.place
    return index


def _items(
    copy: Copy[Place], splits: Sequence[str], unexpected: Counter[str]
) -> Iterator[UnnamedPicture[Place]]:
    for split in splits if copy.by_split else splits[:1]:
        yield from copy.items(split, unexpected)


def _inventory(source: str, splits: Sequence[str]) -> dict[str, bytes | None]:
    known: dict[str, bytes | None] = {}
    for split in splits:
        table = load_inventory(source, split)
        if table is None:
            raise SourceError(
                f"the inventory of {source} {split} is not installed", hint="reinstall wordnet-splits"
            )
        known.update(zip(table["image_id"].to_pylist(), table["digest"].to_pylist(), strict=True))
    return known


def _pool(known: dict[str, bytes | None], taken: Iterable[str]) -> dict[tuple[str, bytes], list[str]]:
    """Return the ids that no name has taken, by class and digest, each list in image_id order."""
    pool: defaultdict[tuple[str, bytes], list[str]] = defaultdict(list)
    taken = set(taken)
    for image_id in sorted(known):
        digest = known[image_id]
        if digest is not None and image_id not in taken:
            pool[image_id.split("/")[1], digest].append(image_id)
    return dict(pool)


def _by_digest(
    item: UnnamedPicture[Place], pool: dict[tuple[str, bytes], list[str]], copy: Copy[Place]
) -> str | None:
    try:
        pixels = copy.pixels(item.place)
    except (SourceError, OSError):
        return None
    ids = pool.get((item.class_id, digest_pixels(pixels)))
    return ids.pop(0) if ids else None


def decode_pixels(data: bytes, *, where: str, shape: tuple[int, int, int]) -> Pixels:
    """Return the pixels of an image file that must have ``shape`` (h, w, 3); SourceError where it has not."""
    pixels = np.array(decode_bytes(data, where=where), dtype=np.uint8)
    if pixels.shape != shape:
        height, width = pixels.shape[:2]
        raise SourceError(f"an image of {height} x {width} pixels, not {shape[0]} x {shape[1]}", where=where)
    return pixels
