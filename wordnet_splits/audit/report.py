"""The report of an audit: the relation of every class of a list to known classes, as table, JSON and page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from wordnet_splits.audit.class_list import ClassList
from wordnet_splits.audit.images import ImageNotes, images_by_class
from wordnet_splits.base import pages
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.names import listed
from wordnet_splits.base.parquet import schema_of, write_table_file
from wordnet_splits.base.tabular import Tabular, text_table
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
TEXT_WIDTH = 80
SCHEMA = schema_of(
    "id name relation other other_name edges:int32 path kin:int32 by_definition:bool gloss other_gloss "
    "nearest mean:double distance:int32"
)
"""Columns of a table of classes."""
FILE_ENDINGS = (".csv", ".html", ".parquet")
"""Endings of the files that `Audit.write` writes."""
MAX_ROWS = 20
"""Classes printed of each kind by default."""
LIMITS = (
    "These relations come from WordNet, not from the images. Too strict: a class",
    "above a known class leaks only if its images show the known class. Too lax: two",
    "unrelated synsets may look alike (ImageNet's sunglass and sunglasses), an image",
    "may show a second object, and a name may have been read in another sense.",
)
"""Caveats of an audit by WordNet, as lines for a terminal."""


def caveats(lines: Sequence[str], taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return caveats about WordNet as caveats about a hierarchy."""
    return tuple(line.replace("WordNet", taxonomy.called) for line in lines)


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
class Audit(Tabular):
    """Every class of a list compared with known classes; ``str`` gives a table of 80 columns.

    Attributes
    ----------
    listed, against : names of the two lists.
    known : number of known classes.
    counts : numbers of ``classes``; of those ``equal``, ``below`` or ``above`` a known class (one with
        several relations counts for each) and ``leaking`` (any of these); of ``namesake`` classes among the
        others, and of those ``by_definition``; of classes ``without_synset`` and ``repeated`` entries.
    first_sense : names of several senses, read as the first.
    images : evidence about the images, if requested.
    not_judged, known_not_judged : ids of classes that are not compared, because they have no synset, or one
        that was proposed at low confidence and not confirmed.
    lists : both lists, for the page.
    """

    listed: str
    against: str
    known: int
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

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table, whose column types do not depend on the rows."""
        return pa.Table.from_pylist([dict(row) for row in self.rows()], schema=SCHEMA)

    def write(self, path: str | Path) -> None:
        """Write a row per class as ``.csv`` or ``.parquet``, or a page of the related classes as ``.html``.

        The page shows images of sources that have a root, two per class.

        Raises
        ------
        DataError : another ending. OutputError : the file cannot be written.
        SourceError : a root is absent, unreadable or of another dataset.
        """
        path = Path(path)
        check_output(path)
        if path.suffix == ".html":
            write_page(self, path)
        else:
            write_table_file(self.to_table(), path, metadata={"list": self.listed, "against": self.against})

    def as_dict(self) -> dict[str, Any]:
        """Return what ``audit --json`` prints."""
        return {
            "list": self.listed,
            "against": self.against,
            "known": self.known,
            "ok": self.ok,
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
    def heading(self) -> str:
        """Names and sizes of the two lists, in one line."""
        return f"{self.listed} against {self.against}: {self.counts['classes']:,} and {self.known:,} classes"

    def summary(self) -> list[tuple[str, str]]:
        """Return the figures as names and texts."""
        counts, total, noun = self.counts, self.counts["classes"], self.lists.taxonomy.noun
        meanings = {
            "equal": f"the {noun} of a known class",
            "below": "each image shows a known class",
            "above": "an image may show a known class",
            NAMESAKE: "the name or the definition of a known class",
        }
        figures = [(name, f"{share(counts[name], total)}: {text}") for name, text in meanings.items()]
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

    def table(self, *, width: int | None = TEXT_WIDTH, most: int | None = MAX_ROWS) -> list[str]:
        """Return a table of the leaking classes and one of the namesakes, with at most ``most`` rows each."""
        leaks, named_alike = (_table(classes, width, most) for classes in (self.leaking, self.namesakes))
        return [*leaks, *([""] if leaks and named_alike else []), *named_alike]

    def __str__(self) -> str:
        figures = text_table(("", ""), self.summary(), width=TEXT_WIDTH)[0][2:]
        return "\n".join([self.heading, *figures, "", *self.table()]).rstrip()


def check_output(path: Path) -> None:
    """Raise DataError for a file that `Audit.write` does not write, by its ending."""
    if path.suffix not in FILE_ENDINGS:
        raise DataError(
            f"its name must end in {' or '.join(FILE_ENDINGS)}",
            where=str(path),
            hint=f"{path.stem}.csv",
        )


def _table(classes: Iterable[AuditedClass], width: int | None, most: int | None) -> list[str]:
    ordered = sorted(classes, key=lambda item: (RELATIONS.index(str(item.relation)), item.edges))
    cells = [
        (item.id, item.name, str(item.relation), str(item.edges), str(item.other), str(item.other_name))
        for item in ordered
    ]
    columns = ("class", "name", "relation", "edges", "known", "its name")
    lines, _ = text_table(columns, cells[:most], right=("edges",), width=width) if cells else ([], [])
    if most is not None and len(cells) > most:
        lines.append(f"and {len(cells) - most:,} more")
    return lines


def examples(names: Sequence[str]) -> str:
    """Return the number of names, and the first five."""
    return f"{len(names):,} ({listed(names, 5)})"


def share(part: int, total: int) -> str:
    """Return a count and its percentage of a total."""
    return f"{part:,} ({part / total:.1%})"


COLUMNS = ("class", "relation", "known class", "edges", "path", "similarity to nearest", "kin")
IMAGES_PER_CLASS = 2
THUMBNAIL_SIZE = 96
"""Longer side of an image on the page, in pixels."""

Thumbnails = Mapping[str, list[str]]
"""Class id -> images as ``data:`` addresses."""


def write_page(report: Audit, path: Path) -> None:
    """Write the page of an audit, with the classes that have a relation."""
    lists, related = report.lists, report.related
    listed_images, unreadable = _thumbnails(lists.listed, {item.id for item in related}, lists)
    known_ids = {item.other for item in related if item.other is not None}
    known_images, unreadable_known = _thumbnails(lists.known, known_ids, lists)
    has_images = bool(listed_images or known_images)
    image_columns = ("images", "images of the known class") if has_images else ()
    rows = [_row(item, report, (listed_images, known_images) if has_images else ()) for item in related]
    notes = "Select a heading to sort. CSV and Parquet also have the classes without a relation."
    if unreadable := unreadable + unreadable_known:
        notes += f" {unreadable:,} images cannot be read."
    columns = [*COLUMNS, *image_columns]
    limits = " ".join(caveats(LIMITS, lists.taxonomy))
    write_table_page(path, report.heading, report.summary(), columns, rows, limits, notes, image_columns)


def write_table_page(
    path: Path,
    heading: str,
    figures: Sequence[tuple[str, str]],
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell | str | int | None]],
    limits: str,
    notes: str = "Select a heading to sort.",
    unsorted: Sequence[str] = (),
) -> None:
    """Write a page of figures, as names and texts, and of a table that a reader can sort."""
    cells = [[_cell(value) for value in row] for row in rows]
    values = {"columns": columns, "unsorted": unsorted, "rows": cells}
    pages.write_page(path, "audit", title=heading, figures=figures, notes=notes, limits=limits, **values)


def _cell(value: Cell | str | int | None) -> Cell:
    if isinstance(value, Cell):
        return value
    return Cell(f"{value:,}", value=f"{value}", number=True) if isinstance(value, int) else Cell(value or "")


class Cell(NamedTuple):
    """A cell of the table: its text with a gloss, the value to sort by, or images with their description."""

    text: str
    gloss: str = ""
    value: str = ""
    number: bool = False
    images: Sequence[str] = ()
    alt: str = ""


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
