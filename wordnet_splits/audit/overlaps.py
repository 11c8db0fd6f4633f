"""Audit a list of classes: which classes equal, are below or above, or share the name of, a known class.

A class *equals* a known class if both have the same synset (and, if the catalogs map both to something wider
than their names mean, the same name). It is *below* a known class that is one of its hypernyms: each of its
images shows the known class, a leak. It is *above* a known class that is one of its hyponyms: an image
leaks only if it shows that hyponym. Nothing is below a class whose catalog maps it to something wider than
its name. A class of none of these relations that has the name of a known class, or that WordNet defines by
one, is a *namesake*: WordNet has two synsets *red fox*, Vulpes vulpes and Vulpes fulva, neither above the
other, while ImageNet's images show one animal; *pullet*, a young hen, is below another synset *hen* than the
known class.

Two classes share a name if they share a lemma, compared as keywords are: case folded, hyphens as blanks. A
class mapped to something wider has its own name only. A class is defined by another if its definition names
the other as its kind and mentions or implies a sex or an age ("an adult female hog", "a domestic hen ready to
brood"), or if both definitions end in the same clause ("that carries passengers") and the class is below a
hypernym of the other class.

This is too strict for a wide class above a known one whose images show something else, and for words of
WordNet that are wider than the images of the dataset. It is too lax if WordNet has two synsets for classes
that look alike (ImageNet's sunglass and sunglasses are unrelated), if an image shows a second object, or if
a name was read in another sense. The report therefore has the nearness of every class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wordnet_splits.audit.class_list import (
    ClassList,
    ClassListLike,
    ListedClass,
    hierarchy_of_lists,
    is_group,
    load_two_class_lists,
)
from wordnet_splits.audit.images import note_images
from wordnet_splits.audit.report import LEAKS, NAMESAKE, Audit, AuditedClass, AuditedLists
from wordnet_splits.audit.thresholds import nearest_classes
from wordnet_splits.benchmark.manifest.loading import Check
from wordnet_splits.benchmark.resolve import declarations_of
from wordnet_splits.benchmark.rules.keywords import folded_name
from wordnet_splits.benchmark.rules.relations import Kin, KnownClasses
from wordnet_splits.datasets.catalog.declarations import Declaration, Sources
from wordnet_splits.datasets.sources.roots import Roots, declare_roots
from wordnet_splits.wordnet.similarity.measures import no_common_ancestor
from wordnet_splits.wordnet.taxonomy import Taxonomy

SEXES = frozenset({"male", "female"})
AGES = frozenset({"young", "immature", "baby", "infant", "newborn", "adult", "mature"})
CLAUSES = frozenset({"that", "which", "who", "whose"})
ENDS = CLAUSES.union(
    ["of", "with", "without", "in", "on", "at", "for", "from", "to", "by", "as", "like", "near"],
    ["not", "less", "and", "or", "used", "having", "usually", "especially", "ready", "when", "is"],
    ["are", "whole"],
)
"""Words that end the part of a definition that names the kind."""


@dataclass(frozen=True)
class Namesake:
    """A known class with the same name, or in WordNet's definition of a class (``by_definition``).

    ``path`` has the wnids of a shortest path from the class through a common ancestor to the known class.
    """

    known: str
    wnid: str
    known_wnid: str
    path: tuple[str, ...]
    by_definition: bool

    @property
    def edges(self) -> int:
        """Number of edges between the two."""
        return len(self.path) - 1


def namesakes(
    classes: Iterable[ListedClass], known: ClassList, taxonomy: Taxonomy
) -> dict[str, list[Namesake]]:
    """Return the namesakes of classes among the known classes, closest first; only for classes with some."""
    finder = _Finder(known, taxonomy)
    by_class = {item.id: finder.find(item) for item in classes if item.wnids}
    return {class_id: of_class for class_id, of_class in by_class.items() if of_class}


class _Finder:
    """Search for namesakes among known classes, by name and by definition."""

    def __init__(self, known: ClassList, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._named: dict[str, set[tuple[str, str]]] = {}
        self._clauses: dict[str, set[tuple[str, str]]] = {}
        self._sexed: set[tuple[str, str]] = set()
        for item in known.classes:
            for wnid in item.wnids:
                for name in _names(item, wnid, taxonomy):
                    self._named.setdefault(name, set()).add((item.id, wnid))
            for wnid in item.covers:
                definition = _Definition.of(wnid, taxonomy)
                if definition.clause:
                    self._clauses.setdefault(definition.clause, set()).add((item.id, wnid))
                if SEXES.intersection(definition.kind):
                    self._sexed.add((item.id, wnid))

    def find(self, item: ListedClass) -> list[Namesake]:
        by_name = {
            (known_id, wnid, known_wnid)
            for wnid in item.wnids
            for name in _names(item, wnid, self._taxonomy)
            for known_id, known_wnid in self._named.get(name, ())
        }
        by_definition = {
            (known_id, wnid, known_wnid)
            for wnid in item.covers
            for known_id, known_wnid in self._defining(wnid)
        } - by_name
        pairs = [(pair, False) for pair in by_name] + [(pair, True) for pair in by_definition]
        namesakes_of_class = [
            Namesake(known_id, wnid, known_wnid, _path(wnid, known_wnid, self._taxonomy), defined)
            for (known_id, wnid, known_wnid), defined in pairs
            if wnid != known_wnid
        ]
        return sorted(
            namesakes_of_class, key=lambda n: (n.by_definition, n.edges, n.known, n.wnid, n.known_wnid)
        )

    def _defining(self, wnid: str) -> set[tuple[str, str]]:
        """Return the known (class, wnid) pairs in a synset's definition."""
        definition = _Definition.of(wnid, self._taxonomy)
        phrases = ("_".join(definition.kind[n:]) for n in range(len(definition.kind)))
        named_pairs = {pair for phrase in phrases for pair in self._named.get(phrase, ())}
        if not (SEXES | AGES).intersection(definition.kind):
            named_pairs &= self._sexed  # a hen is female: "a domestic hen" is enough
        above = self._taxonomy.ancestors(wnid)
        alike = {
            pair
            for pair in self._clauses.get(definition.clause, ())
            if not above.keys().isdisjoint(self._taxonomy.parents(pair[1]))
        }
        return named_pairs | alike


@dataclass(frozen=True)
class _Definition:
    """The words of a definition that name the kind, and the relative clause that follows, "" if none does."""

    kind: tuple[str, ...]
    clause: str

    @classmethod
    def of(cls, wnid: str, taxonomy: Taxonomy) -> _Definition:
        words = re.findall(r"[a-z][a-z'-]*|[^\sa-z]", taxonomy.first_definition(wnid).casefold())
        end = next((n for n, word in enumerate(words) if word in ENDS or not word[0].isalpha()), len(words))
        rest = words[end:]
        return cls(tuple(words[:end]), " ".join(rest) if rest and rest[0] in CLAUSES else "")


def _names(item: ListedClass, wnid: str, taxonomy: Taxonomy) -> set[str]:
    names = taxonomy.lemmas(wnid) if wnid in item.covers else (item.name,)
    return {folded_name(name) for name in names}


def _path(a: str, b: str, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return a shortest path from ``a`` up to a common ancestor and down to ``b``."""
    up, down = taxonomy.ancestors(a), taxonomy.ancestors(b)
    shared = up.keys() & down.keys()
    if not shared:
        raise no_common_ancestor(taxonomy, a, b)
    top = min(shared, key=lambda wnid: (up[wnid] + down[wnid], wnid))
    return (*taxonomy.path_up(a, top), *taxonomy.path_up(b, top)[-2::-1])


def audit_classes(
    classes: ClassListLike,
    against: ClassListLike = "imagenet1k",
    *,
    of: str | None = None,
    column: str | None = None,
    images: bool = False,
    roots: Roots | None = None,
    taxonomy: Taxonomy | str | None = None,
    manifests: Path | None = None,
) -> Audit:
    """Compare each class of a list with known classes, by WordNet or the hierarchy of their benchmarks.

    Parameters
    ----------
    classes, against : a source (``ssb-hard``), a shipped list of images, a group of a frozen benchmark
        (``unknown-imagenet:food``, ``build/mine:food``), a file (text, TSV, CSV, JSON, or a catalog that
        `make_catalog` wrote, with the synsets confirmed in it), or the entries themselves.
    of : source of the class ids, names and indices in files; by default they are wnids and nouns.
    column : column of a table, or key of a JSON object, that has the classes.
    images : add leaks by digests of images, and the judgements of NINCO's authors.
    roots : folder of each source, to declare users' datasets; the page of `Audit.write` shows its images.
    taxonomy : default that of the lists' benchmarks and datasets, else the embedded WordNet 3.0.
    manifests : folder of manifests, else the usual ones.

    Raises
    ------
    UnknownNameError : the list or the class of an entry does not exist; similar names are suggested.
    DataError : a file without a list of classes, known classes without any synset, or two hierarchies.
    TaxonomyError : a class and a known one have no common ancestor in a taxonomy of several roots.

    Examples
    --------
    >>> report = audit_classes(["n02085936", "dog", "axolotl"])
    >>> [(item.id, item.relation, item.other_name) for item in report.leaking]
    [('n02085936', 'equal', 'Maltese dog'), ('dog', 'above', 'dalmatian'), ('axolotl', 'equal', 'axolotl')]
    """
    declarations = declarations_of_lists(classes, against, manifests=manifests)
    declare_roots(roots, Sources.of(declarations))
    taxonomy = hierarchy_of_lists(classes, against, of=of, taxonomy=taxonomy, manifests=manifests)
    check: Check = "all" if images else "classes"
    every_listed, every_known = load_two_class_lists(
        classes, against, taxonomy, of=of, column=column, manifests=manifests, check=check
    )
    listed, known_classes = every_listed.confirmed(), every_known.as_known(taxonomy)
    known = KnownClasses(known_classes.by_id, taxonomy)
    kin = {item.id: known.kin(item) for item in listed.classes}
    namesakes_by_class = namesakes(
        (item for item in listed.classes if not kin[item.id]), known_classes, taxonomy
    )
    nearest = nearest_classes("mean", listed.classes, known_classes, taxonomy)
    distances = nearest_classes("distance", listed.classes, known_classes, taxonomy)
    names = known_classes.names
    rows = []
    for item in listed.classes:
        row = _row(item, kin[item.id], namesakes_by_class.get(item.id, ()), names, taxonomy)
        if item.wnids:
            near, mean = nearest[item.id]
            row = replace(row, nearest=near, mean=mean, distance=int(distances[item.id][1]))
        rows.append(row)
    counts = {
        "classes": len(rows),
        **{name: sum(any(k.relation == name for k in kin[c.id]) for c in listed.classes) for name in LEAKS},
        "leaking": sum(row.relation in LEAKS for row in rows),
        "namesake": sum(row.relation == NAMESAKE for row in rows),
        "by_definition": sum(row.by_definition for row in rows),
        "without_synset": len(every_listed.without_synset),
        "repeated": listed.repeated,
    }
    relations = {row.id: row.relation for row in rows}
    return Audit(
        listed.name,
        known_classes.name,
        len(known_classes.classes),
        tuple(rows),
        counts,
        (*listed.first_sense, *known_classes.first_sense),
        note_images(listed, known_classes, relations) if images else None,
        listed.without_synset,
        known_classes.without_synset,
        lists=AuditedLists(every_listed, every_known, taxonomy, roots or {}, declarations),
    )


def declarations_of_lists(*lists: ClassListLike, manifests: Path | None = None) -> dict[str, Declaration]:
    """Return the datasets that the benchmarks of lists ``BENCHMARK:GROUP`` carry."""
    names = (str(classes) for classes in lists if isinstance(classes, str | Path))
    benchmarks = (name.rpartition(":")[0] for name in names if is_group(name, manifests))
    return declarations_of(*benchmarks, manifests=manifests)


def _row(
    item: ListedClass,
    kin: Sequence[Kin[str]],
    namesakes_of_class: Sequence[Namesake],
    names: Mapping[str, str],
    taxonomy: Taxonomy,
) -> AuditedClass:
    path: tuple[str, ...] = ()
    relation, known_id, by_definition = None, None, False
    if kin:
        closest = kin[0]
        relation, known_id, path = closest.relation, closest.known, closest.path(taxonomy)
    elif namesakes_of_class:
        namesake = namesakes_of_class[0]
        relation, known_id, path = NAMESAKE, namesake.known, namesake.path
        by_definition = namesake.by_definition
    wnids = path[:1] or item.wnids[:1]
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
        gloss=taxonomy.first_definition(wnids[0]) if wnids else "",
        other_gloss=taxonomy.first_definition(path[-1]) if path else "",
        nearest=None,
        mean=None,
        distance=None,
    )
