"""Evidence from images in an audit: equal digests, and samples of images that people have inspected.

NINCO's authors inspected samples of popular OOD sets and kept the images without any ImageNet-1K class.
A kept image of a class below or above a known class shows that WordNet is too strict about it. The images
that they did not keep are not published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.audit.class_list import ClassList
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.datasets.catalog.inventory import (
    available_lists,
    find_list,
    inventory_splits,
    list_names,
    load_inventory,
    load_list,
)
from wordnet_splits.datasets.catalog.table import known_sources

INSPECTED = "ninco/"
"""Family of the lists of inspected and kept images."""
BY_SYNSET = frozenset({"ssb-hard", "imagenet21k"})
"""Sources of these lists whose class ids are wnids."""
NONE = "none"
"""Key of classes without a relation."""

Image = tuple[str, str, bytes | None]
"""Source, image_id, digest where known."""


@dataclass(frozen=True)
class ClassImages:
    """Numbers of images of a class: all (None if unknown), and those with a digest.

    ``same`` : images with the digest of a known class's image; ``kept`` : inspected and kept images.
    """

    id: str
    relation: str | None
    images: int | None
    digests: int
    same: int
    kept: int


@dataclass(frozen=True)
class Sample:
    """Kept images of a sample, in all and in the list's classes by relation (or ``none``)."""

    name: str
    kept: int
    by_relation: dict[str, int]


@dataclass(frozen=True)
class ImageNotes(Jsonable, Tabular):
    """Evidence from the images of a list; ``known_digests`` is the number of digests of known classes."""

    classes: tuple[ClassImages, ...]
    known_digests: int
    samples: tuple[Sample, ...]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the fields of each class."""
        return [asdict(item) for item in self.classes]

    def summary(self) -> list[tuple[str, str]]:
        """Return the figures as names and texts."""
        image_counts = [item.images for item in self.classes if item.images is not None]
        figures = [
            ("images", f"{sum(image_counts):,} known by name" if image_counts else "none known by name")
        ]
        digests, same = (sum(getattr(item, name) for item in self.classes) for name in ("digests", "same"))
        if digests and self.known_digests:
            figures.append(
                (
                    "digests",
                    f"{same:,} of {digests:,} equal one of {self.known_digests:,} of known classes",
                )
            )
        else:
            figures.append(("digests", "not known for both lists"))
        for sample in self.samples:
            spread = ", ".join(f"{count:,} {relation}" for relation, count in sample.by_relation.items())
            figures.append(
                ("inspected", f"{sample.name} kept {sum(sample.by_relation.values()):,}: {spread}")
            )
        return figures


def note_images(
    listed: ClassList,
    known: ClassList,
    relations: Mapping[str, str | None],
) -> ImageNotes:
    """Return the evidence about the images of a list's classes.

    ``relations`` are of its classes, by id. Samples are named only where every known class is one of
    ImageNet-1K: only those were looked for.
    """
    listed_images, known_images = images_by_class(listed), images_by_class(known)
    digests = {digest for images in (known_images or {}).values() for _, _, digest in images if digest}
    samples: list[Sample] = []
    kept_counts: Counter[str] = Counter()
    imagenet = {wnid for item in load_catalog("imagenet1k") for wnid in item.wnids}
    if all(wnid in imagenet for item in known.classes for wnid in item.wnids):
        for name in (name for name in list_names() if name.startswith(INSPECTED)):
            counts = _kept(name, listed)
            kept_counts.update(counts)
            by_relation: Counter[str] = Counter()
            for class_id, count in counts.items():
                by_relation[relations[class_id] or NONE] += count
            if counts:
                samples.append(Sample(name, len(load_list(name)), dict(by_relation)))
    rows = tuple(
        ClassImages(
            item.id,
            relations[item.id],
            None if listed_images is None else len(listed_images.get(item.id, ())),
            sum(digest is not None for _, _, digest in (listed_images or {}).get(item.id, ())),
            sum(digest in digests for _, _, digest in (listed_images or {}).get(item.id, ())),
            kept_counts[item.id],
        )
        for item in listed.classes
    )
    return ImageNotes(rows, len(digests), tuple(samples))


def _kept(name: str, listed: ClassList) -> dict[str, int]:
    """Return the number of kept images of each class of the list in a sample."""
    table = load_list(name)
    source = table["source"][0].as_py()
    if source not in BY_SYNSET and source not in _sources(listed.name):
        return {}
    counts = Counter(table["class_id"].to_pylist())
    return {item.id: counts[item.id] for item in listed.classes if counts[item.id]}


def _sources(name: str) -> set[str]:
    """Return the sources of a shipped list's images."""
    if name in catalog_names():
        return {name}
    return set(find_list(name)["source"].to_pylist()) if name in available_lists() else set()


def images_by_class(classes: ClassList) -> dict[str, list[Image]] | None:
    """Return the images of each class of a group, a source or a shipped list; None of anything else."""
    if classes.manifest is None:
        return _named_images(classes.name)
    table = classes.manifest.images(group=classes.group)
    return _by_class(zip(*_columns(table), table["source"].to_pylist(), strict=True))


def _named_images(name: str) -> dict[str, list[Image]] | None:
    """Return the images of each class of a source or a shipped list, None for another name."""
    if name in known_sources():
        tables = [t for split in inventory_splits(name) if (t := load_inventory(name, split)) is not None]
        if not tables:
            return None
        return _by_class((*row, name) for table in tables for row in zip(*_columns(table), strict=True))
    if name in available_lists():
        table = find_list(name)
        digests: dict[tuple[str, str], bytes | None] = {}
        for source in set(table["source"].to_pylist()):
            for images in (_named_images(source) or {}).values():
                digests |= {(source, image_id): digest for _, image_id, digest in images}
        ids, classes, from_ = (table[c].to_pylist() for c in ("image_id", "class_id", "source"))
        digest_column = [digests.get(key) for key in zip(from_, ids, strict=True)]
        return _by_class(zip(ids, classes, digest_column, from_, strict=True))
    return None


def _by_class(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Image]]:
    """Return (source, image_id, digest) of each image by class, from (image_id, class_id, digest, source)."""
    by_class: dict[str, list[Image]] = {}
    for image_id, class_id, digest, source in rows:
        by_class.setdefault(class_id, []).append((source, image_id, digest))
    return by_class


def _columns(table: Any) -> list[list[Any]]:
    return [table[column].to_pylist() for column in ("image_id", "class_id", "digest")]


def image_counts(classes: ClassList) -> dict[str, int] | None:
    """Return the number of images of each class that has some; None if not all are known by name."""
    if classes.manifest is not None:
        tables = [classes.manifest.images(group=classes.group)]
    elif classes.name in known_sources():
        splits = load_catalog(classes.name).splits
        inventories = [load_inventory(classes.name, split) for split in splits]
        tables = [table for table in inventories if table is not None and None not in inventories]
    else:
        tables = [find_list(classes.name)] if classes.name in available_lists() else []
    if not tables:
        return None
    counts = pc.value_counts(pa.chunked_array([c for t in tables for c in t["class_id"].chunks], pa.string()))
    return {row["values"]: row["counts"] for row in counts.to_pylist()}
