"""Populations: the images of a source's split that draws choose from, or the reason why they are unknown.

A population is an inventory, or a scan of a root whose counts equal the catalog's. The images of an
incomplete root are one only on request (``local``), and the result is then named ``NAME@local``. Of a scan
only the ids that can be drawn are stored, so that the ten million of LSUN fit in memory.

An image that shows several classes is in a population only if all these classes have the same roles in the
benchmark: a mixed image would be neither ID nor OOD.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from wordnet_splits.base import digests
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.datasets.catalog import Catalog, load_catalog
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.datasets.sources import Source

NO_POSITIONS = "the copy is not the publisher's file for file, so positions in it identify no image"


@dataclass(frozen=True)
class Awaiting:
    """A population with unknown ids."""

    source: str
    reason: str


@dataclass
class Population:
    """Image ids by class, the digests in inventories, and the number of images to draw from.

    ``mixed`` counts the images left out because they also show a class of another role.
    """

    images: dict[str, list[str]]
    counts: Counter[str]
    digests: dict[str, bytes] = field(default_factory=dict)
    local: bool = False
    mixed: Counter[str] = field(default_factory=Counter)


Roles = Mapping[tuple[str, str], frozenset[str]]
"""The roles of each class of a benchmark, by (source, class id); none for a class of no group."""

Most = Mapping[str, Mapping[str, Mapping[str, int | None]]]
"""Largest number of drawn images of each class, by source and publisher's split; None for all."""


class FirstImages:
    """The first image ids of a class in the order of a draw, from ids that come in batches.

    Parameters
    ----------
    most : number of ids to keep, None for all; memory holds up to about twice as many.
    """

    def __init__(self, draw: str, seed: int, source: str, class_id: str, most: int | None) -> None:
        self._class = (draw, seed, source, class_id)
        self._most = most
        self._ids: list[str] = []

    def add(self, image_ids: Iterable[str]) -> None:
        """Add ids of the class."""
        self._ids += image_ids
        if self._most is not None and len(self._ids) > 2 * self._most + 64:
            self._ids = self.ids()

    def ids(self) -> list[str]:
        """Return the first ids in the order of the draw, or all as they were added."""
        return (
            self._ids if self._most is None else digests.order_images(*self._class, self._ids)[: self._most]
        )


class Populations:
    """Populations of every source of a build, loaded once each.

    Parameters
    ----------
    sources : opened sources with a root, by name.
    draw, seed, most : parameters of the draws, which limit the ids stored of a scan.
    roles : roles of the classes, to find images of several classes that are mixed.
    datasets : the declared datasets that may be drawn from.
    local : accept the images of a root if its counts are unknown or differ, or if it lacks images of an
        inventory.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        draw: str,
        seed: int,
        most: Most,
        roles: Roles,
        datasets: Sources,
        *,
        local: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.datasets = datasets
        self._sources = sources
        self._draw, self._seed, self._most = draw, seed, most
        self._roles = roles
        self._local = local
        self._progress = progress or Silent()
        self._cache: dict[tuple[str, str], Population | Awaiting] = {}
        self._scans: dict[str, dict[str, Population]] = {}
        self._ids: dict[str, frozenset[str]] = {}

    def of(self, source: str, splits: Iterable[str]) -> Population | Awaiting:
        """Return the population of publishers' splits together, or the source that is missing."""
        parts = []
        for split in splits:
            part = self._of_split(source, split)
            if isinstance(part, Awaiting):
                return part
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        whole = Population(defaultdict(list), Counter(), local=any(p.local for p in parts))
        for part in parts:
            whole.digests |= part.digests
            whole.counts.update(part.counts)
            whole.mixed.update(part.mixed)
            for class_id, ids in part.images.items():
                whole.images[class_id] += ids
        return whole

    def listed_elsewhere(self, source: str, pool: Collection[str]) -> set[str]:
        """Return the image ids that inventories give to publishers' splits outside ``pool``."""
        others = (
            load_inventory(source, s, self.datasets)
            for s in inventory_splits(source, self.datasets)
            if s not in pool
        )
        return {i for table in others if table is not None for i in table.column("image_id").to_pylist()}

    def _of_split(self, source: str, split: str) -> Population | Awaiting:
        at = (source, split)
        if at not in self._cache:
            self._cache[at] = self._find(source, split)
        return self._cache[at]

    def _find(self, source: str, split: str) -> Population | Awaiting:
        if split in inventory_splits(source, self.datasets):
            table = load_inventory(source, split, self.datasets)
            assert table is not None
            opened = self._sources.get(source)
            # without the publisher's order, the positions in a root are not the ids of the inventory
            if self._local and opened is not None and opened.order == "published":
                return self._of_root(source, table)
            return self._of_table(source, table)
        if source not in self._sources:
            return Awaiting(source, f"the image ids of {source} {split} are not known without the dataset")
        scanned = self._scan(source)[split]
        difference = count_difference(
            load_catalog(source, self.datasets), split, scanned.counts + scanned.mixed
        )
        if difference is None and self._sources[source].order == "published":
            return scanned
        if self._local and scanned.counts:
            return Population(scanned.images, scanned.counts, local=True, mixed=scanned.mixed)
        return Awaiting(source, difference or NO_POSITIONS)

    def _scan(self, source: str) -> dict[str, Population]:
        """Scan the splits of a root that are drawn from and have no inventory."""
        if source not in self._scans:
            scanned_splits = [
                s for s in self._most[source] if s not in inventory_splits(source, self.datasets)
            ]
            draws = {
                (s, c): FirstImages(self._draw, self._seed, source, c, most)
                for s in scanned_splits
                for c, most in self._most[source][s].items()
            }
            counts: dict[str, Counter[str]] = {s: Counter() for s in scanned_splits}
            mixed: dict[str, Counter[str]] = {s: Counter() for s in scanned_splits}
            opened = self._sources[source]
            published = sum(n or 0 for s, n in opened.expected().items() if s in scanned_splits)
            with self._progress.task(f"scanning {source}", published) as task:
                for batch in opened.scan(scanned_splits):
                    batch_ids: dict[tuple[str, str], list[str]] = defaultdict(list)
                    for image_id, class_id, split in zip(
                        *(c.to_pylist() for c in batch.columns), strict=True
                    ):
                        if self._is_mixed(source, class_id, opened.extra_classes.get(image_id, ())):
                            mixed[split][class_id] += 1
                        else:
                            batch_ids[split, class_id].append(image_id)
                    for (split, class_id), ids in batch_ids.items():
                        counts[split][class_id] += len(ids)
                        if (split, class_id) in draws:
                            draws[split, class_id].add(ids)
                    task.advance(batch.num_rows)
            images: dict[str, dict[str, list[str]]] = {s: {} for s in scanned_splits}
            for (split, class_id), first_images in draws.items():
                images[split][class_id] = first_images.ids()
            self._scans[source] = {
                s: Population(images[s], counts[s], mixed=mixed[s]) for s in scanned_splits
            }
        return self._scans[source]

    def _of_root(self, source: str, table: pa.Table) -> Population:
        """Return the images of an inventory that a root has; the whole inventory if it has none."""
        root_ids = self._root_ids(source)
        present = pa.array([i in root_ids for i in table["image_id"].to_pylist()], pa.bool_())
        if present.true_count in (0, table.num_rows):
            return self._of_table(source, table)
        population = self._of_table(source, table.filter(present))
        population.local = True
        return population

    def _root_ids(self, source: str) -> frozenset[str]:
        """Return the image ids of a root in the splits that are drawn from."""
        if source not in self._ids:
            listed_splits = [s for s in self._most[source] if s in inventory_splits(source, self.datasets)]
            opened = self._sources[source]
            published = sum(n or 0 for s, n in opened.expected().items() if s in listed_splits)
            image_ids: set[str] = set()
            with self._progress.task(f"scanning {source}", published) as task:
                for batch in opened.scan(listed_splits):
                    image_ids.update(batch.column("image_id").to_pylist())
                    task.advance(batch.num_rows)
            self._ids[source] = frozenset(image_ids)
        return self._ids[source]

    def _of_table(self, source: str, table: pa.Table) -> Population:
        images: dict[str, list[str]] = defaultdict(list)
        mixed: Counter[str] = Counter()
        ids, classes = table["image_id"].to_pylist(), table["class_id"].to_pylist()
        further_classes = table["also"].to_pylist() if "also" in table.column_names else [()] * len(ids)
        for image_id, class_id, also in zip(ids, classes, further_classes, strict=True):
            if self._is_mixed(source, class_id, also):
                mixed[class_id] += 1
            else:
                images[class_id].append(image_id)
        counts = Counter({c: len(of_class) for c, of_class in images.items()})
        digests = table["digest"].to_pylist()
        digest_by_id = {i: d for i, d in zip(ids, digests, strict=True) if d is not None}
        return Population(dict(images), counts, digest_by_id, mixed=mixed)

    def _is_mixed(self, source: str, class_id: str, also: Collection[str]) -> bool:
        """Return whether an image shows a class whose roles differ from its main class's."""
        none: frozenset[str] = frozenset()
        class_roles = self._roles.get((source, class_id), none)
        return any(self._roles.get((source, further_class), none) != class_roles for further_class in also)


def expand(source: str, splits: Iterable[str], datasets: Sources) -> tuple[str, ...]:
    """Return publishers' splits with ``all`` resolved. Raises RecipeError for an unknown split."""
    published_splits = load_catalog(source, datasets).splits
    requested = tuple(splits)
    if requested == ("all",):
        return tuple(published_splits)
    for split in requested:
        if split not in published_splits:
            raise RecipeError(
                f"{source} has no split {split!r}", hint=f"it has {', '.join(published_splits)}", near=()
            )
    return requested


def count_difference(catalog: Catalog, split: str, counts: Mapping[str, int]) -> str | None:
    """Return a sentence on how a scan's counts differ from the catalog's; None if they are equal.

    Classes whose counts are published only as a sum are compared by that sum.
    """
    counts_held = {c.class_id: counts.get(c.class_id, 0) for c in catalog}
    sums = catalog.group_counts(split)
    held_sums: Counter[str] = Counter()
    for c in catalog:
        expected = catalog.count(c.class_id, split)
        if expected is None and c.count_group in sums:
            held_sums[c.count_group] += counts_held[c.class_id]
        elif expected is None:
            return f"how many {split} images {catalog.source} has is not published"
    wrong = [c for c in counts_held if (n := catalog.count(c, split)) is not None and n != counts_held[c]]
    wrong += [g for g, n in sums.items() if held_sums[g] != n]
    if not wrong:
        return None
    total = sum(n for c in counts_held if (n := catalog.count(c, split)) is not None) + sum(sums.values())
    return (
        f"the root holds {sum(counts_held.values()):,} of {total:,} {split} images of {catalog.source} "
        f"({len(wrong):,} classes differ), so nothing is drawn from it"
    )
