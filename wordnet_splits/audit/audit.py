"""A list of classes against the classes that a model knows: which of them are known, or kin of a known one.

WordNet's word for it is ancestry: a class *equals* a known one where both have the same synset (and, where
the catalogs map both to something wider than their names mean, the same name), lies *below*
one where that is among its hypernyms (each picture of it shows the known class: a leak), or *above* one (a
picture of it may show the known class, and does only if it was drawn from below). Nothing lies below a class
whose catalog maps it to something wider than its name means. A class of none of these that bears the name of
a known class, or that WordNet defines by one, is its *namesake* (`wordnet_splits.audit.namesakes`).

That is too strict where a class above is wide and its pictures show something else, and where a word of
WordNet is wider than the pictures that a dataset keeps under it; and too lax where WordNet has two synsets
for what pictures cannot tell apart (ImageNet's sunglass and sunglasses are no kin), where a picture shows a
second thing, and where a name of several senses was read as the wrong one. Hence the nearness of every class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordnet_splits.audit.class_list import ClassList, ListedClass, load_class_list
from wordnet_splits.audit.images import ImageNotes, note_images
from wordnet_splits.audit.namesakes import Namesake, namesakes
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.tabular import Tabular, text_table
from wordnet_splits.manifest.reading import Check
from wordnet_splits.rules.keywords import are_same_class
from wordnet_splits.similarity import similarity
from wordnet_splits.taxonomy import Taxonomy, load

LEAKS = ("equal", "below", "above")
"""Relations in WordNet's graph, the closest first."""
NAMESAKE = "namesake"
RELATIONS = (*LEAKS, NAMESAKE)
WIDTH = 80
SHOWN = 20
LIMITS = (
    "This is WordNet's word, not that of the pictures. Too strict: a class above a",
    "known one leaks only if its pictures show the known class. Too lax: two synsets",
    "may look alike (ImageNet's sunglass and sunglasses are no kin), a picture may",
    "show a second thing, and a name may have been read in another sense.",
)
"""What to bear in mind, as lines for a terminal."""

Given = str | Path | Iterable[str | int]


@dataclass(frozen=True)
class AuditedClass:
    """A class, its closest relation to a known class, and the known class that it is most similar to.

    ``relation`` is equal, below, above, namesake or None; ``other`` the known class, ``path`` the wnids from
    the class to it (of a namesake up to a common ancestor and down again) and ``edges`` between them, ``kin``
    how many known classes there are it equals, lies below or above. ``by_definition`` says of a namesake that
    it bears another name, and that WordNet's definition of it leads to the known one.
    ``nearest`` has the greatest ``mean`` similarity, ``distance`` is in edges to the closest known class;
    None where there is no synset.
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
class Audit(Tabular):
    """Every class of a list against known ones; prints itself as a table of 80 columns.

    ``counts`` are of ``classes`` in all, of those ``equal``, ``below`` or ``above`` a known class (one that
    is several counts as each), of ``leaking`` ones (any of these), of those that are not leaking but a
    ``namesake``, and of the latter those that are ``by_definition``, of ``without_synset`` and ``repeated``
    entries.
    ``first_sense`` are the names of several senses that were read as the first; ``images`` what is known of
    the pictures, where that was asked for. ``not_judged`` are the ids of classes without a synset, or whose
    synset was proposed at low confidence and never confirmed: they are compared with nothing, and not clean.
    ``known_not_judged`` are such known classes: nothing is compared with them.
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

    @property
    def ok(self) -> bool:
        """Say whether no class equals, lies below or lies above a known one, or is a namesake of one."""
        return not self.related

    @property
    def related(self) -> tuple[AuditedClass, ...]:
        """Return the classes of any relation, in the list's order."""
        return tuple(item for item in self.classes if item.relation is not None)

    @property
    def leaking(self) -> tuple[AuditedClass, ...]:
        """Return the classes that equal, lie below or lie above a known one, in the list's order."""
        return tuple(item for item in self.classes if item.relation in LEAKS)

    @property
    def namesakes(self) -> tuple[AuditedClass, ...]:
        """Return the classes that are namesakes of known ones, in the list's order."""
        return tuple(item for item in self.classes if item.relation == NAMESAKE)

    @property
    def drops(self) -> tuple[str, ...]:
        """Return what a clean version leaves out: every leaking class, as ``drop_leaks`` does."""
        return tuple(item.id for item in self.leaking)

    @property
    def nearness(self) -> dict[str, dict[str, float]]:
        """Return min, quartiles (linear) and max over the classes, of ``mean`` and ``distance``."""
        quartiles = {}
        for measure in ("mean", "distance"):
            values = [v for item in self.classes if (v := getattr(item, measure)) is not None]
            if values:
                ends = np.quantile(np.array(values, np.float64), (0, 0.25, 0.5, 0.75, 1)).tolist()
                quartiles[measure] = dict(zip(("min", "q1", "median", "q3", "max"), ends, strict=True))
        return quartiles

    @property
    def edges(self) -> dict[int, int]:
        """Return how many classes lie at each distance from the closest known class, in edges."""
        values = [item.distance for item in self.classes if item.distance is not None]
        return {edges: values.count(edges) for edges in sorted(set(values))}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the fields of each class, the path as one text."""
        return [{**asdict(item), "path": " ".join(item.path)} for item in self.classes]

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
        """Return in a line what was compared with what."""
        return f"{self.listed} against {self.against}: {self.counts['classes']:,} and {self.known:,} classes"

    def summary(self) -> list[tuple[str, str]]:
        """Return the figures as names and texts."""
        total, counts = self.counts["classes"], self.counts
        leaking = counts["leaking"]
        figures = [
            ("equal", f"{_share(counts['equal'], total)}: the synset of a known class"),
            ("below", f"{_share(counts['below'], total)}: each picture shows a known class"),
            ("above", f"{_share(counts['above'], total)}: a picture may show a known class"),
            ("namesake", f"{_share(counts['namesake'], total)}: the name or the definition of a known class"),
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
            figures.append(("not judged", f"{_some(self.not_judged)}: no synset that is confirmed"))
        if self.known_not_judged:
            figures.append(
                ("known", f"{_some(self.known_not_judged)} have no confirmed synset: compared with nothing")
            )
        if counts["repeated"]:
            figures.append(("repeated", f"{counts['repeated']:,} entries, counted once"))
        if self.first_sense:
            figures.append(
                ("senses", f"names of several senses, read as the first: {_some(self.first_sense)}")
            )
        if self.images is not None:
            figures += self.images.summary()
        return figures

    def table(self, *, width: int | None = WIDTH, most: int | None = SHOWN) -> list[str]:
        """Return the leaking classes as lines, the closest first, then the namesakes; ``most`` of each."""
        leaks, named_alike = (_table(classes, width, most) for classes in (self.leaking, self.namesakes))
        return [*leaks, *([""] if leaks and named_alike else []), *named_alike]

    def __str__(self) -> str:
        figures = text_table(("", ""), self.summary(), width=WIDTH)[0][2:]
        return "\n".join([self.heading, *figures, "", *self.table()]).rstrip()


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


def _some(names: Sequence[str]) -> str:
    return f"{len(names):,} ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"


def _share(part: int, total: int) -> str:
    return f"{part:,} ({part / total:.1%})"


def audit_classes(
    classes: Given,
    against: Given = "imagenet1k",
    *,
    of: str | None = None,
    column: str | None = None,
    images: bool = False,
    taxonomy: Taxonomy | None = None,
    manifests: Path | None = None,
) -> Audit:
    """Return how each class of a list stands to known classes, by WordNet.

    Parameters
    ----------
    classes, against : a source (``ssb-hard``), a shipped list of images, a group of a frozen benchmark
        (``unknown-imagenet:food``), a file (text, TSV, CSV, JSON), or the entries themselves.
    of : the source whose class ids, names and indices the entries of files are; else wnids and nouns.
    column : the column of a table, or the key of a JSON object, that holds the classes.
    images : also say what digests, and NINCO's authors, who looked, say of the classes' pictures.
    taxonomy : default the embedded WordNet 3.0. manifests : folder of manifests, else the usual ones.

    Raises
    ------
    UnknownNameError : no such list, or entries that name no class; near names are offered.
    DataError : a file that holds no list of classes, or known classes without any synset.
    TaxonomyError : a class and a known one have no common ancestor in a taxonomy of several roots.

    Examples
    --------
    >>> found = audit(["n02085936", "dog", "axolotl"])
    >>> [(one.id, one.relation, one.other_name) for one in found.leaking]
    [('n02085936', 'equal', 'Maltese dog'), ('dog', 'above', 'dalmatian'), ('axolotl', 'equal', 'axolotl')]
    """
    taxonomy = taxonomy or load()
    check: Check = "all" if images else "classes"
    every_listed, every_known = (
        load_class_list(names, taxonomy, of=of, column=column, manifests=manifests, check=check)
        for names in (classes, against)
    )
    listed, known_classes = every_listed.confirmed(), every_known.confirmed()
    if not any(item.wnids for item in known_classes.classes):
        raise DataError(
            "no class of it has a synset", where=known_classes.name, hint="give --against another list"
        )
    kin = _kin(listed, known_classes, taxonomy)
    namesakes_by_class = namesakes(
        (item for item in listed.classes if not kin[item.id]), known_classes, taxonomy
    )
    nearest = _nearest(listed, known_classes, taxonomy)
    names = known_classes.names
    rows = tuple(
        _row(item, kin[item.id], namesakes_by_class.get(item.id, ()), nearest.get(item.id), names, taxonomy)
        for item in listed.classes
    )
    counts = {
        "classes": len(rows),
        **{name: sum(any(k.relation == name for k in kin[c.id]) for c in listed.classes) for name in LEAKS},
        "leaking": sum(row.relation in LEAKS for row in rows),
        "namesake": sum(row.relation == NAMESAKE for row in rows),
        "by_definition": sum(row.by_definition for row in rows),
        "without_synset": sum(not item.wnids for item in every_listed.classes),
        "repeated": listed.repeated,
    }
    relations = {row.id: row.relation for row in rows}
    return Audit(
        listed.name,
        known_classes.name,
        len(known_classes.classes),
        rows,
        counts,
        (*listed.first_sense, *known_classes.first_sense),
        note_images(listed, known_classes, relations) if images else None,
        _not_judged(listed),
        _not_judged(known_classes),
    )


def _not_judged(classes: ClassList) -> tuple[str, ...]:
    return tuple(item.id for item in classes.classes if not item.wnids)


@dataclass(frozen=True)
class _Kin:
    edges: int
    relation: str
    known: str
    wnid: str
    known_wnid: str

    @property
    def order(self) -> tuple[int, int, str, str]:
        return self.edges, LEAKS.index(self.relation), self.known, self.wnid


def _kin(listed: ClassList, known_classes: ClassList, taxonomy: Taxonomy) -> dict[str, list[_Kin]]:
    """Return of each class all known classes that it equals, lies below or lies above."""
    kin: dict[str, list[_Kin]] = {item.id: [] for item in listed.classes}
    listed_by_id, known_by_id = ({c.id: c for c in classes.classes} for classes in (listed, known_classes))
    listed_by_wnid, known_by_wnid = (
        _holders((c.id, c.wnids) for c in classes.classes) for classes in (listed, known_classes)
    )
    listed_by_cover, known_by_cover = (
        _holders((c.id, c.covers) for c in classes.classes) for classes in (listed, known_classes)
    )
    for wnid, class_ids in listed_by_wnid.items():
        for up, edges in taxonomy.ancestors(wnid).items():
            relation, known_ids = ("below", known_by_cover) if edges else ("equal", known_by_wnid)
            for class_id in class_ids:
                kin[class_id] += [
                    _Kin(edges, relation, known_id, wnid, up)
                    for known_id in known_ids.get(up, ())
                    if edges or are_same_class(listed_by_id[class_id], known_by_id[known_id])
                ]
    for wnid, known_of_wnid in known_by_wnid.items():
        for up, edges in taxonomy.ancestors(wnid).items():
            for class_id in listed_by_cover.get(up, ()) if edges else ():
                kin[class_id] += [_Kin(edges, "above", k, up, wnid) for k in known_of_wnid]
    return kin


def _holders(classes: Iterable[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Return wnid -> the ids of its classes, of (id, wnids) pairs."""
    holders: dict[str, list[str]] = {}
    for class_id, wnids in classes:
        for wnid in wnids:
            holders.setdefault(wnid, []).append(class_id)
    return holders


def _nearest(
    listed: ClassList, known_classes: ClassList, taxonomy: Taxonomy
) -> dict[str, tuple[str, float, int]]:
    """Return of each class with a synset the most similar known class, how similar, and the fewest edges."""
    pairs = sorted((item.id, wnid) for item in known_classes.classes for wnid in item.wnids)
    columns = [wnid for _, wnid in pairs]
    wnids = sorted({wnid for item in listed.classes for wnid in item.wnids})
    best: dict[str, tuple[float, int, int]] = {}  # wnid -> mean, the first column that has it, edges
    means = similarity.similarity_blocks("mean", wnids, columns, taxonomy)
    for (rows, block), (_, edges) in zip(
        means, similarity.similarity_blocks("distance", wnids, columns, taxonomy), strict=True
    ):
        at = block.argmax(axis=1)
        values = zip(block.max(axis=1).tolist(), at.tolist(), edges.min(axis=1).tolist(), strict=True)
        best |= dict(zip(wnids[rows], values, strict=True))
    nearest_by_id: dict[str, tuple[str, float, int]] = {}
    for item in listed.classes:
        if item.wnids:
            mean, at, _ = max((best[w] for w in item.wnids), key=lambda b: (b[0], -b[1]))
            nearest_by_id[item.id] = pairs[at][0], mean, min(best[w][2] for w in item.wnids)
    return nearest_by_id


def _row(
    item: ListedClass,
    kin: Sequence[_Kin],
    namesakes_of_class: Sequence[Namesake],
    nearest: tuple[str, float, int] | None,
    names: Mapping[str, str],
    taxonomy: Taxonomy,
) -> AuditedClass:
    near, mean, distance = nearest or (None, None, None)
    path: tuple[str, ...] = ()
    relation, known_id, by_definition = None, None, False
    if kin:
        closest = min(kin, key=lambda k: k.order)
        relation, known_id = closest.relation, closest.known
        ends = (closest.wnid, closest.known_wnid)
        path = taxonomy.path_up(*ends) if relation != "above" else taxonomy.path_up(*ends[::-1])[::-1]
    elif namesakes_of_class:
        namesake = namesakes_of_class[0]
        relation, known_id, path, by_definition = (
            NAMESAKE,
            namesake.known,
            namesake.path,
            namesake.by_definition,
        )
    meant = path[:1] or item.wnids[:1]
    return AuditedClass(
        id=item.id,
        name=item.name,
        relation=relation,
        other=known_id,
        other_name=None if known_id is None else names[known_id],
        edges=len(path) - 1 if path else None,
        path=path,
        kin=len({k.known for k in kin}),
        by_definition=by_definition,
        gloss=taxonomy.first_definition(meant[0]) if meant else "",
        other_gloss=taxonomy.first_definition(path[-1]) if path else "",
        nearest=near,
        mean=mean,
        distance=distance,
    )
