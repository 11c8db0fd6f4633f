"""The images that a draw chooses from: every id of a source's split, or the reason why not known.

A population is an inventory, or a scan of a root whose counts equal the catalog's.  What a root merely
happens to hold is never one, except on request (``local``), and then the result is named ``NAME@local``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from wordnet_splits.catalog import Catalog, load_catalog
from wordnet_splits.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.errors import RecipeError
from wordnet_splits.progress import Progress, Silent
from wordnet_splits.sources import Source

NO_POSITIONS = "the copy is not the publisher's file for file, so its positions name no images"


@dataclass(frozen=True)
class Awaiting:
    """A population whose ids are not known yet."""

    source: str
    reason: str


@dataclass
class Population:
    """Image ids by class, and the digests known without pixels."""

    images: dict[str, list[str]]
    digests: dict[str, bytes] = field(default_factory=dict)
    local: bool = False

    def count(self) -> int:
        """Return the number of images."""
        return sum(map(len, self.images.values()))


class Populations:
    """Populations of every source of a build, loaded once each.

    Parameters
    ----------
    sources : opened source by name, where a root is at hand.
    local : accept what a root holds where its counts are unknown or differ.
    """

    def __init__(
        self, sources: Mapping[str, Source], *, local: bool = False, progress: Progress | None = None
    ) -> None:
        self._sources = sources
        self._local = local
        self._progress = progress or Silent()
        self._cache: dict[tuple[str, str], Population | Awaiting] = {}
        self._scans: dict[str, dict[str, Population]] = {}

    def of(self, source: str, splits: Iterable[str]) -> Population | Awaiting:
        """Return the population of publishers' splits together, or what it waits for."""
        parts = [self._of_split(source, s) for s in self.expand(source, splits)]
        for part in parts:
            if isinstance(part, Awaiting):
                return part
        if len(parts) == 1 and isinstance(parts[0], Population):
            return parts[0]
        images: dict[str, list[str]] = defaultdict(list)
        digests: dict[str, bytes] = {}
        for part in parts:
            assert isinstance(part, Population)
            digests |= part.digests
            for class_id, ids in part.images.items():
                images[class_id] += ids
        return Population(dict(images), digests, any(isinstance(p, Population) and p.local for p in parts))

    def expand(self, source: str, splits: Iterable[str]) -> tuple[str, ...]:
        """Return publishers' splits with ``all`` resolved; raise RecipeError for one that does not exist."""
        known = load_catalog(source).splits
        named = tuple(splits)
        if named == ("all",):
            return tuple(known)
        for split in named:
            if split not in known:
                raise RecipeError(
                    f"{source} has no split {split!r}", hint=f"it has {', '.join(known)}", near=()
                )
        return named

    def _of_split(self, source: str, split: str) -> Population | Awaiting:
        at = (source, split)
        if at not in self._cache:
            self._cache[at] = self._find(source, split)
        return self._cache[at]

    def _find(self, source: str, split: str) -> Population | Awaiting:
        if split in inventory_splits(source):
            table = load_inventory(source, split)
            assert table is not None
            return _of_table(table)
        if source not in self._sources:
            return Awaiting(source, f"the image ids of {source} {split} are not known without the dataset")
        scanned = self._scan(source).get(split, Population({}))
        difference = count_difference(load_catalog(source), split, scanned.images)
        if difference is None and self._sources[source].order == "published":
            return scanned
        reason = difference or NO_POSITIONS
        if self._local and scanned.images:
            return Population(scanned.images, scanned.digests, local=True)
        return Awaiting(source, reason)

    def _scan(self, source: str) -> dict[str, Population]:
        if source not in self._scans:
            found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
            published = sum(n or 0 for n in self._sources[source].expected().values())
            with self._progress.task(f"scanning {source}", published) as task:
                for batch in self._sources[source].scan():
                    columns = (c.to_pylist() for c in batch.columns)
                    for image_id, class_id, split in zip(*columns, strict=True):
                        found[split][class_id].append(image_id)
                    task.advance(batch.num_rows)
            self._scans[source] = {s: Population(dict(images)) for s, images in found.items()}
        return self._scans[source]


def count_difference(catalog: Catalog, split: str, images: Mapping[str, list[str]]) -> str | None:
    """Say how a scan's counts differ from the catalog's, or None when they are equal.

    Classes whose counts are published only as a sum are compared by that sum.
    """
    held = {c.class_id: len(images.get(c.class_id, ())) for c in catalog}
    sums = catalog.group_counts(split)
    held_sums: Counter[str] = Counter()
    for c in catalog:
        expected = catalog.count(c.class_id, split)
        if expected is None and c.count_group in sums:
            held_sums[c.count_group] += held[c.class_id]
        elif expected is None:
            return f"how many {split} images {catalog.source} has is not published"
    wrong = [c for c in held if (n := catalog.count(c, split)) is not None and n != held[c]]
    wrong += [g for g, n in sums.items() if held_sums[g] != n]
    if not wrong:
        return None
    total = sum(n for c in held if (n := catalog.count(c, split)) is not None) + sum(sums.values())
    return (
        f"the root holds {sum(held.values()):,} of {total:,} {split} images of {catalog.source} "
        f"({len(wrong):,} classes differ), so nothing is drawn from it"
    )


def _of_table(table: pa.Table) -> Population:
    images: dict[str, list[str]] = defaultdict(list)
    ids = table.column("image_id").to_pylist()
    for image_id, class_id in zip(ids, table.column("class_id").to_pylist(), strict=True):
        images[class_id].append(image_id)
    digests = table.column("digest").to_pylist()
    return Population(dict(images), {i: d for i, d in zip(ids, digests, strict=True) if d is not None})
