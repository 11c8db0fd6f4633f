"""The Hub's Parquet files of a dataset without names; their order is not the publisher's promise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from wordnet_splits.base.digests import Pixels
from wordnet_splits.sources.layouts.parquet_nameless import HubLayout, NamelessParquet, RowPlace
from wordnet_splits.sources.layouts.positional import PositionalLayout


class HubFiles:
    """The Parquet files below one root, told apart by their row."""

    def __init__(self, layout: HubLayout, root: Path, class_ids: tuple[str, ...]) -> None:
        self._parquet = NamelessParquet(layout, root, class_ids)
        self._rows: Callable[[str], list[tuple[RowPlace, str | None]]]
        self._rows = cache(lambda split: list(self._parquet.labels(split)))

    def classes(self, split: str) -> list[str | None]:
        """Return the class of each picture."""
        return [class_id for _, class_id in self._rows(split)]

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture, uint8 (h, w, 3)."""
        return self._parquet.pixels(self._rows(split)[index][0])


def hub_positions(layout: HubLayout, class_ids: tuple[str, ...]) -> PositionalLayout:
    """Return the Hub's files as a layout; ``class_ids`` are the classes in label order."""
    return PositionalLayout(
        found=lambda root: bool(layout.find(root, class_ids)),
        order=lambda root: "unknown",
        open=lambda root: HubFiles(layout, root, class_ids),
    )
