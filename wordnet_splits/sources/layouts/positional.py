"""Datasets in which nothing names a picture but its position: ids are ``<split>/<index>``, counted from 0.

A position holds only for a copy that has the publisher's checksums. Of any other copy the pictures are found
by (split, class, digest) where the shipped inventories hold the digests, equal ones in image_id order; else
its ``order`` is "unknown".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from wordnet_splits.base.digests import Pixels, digest_pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.sources.base import OneCopyPerProcess, Order, Raw, Row, as_rgb, parse_position


class Positional(Protocol):
    """A copy whose pictures are told apart by their position in a split."""

    def classes(self, split: str) -> list[str | None]:
        """Return the class of each picture, None where its label is none; empty for a split not there."""

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture, uint8 (h, w, 3) or (h, w); SourceError where it cannot be decoded."""


@dataclass(frozen=True)
class PositionalLayout:
    """How one layout is recognised at a root, whether its order is the publisher's, and how it is opened."""

    found: Callable[[Path], bool]
    order: Callable[[Path], Order]
    open: Callable[[Path], Positional]
    certain: Callable[[Path], bool] | None = None
    """Whether it is this dataset beyond doubt; ``found`` by default."""


class PositionalSource(OneCopyPerProcess):
    """A dataset without names. ``layouts`` are looked for in their order."""

    lossless: ClassVar[bool] = True
    layouts: ClassVar[Mapping[str, PositionalLayout]]
    odd_label: ClassVar[str] = "label of no class"

    def __init__(self, root: Path | None, layout: str, *, order: Order = "published") -> None:
        self._by_digest = order == "unknown" and _digested(self.name, self.splits)
        super().__init__(root, layout, order="published" if self._by_digest else order)

    @classmethod
    def detect(cls, root: Path | None) -> str | None:
        """Return the first layout that the root has, or None."""
        if root is None:
            return None
        return next((name for name, layout in cls.layouts.items() if layout.found(root)), None)

    @classmethod
    def certain(cls, root: Path) -> bool:
        """Return whether some layout can only be of this dataset."""
        return any((layout.certain or layout.found)(root) for layout in cls.layouts.values())

    @classmethod
    def open(cls, root: Path | None, layout: str, **params: Any) -> Self:
        """Open the copy at ``root``, computing the checksums that its order depends on."""
        if params:
            raise SourceError(f"source {cls.name} takes no parameter {min(params)!r}")
        assert root is not None, "rooted"
        return cls(root, layout, order=cls.layouts[layout].order(root))

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield (image_id, class_id, split) in the order stored."""
        for split in splits:
            classes = self._classes(split)
            if odd := classes.count(None):
                self.note_unexpected(f"{split}: {self.odd_label}", odd)
            places = self._places(split)
            if places is None:
                yield from ((f"{split}/{i}", c, split) for i, c in enumerate(classes) if c is not None)
                continue
            for image_id, index in places.items():
                class_id = classes[index]
                assert class_id is not None, "only pictures of a class are placed"
                yield image_id, class_id, split
            if lost := len(classes) - odd - len(places):
                self.note_unexpected(f"{split}: pixels of no known image", lost)

    def read_one(self, image_id: str) -> Raw:
        """Return the pixels, uint8 (h, w, 3) or (h, w)."""
        split, _, text = image_id.partition("/")
        index = parse_position(text)
        if split not in self.splits:
            raise KeyError(image_id)
        places = self._places(split)
        if places is not None:
            index = places[image_id]
        elif index >= len(self._classes(split)):
            raise KeyError(image_id)
        try:
            return self._copy().pixels(split, index)
        except SourceError as error:
            raise self.missing(image_id, f"cannot be read: {error.what}") from error

    def _copy(self) -> Positional:
        assert self.root is not None, "rooted"
        root = self.root
        return self.cached("copy", lambda: self.layouts[self.layout].open(root))

    def _classes(self, split: str) -> list[str | None]:
        return self.cached(f"classes {split}", lambda: self._copy().classes(split))

    def _places(self, split: str) -> dict[str, int] | None:
        """Return where each image of a split is found by its digest, None where ids are positions."""
        return self.cached(f"places {split}", lambda: self._match(split)) if self._by_digest else None

    def _match(self, split: str) -> dict[str, int]:
        table = load_inventory(self.name, split)
        assert table is not None, "digested"
        pool: defaultdict[tuple[str, bytes], list[str]] = defaultdict(list)
        columns = (table[name].to_pylist() for name in ("image_id", "class_id", "digest"))
        for image_id, class_id, digest in zip(*columns, strict=True):
            pool[class_id, digest].append(image_id)
        places = {}
        for index, class_id in enumerate(self._classes(split)):
            if class_id is None:
                continue
            try:
                digest = digest_pixels(as_rgb(self._copy().pixels(split, index)))
            except SourceError:
                continue  # counted with the pixels of no known image
            if ids := pool.get((class_id, digest)):
                places[ids.pop(0)] = index
        return places


def _digested(source: str, splits: Collection[str]) -> bool:
    """Return whether the digest of every image of a source is shipped."""
    if set(inventory_splits(source)) != set(splits):
        return False
    tables = (load_inventory(source, split) for split in splits)
    return all(table is not None and table["digest"].null_count == 0 for table in tables)
