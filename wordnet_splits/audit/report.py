"""The report of an audit: the relation of every class of a list to known classes, as table and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.audit.class_list import ClassList
from wordnet_splits.audit.images import ImageNotes
from wordnet_splits.audit.page import write_page
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import listed
from wordnet_splits.base.parquet import schema_of, write_table_file
from wordnet_splits.base.tabular import Tabular, text_table
from wordnet_splits.benchmark.rules.relations import KINDS
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.wordnet.taxonomy import Taxonomy

LEAKS = KINDS
"""Relations in WordNet's graph that leak, the closest first."""
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
    "This is WordNet's word, not that of the pictures. Too strict: a class above a",
    "known one leaks only if its pictures show the known class. Too lax: two synsets",
    "may look alike (ImageNet's sunglass and sunglasses are no kin), a picture may",
    "show a second thing, and a name may have been read in another sense.",
)
"""Caveats of an audit, as lines for a terminal."""


@dataclass(frozen=True)
class AuditedClass:
    """A class, its closest relation to a known class, and the most similar known class.

    Attributes
    ----------
    relation : equal, below, above, namesake or None.
    other, other_name : the known class of that relation.
    edges, path : number of edges to it, and the wnids on the way (for a namesake through a common ancestor).
    kin : number of known classes that the class equals, is below or is above.
    by_definition : whether a namesake has another name, but WordNet's definition leads to the known class.
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
    """The two lists of an audit, the taxonomy, and the roots and declarations of sources for pictures."""

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
    images : evidence about the pictures, if requested.
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
    lists: AuditedLists | None = field(default=None, repr=False, compare=False)

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

        The page shows pictures of sources that have a root, two per class.

        Raises
        ------
        DataError : another ending. OutputError : the file cannot be written.
        SourceError : a root is absent, unreadable or of another dataset.
        """
        path = Path(path)
        check_output(path)
        if path.suffix == ".html":
            write_page(self, path, " ".join(LIMITS))
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
        total, counts = self.counts["classes"], self.counts
        leaking = counts["leaking"]
        figures = [
            ("equal", f"{share(counts['equal'], total)}: the synset of a known class"),
            ("below", f"{share(counts['below'], total)}: each picture shows a known class"),
            ("above", f"{share(counts['above'], total)}: a picture may show a known class"),
            ("namesake", f"{share(counts['namesake'], total)}: the name or the definition of a known class"),
            (
                "none",
                f"{total - leaking - counts['namesake'] - len(self.not_judged):,} are none of these; a clean "
                f"version drops {leaking:,}",
            ),
        ]
        if self.nearness:
            spread = {
                name: "  ".join(f"{v:.3g}" for v in ends.values()) for name, ends in self.nearness.items()
            }
            figures.append(
                ("edges", f"{spread['distance']} to the closest known class (min, quartiles, max)")
            )
            figures.append(("mean", f"{spread['mean']} similarity to the nearest"))
        if self.not_judged:
            figures.append(("not judged", f"{examples(self.not_judged)}: no synset that is confirmed"))
        if self.known_not_judged:
            unconfirmed = f"{examples(self.known_not_judged)} have no confirmed synset: compared with nothing"
            figures.append(("known", unconfirmed))
        if counts["repeated"]:
            figures.append(("repeated", f"{counts['repeated']:,} entries, counted once"))
        if self.first_sense:
            figures.append(
                ("senses", f"names of several senses, read as the first: {examples(self.first_sense)}")
            )
        if self.images is not None:
            figures += self.images.summary()
        return figures

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
            f"an audit is written as {', '.join(FILE_ENDINGS)}", where=str(path), hint=f"{path.stem}.csv"
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
