"""Leaks between the sets of a benchmark: equal classes, kin in WordNet, identical images, near-duplicates.

Between an ID or external group and any other, a class of equal synsets, ancestry or an identical image is
an error, unless the recipe names it or has ``reproduces``. So is an image that an ID group has in two splits
or in two classes. Other leaks are recorded, with the recipe's reason if it names them: ancestry between ID
and near classes of the same source, which are near by design; leaks between two OOD test groups; far classes
that the catalog contradicts, because they are below a parent of a class of an ID source (``sibling``) or have
the synset of an excluded class.

A class that its catalog maps to a ``wider`` synset is above no other class: *marbled newt*, mapped to newt,
is not above the other newts. Two such classes with the same synset are equal only if they have the same name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

from wordnet_splits.base.errors import RecipeError
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.construct.classes import Membership, decide_membership
from wordnet_splits.benchmark.recipe import Group, KnownLeak, Recipe, recipe_names
from wordnet_splits.benchmark.rules import Key
from wordnet_splits.benchmark.rules.registry import NAMED, join_names
from wordnet_splits.benchmark.rules.relations import EQUAL, KnownClasses
from wordnet_splits.datasets.catalog import CatalogClass, load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy

EXAMPLES = 5
CLASS_KINDS = ("class", "ancestry", "sibling")
"""Kinds of leaks between classes, the closest kin first."""
PICTURE_KINDS = ("digest", "near-duplicate")
"""Kinds of leaks between images."""
TRAINING_ROLES = frozenset({"id", "external"})
KEPT_FIRST = ("id", "csid", "near", "far", "external")
"""Roles by preference: ``drop_leaks`` keeps the class whose role comes first."""


@dataclass
class Leak:
    """Leak between two sets: ``pairs`` of image ids for kinds digest and near-duplicate, else of class ids.

    ``a`` and ``b`` are groups, or ``source:NAME`` for the classes of a source in no group. ``distances`` are
    given for near-duplicates only.
    """

    kind: str
    a: str
    b: str
    pairs: list[tuple[str, str]]
    severity: str = "recorded"
    reason: str = ""
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
        """Return the leak as a line for a terminal."""
        remainder = f", and {len(self.pairs) - EXAMPLES:,} more" if len(self.pairs) > EXAMPLES else ""
        between = f"within {self.a}" if self.a == self.b else f"between {self.a} and {self.b}"
        return f"{self.kind} leak {between}: {self.shown()}{remainder}"

    def examples(self) -> Iterator[tuple[tuple[str, str], list[str]]]:
        """Yield the first pairs, each with a list of its distance, empty for exact leaks."""
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
    """Classes to compare: a group, or the classes of a source that are in no group."""

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
    catalogs = {source: load_catalog(source, recipe.datasets) for source in recipe.sources}

    def class_set(name: str, role: str, source: str, classes: Iterable[str]) -> ClassSet:
        return ClassSet(name, role, source, {c: catalogs[source][c] for c in classes})

    sets = [class_set(g.name, g.role, g.source, membership.groups[g.name]) for g in recipe.group]
    for source in sorted({g.source for g in recipe.group if g.role in ("id", "far")}):
        grouped = {c for g in recipe.group if g.source == source for c in membership.groups[g.name]}
        left = [item.class_id for item in catalogs[source] if item.class_id not in grouped]
        sets.append(class_set(f"source:{source}", "excluded", source, left))
    return sets


def assign_classes(recipe: Recipe, seed: int, taxonomy: Taxonomy) -> tuple[Membership, list[Leak]]:
    """Assign the classes of a recipe's sources to its groups; return them with their leaks.

    Raises
    ------
    RecipeError : a rule that cannot be satisfied.
    """
    membership = decide_membership(recipe, seed, taxonomy)
    leaks = class_leaks(membership, taxonomy)
    if recipe.drop_leaks:
        drop_leaking(membership, leaks, taxonomy)
        leaks = class_leaks(membership, taxonomy)
    return membership, leaks


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

    A far class mapped to a wider synset is also below that synset.
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


def drop_leaking(membership: Membership, leaks: Iterable[Leak], taxonomy: Taxonomy) -> None:
    """Remove the classes that leak from their groups, for ``drop_leaks``, and note the reasons.

    One of two equal or related classes of an ID or external group and any other is removed, also near classes
    above or below an ID class. The class whose role is later in `KEPT_FIRST`, or whose group is later, is
    removed. Leaks to ID are removed first, and a removed class causes no further removals.
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
            name = load_catalog(keeps.source, membership.recipe.datasets)[kept_id].name.replace("_", " ")
            role = "ID" if keeps.role == "id" else keeps.role
            dropped[goes.name].setdefault(dropped_id, f"{relation} the {role} class {name}")
    for group in membership.recipe.group:
        of_group = dropped[group.name]
        membership.groups[group.name] = [c for c in membership.groups[group.name] if c not in of_group]
        for class_id, leaking in of_group.items():
            reason = f"not {group.name}: removed as a leak ({leaking})"
            membership.removed[group.source, class_id] = (group, reason)


def set_severities(
    recipe: Recipe, leaks: Sequence[Leak], *, unknown_digests: Collection[str], strict: bool = True
) -> None:
    """Set each leak's severity and reason. Raises RecipeError for a leak that the recipe must name.

    Parameters
    ----------
    unknown_digests : groups with unknown digests, whose named leaks of images may not be found yet.
    strict : compare with the leaks that the recipe names. False for another draw, or one with images left
        out, which the recipe's author did not see: there an unnamed leak is only marked ``unnamed``. So is
        always an image that a shipped benchmark has twice in ID.
    """
    groups = {g.name: g for g in recipe.group}
    leaks_by_entry: dict[int, list[Leak]] = {n: [] for n in range(len(recipe.known_leak))}
    for leak in leaks:
        at = next((n for n, entry in enumerate(recipe.known_leak) if _orders(entry, leak, groups)), None)
        if at is not None:
            leaks_by_entry[at].append(leak)
            leak.severity, leak.reason = "known", recipe.known_leak[at].reason
        elif not _serious(groups, leak):
            continue
        elif recipe.reproduces:
            leak.severity, leak.reason = "known", "as in the benchmark reproduced"
        elif not strict or (leak.a == leak.b and recipe.name in recipe_names()):
            leak.severity = "unnamed"
        else:
            raise RecipeError(_unnamed(leak), where=recipe.name, hint=_remedy(recipe, leak))
    for n, matching in leaks_by_entry.items() if strict else ():
        _check_extent(recipe, recipe.known_leak[n], matching, groups, unknown_digests)


def _unnamed(leak: Leak) -> str:
    if leak.a == leak.b and leak.kind == "digest":
        subject = f"{len(leak.pairs):,} " + ("picture is" if len(leak.pairs) == 1 else "pictures are")
        return f"{subject} in two splits or classes of the ID group {leak.a!r}: {leak.shown()}"
    between = f"within group {leak.a!r}" if leak.a == leak.b else f"between groups {leak.a!r} and {leak.b!r}"
    return f"{counted(len(leak.pairs), f'{leak.kind} leak')} {between}: {leak.shown()}"


def _remedy(recipe: Recipe, leak: Leak) -> str:
    entry = f'kind = "{leak.kind}", a = "{as_operand(leak.a)}", b = "{as_operand(leak.b)}"'
    change = "remove the copies" if leak.kind in PICTURE_KINDS else "change the rule"
    drop = "" if recipe.drop_leaks else ", set drop_leaks = true,"  # it has already removed all that it can
    return f"{change}{drop} or name them in [[known_leak]]: {entry}, count = {len(leak.pairs)}, and a reason"


def _serious(groups: Mapping[str, Group], leak: Leak) -> bool:
    a, b = groups.get(leak.a), groups.get(leak.b)
    if a is None or b is None or leak.kind == "sibling":
        return False
    if inside_id(a, b):
        return leak.kind in PICTURE_KINDS
    if not trains(a, b):
        return False
    near_by_design = {a.role, b.role} == {"id", "near"} and a.source == b.source
    return not (leak.kind == "ancestry" and near_by_design)


def _covers(operand: str, name: str, groups: Mapping[str, Group]) -> bool:
    """Return whether an operand of a known leak means a set: by its name or by its source."""
    of_source = name in groups and operand == f"source:{groups[name].source}"
    return operand in (name, as_operand(name)) or of_source


def _orders(entry: KnownLeak, leak: Leak, groups: Mapping[str, Group]) -> list[bool]:
    """Return how an entry's ``a`` and ``b`` fit a leak: False in this order, True swapped."""
    ends = ((leak.a, leak.b, False), (leak.b, leak.a, True)) if entry.kind == leak.kind else ()
    return [s for a, b, s in ends if _covers(entry.a, a, groups) and _covers(entry.b, b, groups)]


def _check_extent(
    recipe: Recipe,
    entry: KnownLeak,
    leaks: Sequence[Leak],
    groups: Mapping[str, Group],
    unknown_digests: Collection[str],
) -> None:
    """Raise RecipeError if a known leak has other pairs, or another number, than were found.

    Fewer may be found while digests of the groups are unknown, and in a variant that drops leaks.
    """
    between = f"{entry.a} and {entry.b}"
    may_be_fewer = recipe.drop_leaks or (
        entry.kind in PICTURE_KINDS
        and any(_covers(o, name, groups) for o in (entry.a, entry.b) for name in unknown_digests)
    )
    if not leaks and not may_be_fewer:
        raise RecipeError(
            f"known_leak {entry.kind} between {between} matches nothing",
            where=recipe.name,
            hint="remove the entry",
        )
    pairs = {p[::-1] if _orders(entry, leak, groups)[0] else p for leak in leaks for p in leak.pairs}
    if entry.count is not None:
        if len(pairs) > entry.count or (len(pairs) < entry.count and not may_be_fewer):
            raise RecipeError(
                f"{counted(len(pairs), f'{entry.kind} leak')} between {between}, "
                f"the recipe names {entry.count}",
                where=recipe.name,
                hint="correct the count, or the rule",
            )
        return
    named_pairs = set(entry.classes or ())
    unnamed, idle = sorted(pairs - named_pairs), sorted(named_pairs - pairs)
    if unnamed or (idle and not may_be_fewer):
        reason = f"{unnamed[0]} is not named" if unnamed else f"{idle[0]} matches nothing"
        raise RecipeError(
            f"known_leak {entry.kind} between {between}: {reason}",
            where=recipe.name,
            hint="name exactly the leaks there are",
        )


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
    names = [
        f"the {'ID' if s.role == 'id' else s.role} class {s.members[class_id].name.replace('_', ' ')}"
        for s, class_id in kin[:NAMED]
    ]
    remainder = [f"{len(kin) - NAMED:,} more"] if len(kin) > NAMED else []
    return f"{kind}: {relation} {join_names([*names, *remainder])}" + (
        f" ({reason.rstrip('.')})" if reason else ""
    )


def _relation(kind: str, item: CatalogClass, related: CatalogClass, taxonomy: Taxonomy) -> str:
    if kind == "class":
        return "same synset as"
    if kind == "sibling":
        return "below a parent of"
    kin = KnownClasses({related.class_id: related}, taxonomy).kin(item)
    return kin[0].relation


def trains(a: Group, b: Group) -> bool:
    """Return whether either group is used in training, so that their leaks matter."""
    return a.name != b.name and "csid" not in (a.role, b.role) and bool({a.role, b.role} & TRAINING_ROLES)


def inside_id(a: Group, b: Group) -> bool:
    """Return whether both are the same ID group, so that an image has two splits or classes."""
    return a.name == b.name and a.role == "id"


def as_operand(name: str) -> str:
    """Return the name of a set in known leaks and in ``manifest.json``."""
    return name if name.startswith("source:") else f"group:{name}"
