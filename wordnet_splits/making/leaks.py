"""Leaks between the sets of a benchmark: equal classes, kin in WordNet, identical pictures, near-duplicates.

Between an ID or external group and any other, a class of equal synsets, ancestry or an identical picture is
an error, unless the recipe names it (or says it ``reproduces`` somebody's benchmark); so is a picture that an
ID group has in two splits or in two classes. Other leaks are recorded, with the recipe's reason if it names
them: ancestry between ID and near of one source, which is near by design; leaks between two OOD test groups;
far classes that the catalog contradicts, since they lie below a parent of a class of an ID source
(``sibling``) or have the synset of an excluded class.

No class lies below one that its catalog maps to a ``wider`` synset: *marbled newt*, mapped to newt, is not
above the other newts. Two such classes of one synset are equal only if they have the same name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import RecipeError
from wordnet_splits.catalog import CatalogClass, load_catalog
from wordnet_splits.making.membership import Membership
from wordnet_splits.recipe import Group, Recipe
from wordnet_splits.rules import Key
from wordnet_splits.rules.evidence import NAMED, join_names
from wordnet_splits.rules.relations import EQUAL, KnownClasses
from wordnet_splits.taxonomy import Taxonomy

EXAMPLES = 5
CLASS_KINDS = ("class", "ancestry", "sibling")
"""Kinds of leaks between classes, the closest kin first."""
PICTURE_KINDS = ("digest", "near-duplicate")
"""Kinds of leaks between pictures."""
TRAINING_ROLES = frozenset({"id", "external"})
KEPT_FIRST = ("id", "csid", "near", "far", "external")
"""Roles in the order in which ``drop_leaks`` keeps one of two classes that leak."""


@dataclass
class Leak:
    """Leak between two sets: ``pairs`` of image ids for kinds digest and near-duplicate, else of class ids.

    ``a`` and ``b`` are groups, or ``source:NAME`` for the classes of a source in no group. ``distances`` are
    those of the pairs of near-duplicates.
    """

    kind: str
    a: str
    b: str
    pairs: list[tuple[str, str]]
    severity: str = "recorded"
    reason: str = ""
    certain: bool = True
    distances: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Return the leak as in ``manifest.json``."""
        return {
            "kind": self.kind,
            "a": as_operand(self.a),
            "b": as_operand(self.b),
            "count": len(self.pairs),
            "examples": [[*pair, *distance] for pair, distance in self.examples()],
            "severity": self.severity,
            "reason": self.reason,
        }

    def line(self) -> str:
        """Return the leak as one line for a terminal."""
        remainder = f", and {len(self.pairs) - EXAMPLES:,} more" if len(self.pairs) > EXAMPLES else ""
        between = f"within {self.a}" if self.a == self.b else f"between {self.a} and {self.b}"
        return f"{self.kind} leak {between}: {self.shown()}{remainder}"

    def examples(self) -> Iterator[tuple[tuple[str, str], list[str]]]:
        """Yield the first pairs, each with a list of its distance, which is empty where there is none."""
        distances = [[distance] for distance in self.distances] or [[] for _ in self.pairs]
        return islice(zip(self.pairs, distances, strict=True), EXAMPLES)

    def shown(self) -> str:
        """Return the first pairs in words."""
        return ", ".join(
            (a if a == b else f"{a} and {b}") + "".join(f" (distance {bits})" for bits in distance if bits)
            for (a, b), distance in self.examples()
        )


@dataclass(frozen=True)
class ClassSet:
    """Classes to compare: those of a group, or those of a source in no group."""

    name: str
    role: str
    source: str
    members: Mapping[str, CatalogClass]
    """by class id"""

    @property
    def wnids(self) -> Iterator[tuple[str, str]]:
        """Yield (wnid, class id) pairs."""
        return ((wnid, c) for c, item in self.members.items() for wnid in item.wnids)


def class_sets(membership: Membership) -> list[ClassSet]:
    """Return the groups in file order, then the remaining classes of the sources of ID and far groups."""
    recipe = membership.recipe
    sets = [_class_set(g.name, g.role, g.source, membership.groups[g.name]) for g in recipe.group]
    for source in sorted({g.source for g in recipe.group if g.role in ("id", "far")}):
        grouped = {c for g in recipe.group if g.source == source for c in membership.groups[g.name]}
        left = [item.class_id for item in load_catalog(source) if item.class_id not in grouped]
        sets.append(_class_set(f"source:{source}", "excluded", source, left))
    return sets


def _class_set(name: str, role: str, source: str, classes: Iterable[str]) -> ClassSet:
    return ClassSet(name, role, source, {c: load_catalog(source)[c] for c in classes})


def class_leaks(membership: Membership, taxonomy: Taxonomy) -> list[Leak]:
    """Return the leaks of classes between every two sets, in the order of `class_sets`.

    Kind ``class`` is an equal class, ``ancestry`` one above the other, by `KnownClasses`; ``sibling`` a far
    class below a direct hypernym of a class of an ID source, paired with the class fewest edges away, once
    for each set. Shifted copies of ID classes are skipped: they have the leaks of the ID classes.
    """
    sets = [class_set for class_set in class_sets(membership) if class_set.role != "csid"]
    domain = {g.source for g in membership.recipe.groups_with_role("id")}
    above = {wnid: taxonomy.ancestors(wnid) for class_set in sets for wnid, _ in class_set.wnids}
    known = {class_set.name: KnownClasses(class_set.members, taxonomy) for class_set in sets}
    leaks = []
    for a, b in combinations(sets, 2):
        far, id_side = (b, a) if b.role == "far" else (a, b)
        from_rules = "excluded" not in (a.role, b.role)
        if not from_rules and far.role != "far":
            continue
        contradicts = far.role == "far" != id_side.role and id_side.source in domain
        equal, ancestry = _shared_classes(a, b, known[b.name])
        pairs_by_kind = {"class": equal}
        if from_rules or (contradicts and id_side.source != far.source):
            pairs_by_kind["ancestry"] = ancestry
            if contradicts:
                pairs = _siblings(far, id_side, above, taxonomy, {*equal, *ancestry})
                pairs_by_kind["sibling"] = pairs if far is a else sorted((y, x) for x, y in pairs)
        leaks += [Leak(kind, a.name, b.name, pairs) for kind, pairs in pairs_by_kind.items() if pairs]
    return leaks


def _shared_classes(
    a: ClassSet, b: ClassSet, known: KnownClasses[str]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return (equal, ancestry) class pairs of two sets, sorted; ``known`` are the classes of ``b``."""
    equal = {(c, c) for c in a.members.keys() & b.members.keys() if a.source == b.source}
    pairs = [(kin.relation, (c, kin.known)) for c, item in a.members.items() for kin in known.kin(item)]
    equal |= {pair for relation, pair in pairs if relation == EQUAL}
    return sorted(equal), sorted({pair for _, pair in pairs} - equal)


def _siblings(
    far: ClassSet,
    id_side: ClassSet,
    above: Mapping[str, Mapping[str, int]],
    taxonomy: Taxonomy,
    closer: Iterable[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Return (far class, nearest class of ``id_side`` with a parent above it) pairs, except ``closer`` kin.

    A far class mapped to a wider synset also lies below that synset.
    """
    children: dict[str, str] = {}  # a parent -> the first of its classes
    for wnid, c in id_side.wnids:
        for parent in taxonomy.parents(wnid):
            children[parent] = min(children.get(parent, c), c)
    related = {c for pair in closer for c in pair}
    siblings = []
    for c, item in far.members.items():
        steps = [
            (edges, children[up])
            for wnid in item.wnids
            for up, edges in above[wnid].items()
            if up in children and (edges or wnid not in item.covers)
        ]
        if steps and c not in related:
            siblings.append((c, min(steps)[1]))
    return sorted(siblings)


def digest_leaks(recipe: Recipe, tables: Sequence[pa.Table]) -> list[Leak]:
    """Return the identical pictures between groups, and within a group across splits or classes.

    One pair per shared digest and pair of groups, in time linear in the number of copies. A leak is not
    ``certain`` while a digest of either group is unknown.
    """
    holders: dict[bytes, list[Copy]] = defaultdict(list)
    shared = _repeated(table["digest"].drop_null() for table in tables)
    for table in tables if len(shared) else ():
        rows = table.filter(pc.is_in(table["digest"], shared))
        for *position, digest in _columns(rows, "group", "split", "image_id", "class_id", "digest"):
            holders[digest].append(Copy(*position))
    incomplete = {table["group"][0].as_py() for table in tables if table["digest"].null_count}
    order = {g.name: n for n, g in enumerate(recipe.group)}
    pairs_between: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for copies in holders.values():
        for groups, pair in _example_pairs(copies, order).items():
            pairs_between[groups].add(pair)
    return [
        Leak("digest", a, b, sorted(pairs), certain=not incomplete & {a, b})
        for (a, b), pairs in sorted(
            pairs_between.items(), key=lambda item: (order[item[0][0]], order[item[0][1]])
        )
    ]


class Copy(NamedTuple):
    """A copy of a picture."""

    group: str
    split: str
    image_id: str
    class_id: str


def _example_pairs(
    copies: Iterable[Copy], order: Mapping[str, int]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return a pair of images for every two groups that have a picture: the first image of each.

    Within a group: the first image, and the next one of another split or class.
    """
    first_copies: dict[str, Copy] = {}
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    for copy in sorted(copies):
        before = first_copies.setdefault(copy.group, copy)
        if (before.split, before.class_id) != (copy.split, copy.class_id):
            pairs.setdefault((copy.group, copy.group), (before.image_id, copy.image_id))
    for a, b in combinations(sorted(first_copies, key=order.__getitem__), 2):
        pairs[a, b] = first_copies[a].image_id, first_copies[b].image_id
    return pairs


def check_once(tables: Sequence[pa.Table], where: str) -> None:
    """Raise RecipeError if an image is in two splits or groups."""
    by_source: dict[str, list[pa.Table]] = defaultdict(list)
    for table in tables:
        if table.num_rows:
            by_source[table["source"][0].as_py()].append(table)
    for source, of_source in by_source.items():
        shared = _repeated(table["image_id"].unique() for table in of_source)
        places: dict[str, str] = {}
        for table in of_source if len(shared) else ():
            rows = table.filter(pc.is_in(table["image_id"], shared))
            for image_id, split, group in _columns(rows, "image_id", "split", "group"):
                position = f"{group} ({split})"
                before = places.setdefault(image_id, position)
                if before != position:
                    raise RecipeError(
                        f"image {image_id} of {source} is in {before} and in {position}",
                        where=where,
                        hint="let each image be taken once",
                    )


def _repeated(columns: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Return the values that occur more than once in the columns."""
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    if not chunks:
        return pa.array([])
    counts = pc.value_counts(pa.chunked_array(chunks))
    return counts.field("values").filter(pc.greater(counts.field("counts"), 1))


def _columns(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def drop_leaking(membership: Membership, leaks: Iterable[Leak], taxonomy: Taxonomy) -> None:
    """Remove the classes that leak from their groups, for ``drop_leaks``, and note the reasons.

    One of two equal or related classes of an ID or external group and any other is removed, also near classes
    above or below an ID class: the one whose role is later in `KEPT_FIRST`, or whose group is later. Leaks to
    ID are removed first, so that no class is removed for one that is itself removed.
    """
    groups = {g.name: g for g in membership.recipe.group}
    members = {class_set.name: class_set.members for class_set in class_sets(membership)}
    dropped: dict[str, dict[str, str]] = defaultdict(dict)
    pairs = []
    for leak in leaks:
        a, b = groups.get(leak.a), groups.get(leak.b)
        if a is None or b is None or leak.kind not in ("class", "ancestry") or not trains(a, b):
            continue
        rank = KEPT_FIRST.index(a.role), KEPT_FIRST.index(b.role)
        flip = rank[0] > rank[1]
        keeps, goes = (b, a) if flip else (a, b)
        pairs += [(min(rank), leak.kind, keeps, goes, *(pair[::-1] if flip else pair)) for pair in leak.pairs]
    for _, kind, keeps, goes, kept_id, dropped_id in sorted(pairs, key=lambda pair: pair[0]):
        if kept_id not in dropped[keeps.name]:
            relation = _relation(kind, members[goes.name][dropped_id], members[keeps.name][kept_id], taxonomy)
            name = load_catalog(keeps.source)[kept_id].name.replace("_", " ")
            role = "ID" if keeps.role == "id" else keeps.role
            dropped[goes.name].setdefault(dropped_id, f"it {relation} the {role} class {name}")
    for group in membership.recipe.group:
        of_group = dropped[group.name]
        membership.groups[group.name] = [c for c in membership.groups[group.name] if c not in of_group]
        for class_id, leaking in of_group.items():
            reason = f"not {group.name}: {leaking}, a leak, and the recipe says drop_leaks"
            membership.removed[group.source, class_id] = (group, reason)


def leak_evidence(membership: Membership, leaks: Iterable[Leak], taxonomy: Taxonomy) -> dict[Key, str]:
    """Return clauses about the leaks of each class, closest kin first, with the recipe's reasons.

    A sibling is mentioned in the evidence of the far class only.
    """
    sets = {class_set.name: class_set for class_set in class_sets(membership)}
    clauses: dict[Key, dict[tuple[str, str, str], list[tuple[ClassSet, str]]]]
    clauses = defaultdict(lambda: defaultdict(list))
    for leak in sorted(
        (k for k in leaks if k.kind in CLASS_KINDS), key=lambda leak: CLASS_KINDS.index(leak.kind)
    ):
        for name_a, name_b, swapped in ((leak.a, leak.b, False), (leak.b, leak.a, True)):
            class_set_a, class_set_b = sets[name_a], sets[name_b]
            if class_set_a.role == "excluded" or (leak.kind == "sibling" and class_set_a.role != "far"):
                continue
            for pair in leak.pairs:
                c, o = pair[::-1] if swapped else pair
                relation = _relation(leak.kind, class_set_a.members[c], class_set_b.members[o], taxonomy)
                clauses[class_set_a.source, c][leak.severity, relation, leak.reason].append((class_set_b, o))
    return {
        key: "; ".join(_clause(*clause_key, kin) for clause_key, kin in grouped.items())
        for key, grouped in clauses.items()
    }


def _clause(severity: str, relation: str, reason: str, kin: Sequence[tuple[ClassSet, str]]) -> str:
    kind = {"known": "known leak", "unnamed": "leak that the recipe does not name"}.get(severity, "leak")
    names = [_described(class_set, class_id) for class_set, class_id in kin[:NAMED]]
    remainder = [f"{len(kin) - NAMED:,} more"] if len(kin) > NAMED else []
    return f"{kind}: it {relation} {join_names([*names, *remainder])}" + (
        f" ({reason.rstrip('.')})" if reason else ""
    )


def _described(group: ClassSet, class_id: str) -> str:
    role = "ID" if group.role == "id" else group.role
    return f"the {role} class {load_catalog(group.source)[class_id].name.replace('_', ' ')}"


def _relation(kind: str, item: CatalogClass, related: CatalogClass, taxonomy: Taxonomy) -> str:
    if kind == "class":
        return "has the synset of"
    if kind == "sibling":
        return "lies below a parent of"
    kin = KnownClasses({related.class_id: related}, taxonomy).kin(item)
    return f"lies {kin[0].relation}"


def trains(a: Group, b: Group) -> bool:
    """Say whether one of two groups is used in training, so that their leaks matter."""
    return a.name != b.name and "csid" not in (a.role, b.role) and bool({a.role, b.role} & TRAINING_ROLES)


def inside_id(a: Group, b: Group) -> bool:
    """Say whether both are the same ID group, in which a picture has two splits or classes."""
    return a.name == b.name and a.role == "id"


def as_operand(name: str) -> str:
    """Return the name of a set in known leaks and in ``manifest.json``."""
    return name if name.startswith("source:") else f"group:{name}"
