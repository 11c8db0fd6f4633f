"""The classes of a benchmark: their groups, with the evidence, and the class table with distances to ID.

Groups take classes in file order; a class is offered again only to groups with ``reuse``. A class of no group
is ``excluded`` and keeps the evidence of every rule that refused it.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations

from wordnet_splits.base.errors import RecipeError, SplitsError
from wordnet_splits.benchmark.construct.leak_kinds import Leak, trains
from wordnet_splits.benchmark.hierarchies import require_placed
from wordnet_splits.benchmark.recipe import Group, Recipe
from wordnet_splits.benchmark.rules import Context, Key, Verdict, decide
from wordnet_splits.benchmark.rules.phrases import explain_refusals
from wordnet_splits.benchmark.rules.registry import NAMED, join_names
from wordnet_splits.benchmark.rules.relations import EQUAL, KnownClasses
from wordnet_splits.benchmark.rules.syntax import ids_listed, rule_text
from wordnet_splits.datasets.catalog import CatalogClass, load_catalog
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.catalog.inventory import find_list
from wordnet_splits.wordnet.taxonomy import Taxonomy


@dataclass
class Membership:
    """The classes of every group, with the verdicts of the rules.

    Attributes
    ----------
    groups : class ids of each group.
    verdicts : verdict on each accepted class, by (group, class).
    refusals : groups that refused a class, in file order, with their verdicts.
    removed : classes that ``drop_leaks`` removed, with their group and the reason.
    """

    recipe: Recipe
    groups: dict[str, list[str]] = field(default_factory=dict)
    verdicts: dict[tuple[str, Key], Verdict] = field(default_factory=dict)
    refusals: dict[Key, list[tuple[Group, Verdict]]] = field(default_factory=dict)
    removed: dict[Key, tuple[Group, str]] = field(default_factory=dict)
    context: Context | None = None

    @cached_property
    def rules(self) -> dict[str, str]:
        """The rule of each group in a single line."""
        return {g.name: rule_text(g.classes) for g in self.recipe.group}


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the garbage collector: a class table makes half a million objects, and no cycles.

    Afterwards the new objects count as old ones, since a collection of half a million young objects takes
    longer than the pause saves.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@without_collection()
def decide_membership(recipe: Recipe, seed: int, taxonomy: Taxonomy) -> Membership:
    """Decide the classes of each group."""
    membership = Membership(recipe)
    find_catalog = partial(load_catalog, sources=recipe.datasets)
    context = Context(
        taxonomy=taxonomy,
        hierarchy=recipe.edges,
        roles={g.name: g.role for g in recipe.group},
        draw=recipe.draw,
        seed=seed,
        catalog=find_catalog,
        published=partial(find_list, recipe_folder=recipe.folder),
    )
    membership.context = context
    taken_keys: set[Key] = set()
    for group in recipe.group:
        catalog = find_catalog(group.source)
        offered = [c.class_id for c in catalog if group.reuse or (group.source, c.class_id) not in taken_keys]
        try:
            verdicts = decide(group.classes, group.source, offered, context)
        except SplitsError as error:
            raise error.within(recipe.location(group.name)) from None
        accepted = [c for c in offered if verdicts[c].accepted]
        if not accepted:
            raise RecipeError(
                f"the rule takes no class at all: {explain_refusals(group.source, verdicts, context)}",
                where=recipe.location(group.name),
                hint="wider operands or bounds take more"
                if offered
                else "put the group before the one that takes its classes, or say reuse = true",
            )
        for class_id in sorted(ids_listed(group.classes) - {*offered}):
            if (group.source, class_id) in taken_keys:
                raise RecipeError(
                    f"class {class_id!r} is listed, but an earlier group has taken it",
                    where=recipe.location(group.name),
                    hint="take it out of the list, or say reuse = true",
                )
        membership.groups[group.name] = accepted
        for class_id, verdict in verdicts.items():
            key = (group.source, class_id)
            if verdict.accepted:
                membership.verdicts[group.name, key] = verdict
            else:
                membership.refusals.setdefault(key, []).append((group, verdict))
        context.groups[group.name] = [(group.source, c) for c in accepted]
        taken_keys.update(context.groups[group.name])
    return membership


CLASS_KINDS = ("class", "ancestry", "sibling")
"""Kinds of leaks between classes, the closest kin first."""


KEPT_FIRST = ("id", "csid", "near", "far", "external")
"""Roles by preference: ``drop_leaks`` keeps the class whose role comes first."""


Labels = Mapping[Key, int]
"""Label of each class that the classifier has an output for."""


def labels_of(membership: Membership) -> Labels:
    """Return the labels of the classes of labelled ID groups and of ``csid`` groups, see `number_classes`."""
    recipe = membership.recipe
    id_groups = [group for group in recipe.groups_with_role("id") if group.labelled]
    return number_classes(
        [(group.source, membership.groups[group.name]) for group in id_groups],
        [(group.source, membership.groups[group.name]) for group in recipe.groups_with_role("csid")],
        recipe.datasets,
    )


def number_classes(
    id_groups: Iterable[tuple[str, Iterable[str]]],
    csid_groups: Iterable[tuple[str, Iterable[str]]],
    datasets: Sources,
) -> Labels:
    """Return the label of every class of some groups, each a source and its classes.

    Labels are 0..K-1 in the publishers' order, groups in the given order. ``csid`` classes have the label of
    the ID class with the same synset.
    """
    labels: dict[Key, int] = {}
    by_wnid: dict[str, int] = {}
    for source, classes in id_groups:
        catalog = load_catalog(source, datasets)
        for class_id in sorted(classes, key=lambda c: catalog[c].index):
            labels.setdefault((source, class_id), len(labels))
            for wnid in catalog[class_id].wnids:
                by_wnid.setdefault(wnid, labels[source, class_id])
    for source, classes in csid_groups:
        catalog = load_catalog(source, datasets)
        for class_id in classes:
            id_labels = [by_wnid[w] for w in catalog[class_id].wnids if w in by_wnid]
            if id_labels:
                labels[source, class_id] = id_labels[0]
    return labels


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
    """Assign the classes of a recipe's sources to its groups; return them with their leaks."""
    membership = decide_membership(recipe, seed, taxonomy)
    require_placed(recipe, membership.groups)
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
        return f"same {taxonomy.noun} as"
    if kind == "sibling":
        return "below a parent of"
    kin = KnownClasses({related.class_id: related}, taxonomy).kin(item)
    return kin[0].relation
