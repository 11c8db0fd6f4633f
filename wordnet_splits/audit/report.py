"""The report of an audit: the relation of every class of a list to known classes, as table, JSON and page."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np

from wordnet_splits.audit.class_list import ClassList
from wordnet_splits.audit.images import ImageNotes, images_by_class
from wordnet_splits.audit.report_base import (
    AuditReport,
    Cell,
    Page,
    about_hierarchy,
    examples,
    first_rows,
    shares,
)
from wordnet_splits.base import pages
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.benchmark.images.raw_images import open_sources
from wordnet_splits.benchmark.rules.relations import KINDS
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.catalog.table import known_sources
from wordnet_splits.datasets.sources import Source
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.wordnet.taxonomy import Taxonomy

LEAKS = KINDS
"""Relations in the hierarchy that leak, the closest first."""
NAMESAKE = "namesake"
RELATIONS = (*LEAKS, NAMESAKE)
SCHEMA = schema_of(
    "id name relation other other_name edges:int32 path kin:int32 by_definition:bool gloss other_gloss "
    "nearest mean:double distance:int32"
)
"""Columns of a table of classes."""
LIMITS = (
    "These relations come from WordNet, not from the images. Too strict: a class",
    "above a known class leaks only if its images show the known class. Too lax: two",
    "unrelated synsets may look alike (ImageNet's sunglass and sunglasses), an image",
    "may show a second object, and a name may have been read in another sense.",
)
"""Caveats of an audit by WordNet, as lines for a terminal."""


@dataclass(frozen=True)
class AuditedClass:
    """A class, its closest relation to a known class, and the most similar known class.

    Attributes
    ----------
    relation : equal, below, above, namesake or None.
    other, other_name : the known class of that relation.
    edges, path : number of edges to it, and the wnids on the way (for a namesake through a common ancestor).
    kin : number of known classes that the class equals, is below or is above.
    by_definition : whether a namesake has another name, but its definition leads to the known class.
    gloss, other_gloss : definitions of the two.
    nearest, mean : the known class of the greatest ``mean`` similarity; None without a synset.
    distance : edges to the closest known class; None without a synset.
    """

    id: str
    name: str
    relation: str | None
    other: str | None
    other_name: str | None
    edges: int | None
    path: tuple[str, ...]
    kin: int
    by_definition: bool
    gloss: str
    other_gloss: str
    nearest: str | None
    mean: float | None
    distance: int | None


@dataclass(frozen=True)
class AuditedLists:
    """The two lists of an audit, the taxonomy, and the roots and declarations of sources for images."""

    listed: ClassList
    known: ClassList
    taxonomy: Taxonomy
    roots: Roots
    declarations: Mapping[str, Declaration]


@dataclass(frozen=True)
class Audit(AuditReport):
    """Every class of a list compared with known classes.

    Attributes
    ----------
    counts : numbers of ``classes``; of those ``equal``, ``below`` or ``above`` a known class (one with
        several relations counts for each) and ``leaking`` (any of these); of ``namesake`` classes among the
        others, and of those ``by_definition``; of classes ``without_synset`` and ``repeated`` entries.
    first_sense : names of several senses, read as the first.
    images : evidence about the images, if requested.
    not_judged, known_not_judged : ids of classes that are not compared, because they have no synset, or one
        that was proposed at low confidence and not confirmed.
    lists : both lists, for the page.
    """

    schema: ClassVar = SCHEMA
    sizes: ClassVar = "{:,} and {:,} classes"
    limits: ClassVar = LIMITS

    classes: tuple[AuditedClass, ...]
    counts: dict[str, int]
    first_sense: tuple[str, ...] = ()
    images: ImageNotes | None = None
    not_judged: tuple[str, ...] = ()
    known_not_judged: tuple[str, ...] = ()
    lists: AuditedLists = field(kw_only=True, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether no class is related to, or a namesake of, a known class."""
        return not self.related

    @property
    def related(self) -> tuple[AuditedClass, ...]:
        """Classes with any relation, in the list's order."""
        return tuple(item for item in self.classes if item.relation is not None)

    @property
    def leaking(self) -> tuple[AuditedClass, ...]:
        """Classes that equal, are below or are above a known class, in the list's order."""
        return tuple(item for item in self.classes if item.relation in LEAKS)

    @property
    def namesakes(self) -> tuple[AuditedClass, ...]:
        """Classes that are namesakes of known classes, in the list's order."""
        return tuple(item for item in self.classes if item.relation == NAMESAKE)

    @property
    def drops(self) -> tuple[str, ...]:
        """Ids that a clean version leaves out, as ``drop_leaks`` does: every leaking class."""
        return tuple(item.id for item in self.leaking)

    @property
    def nearness(self) -> dict[str, dict[str, float]]:
        """Minimum, quartiles (linear) and maximum of ``mean`` and ``distance`` over the classes."""
        quartiles = {}
        for measure in ("mean", "distance"):
            values = [v for item in self.classes if (v := getattr(item, measure)) is not None]
            if values:
                ends = np.quantile(np.array(values, np.float64), (0, 0.25, 0.5, 0.75, 1)).tolist()
                quartiles[measure] = dict(zip(("min", "q1", "median", "q3", "max"), ends, strict=True))
        return quartiles

    @property
    def edges(self) -> dict[int, int]:
        """Distance to the closest known class in edges -> number of classes."""
        values = [item.distance for item in self.classes if item.distance is not None]
        return {edges: values.count(edges) for edges in sorted(set(values))}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the fields of each class, with the path as a string."""
        return [{**asdict(item), "path": " ".join(item.path)} for item in self.classes]

    def page(self) -> Page:
        """Return the related classes, with images of sources that have a root, two per class.

        Raises
        ------
        SourceError : a root is absent, unreadable or of another dataset.
        """
        listed_images, unreadable = _thumbnails(self.lists.listed, {c.id for c in self.related}, self.lists)
        known_ids = {item.other for item in self.related if item.other is not None}
        known_images, unreadable_known = _thumbnails(self.lists.known, known_ids, self.lists)
        has_images = bool(listed_images or known_images)
        columns = ("images", "images of the known class") if has_images else ()
        images = (listed_images, known_images) if has_images else ()
        notes = "CSV and Parquet also have the classes without a relation."
        if unreadable := unreadable + unreadable_known:
            notes += f" {unreadable:,} images cannot be read."
        rows = [_row(item, self, images) for item in self.related]
        return Page([*COLUMNS, *columns], rows, notes, columns)

    def as_dict(self) -> dict[str, Any]:
        """Return what ``audit --json`` prints."""
        return {
            **super().as_dict(),
            "counts": self.counts,
            "nearness": {**self.nearness, "edges": {str(k): n for k, n in self.edges.items()}},
            "drop": list(self.drops),
            "first_sense": list(self.first_sense),
            "not_judged": list(self.not_judged),
            "known_not_judged": list(self.known_not_judged),
            "classes": [asdict(item) for item in self.classes],
            **({} if self.images is None else {"images": self.images.as_dict()}),
        }

    @property
    def caveats(self) -> Sequence[str]:
        """`LIMITS`, in the words of the hierarchy."""
        return about_hierarchy(self.limits, self.lists.taxonomy)

    def summary(self) -> list[tuple[str, str]]:
        """Return the figures as names and texts."""
        counts, total, noun = self.counts, self.counts["classes"], self.lists.taxonomy.noun
        meanings = {
            "equal": f"the {noun} of a known class",
            "below": "each image shows a known class",
            "above": "an image may show a known class",
            NAMESAKE: "the name or the definition of a known class",
        }
        figures = shares(meanings, counts, total)
        leaking = counts["leaking"]
        unrelated = total - leaking - counts[NAMESAKE] - len(self.not_judged)
        figures.append(("none", f"{unrelated:,} have no relation; a clean version drops {leaking:,}"))
        if spread := self.nearness:
            edges, mean = ("  ".join(f"{v:.3g}" for v in spread[m].values()) for m in ("distance", "mean"))
            figures.append(("edges", f"{edges} to the closest known class (min, quartiles, max)"))
            figures.append(("mean", f"{mean} similarity to the nearest"))
        if self.not_judged:
            figures.append(("not judged", f"{examples(self.not_judged)}: no confirmed {noun}"))
        if self.known_not_judged:
            left_out = f"{examples(self.known_not_judged)} have no confirmed {noun} and are left out"
            figures.append(("known", left_out))
        if counts["repeated"]:
            figures.append(("repeated", f"{counts['repeated']:,} entries, counted once"))
        if self.first_sense:
            names = examples(self.first_sense)
            figures.append(("senses", f"names of several senses, read as the first: {names}"))
        return figures + (self.images.summary() if self.images is not None else [])

    def tables(self, width: int | None, most: int | None) -> Iterator[list[str]]:
        """Yield a table of the leaking classes and one of the namesakes."""
        columns = ("class", "name", "relation", "edges", "known", "its name")
        for classes in (self.leaking, self.namesakes):
            ordered = sorted(classes, key=lambda item: (RELATIONS.index(str(item.relation)), item.edges))
            cells = [
                [str(cell) for cell in (c.id, c.name, c.relation, c.edges, c.other, c.other_name)]
                for c in ordered
            ]
            yield first_rows(columns, cells, width, most, "edges")


COLUMNS = ("class", "relation", "known class", "edges", "path", "similarity to nearest", "kin")
IMAGES_PER_CLASS = 2
THUMBNAIL_SIZE = 96
"""Longer side of an image on the page, in pixels."""

Thumbnails = Mapping[str, list[str]]
"""Class id -> images as ``data:`` addresses."""


def _row(item: AuditedClass, report: Audit, images: Collection[Thumbnails]) -> list[Cell]:
    """Return the table row of a class."""
    names = map(report.lists.taxonomy.name, item.path)
    similarity = "" if item.mean is None else f"{item.mean:.3f}"
    cells = [
        Cell(_named(item.id, item.name), item.gloss, item.id),
        Cell(str(item.relation), value=str(item.relation)),
        Cell(_named(item.other or "", item.other_name or ""), item.other_gloss, item.other_name or ""),
        Cell("" if item.edges is None else f"{item.edges}", number=True),
        Cell(" > ".join(names)),
        Cell(similarity, value=similarity, number=True),
        Cell(f"{item.kin}", number=True),
    ]
    for thumbnails, class_id in zip(images, (item.id, item.other), strict=False):
        cells.append(Cell("", images=thumbnails.get(class_id or "", ()), alt=class_id or ""))
    return cells


def _named(class_id: str, name: str) -> str:
    return class_id if name in ("", class_id) else f"{name} ({class_id})"


def _thumbnails(classes: ClassList, ids: Collection[str], lists: AuditedLists) -> tuple[Thumbnails, int]:
    """Return images of some classes of a list, and the number of images that cannot be read."""
    by_class = images_by_class(classes) or {}
    names = {source for images in by_class.values() for source, _, _ in images}
    if not by_class and classes.name in known_sources():
        names = {classes.name}
    sources = open_sources(sorted(names), lists.roots, lists.declarations)
    if by_class:
        chosen = {i: sorted((s, image) for s, image, _ in by_class.get(i, ()) if s in sources) for i in ids}
    else:
        chosen = _scanned(sources, ids)
    thumbnails: dict[str, list[str]] = {}
    unreadable = 0
    for class_id, images in chosen.items():
        for source_name, image_id in images[:IMAGES_PER_CLASS]:
            try:
                source = sources[source_name]
                image = source.decode(source.read([image_id])[0], image_id)
            except (SourceError, OSError):
                unreadable += 1
                continue
            thumbnails.setdefault(class_id, []).append(pages.thumbnail(image, THUMBNAIL_SIZE))
    return thumbnails, unreadable


def _scanned(sources: Mapping[str, Source], ids: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Return (source, image_id) of the images of some classes, sorted, from a scan of the roots."""
    chosen: dict[str, list[tuple[str, str]]] = {}
    for name, source in sources.items():
        for image_id, class_id, _ in source.rows(source.splits):
            if class_id in ids:
                chosen.setdefault(class_id, []).append((name, image_id))
    return {class_id: sorted(images) for class_id, images in chosen.items()}
