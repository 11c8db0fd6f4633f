"""Leaks between the sets of a benchmark, and the removal of images that leak.

A leak is a pair of equal or related classes (`wordnet_splits.benchmark.construct.classes` finds them), of
identical images (of one digest), or of near-duplicates (in a table that the recipe names). Between an ID or
external group and any other, a leak is an error unless the recipe names it or has ``reproduces``. So is an
image that an ID group has in two splits or classes. Other leaks are recorded: ancestry between ID and near
classes of the same source, which are near by design; leaks between two OOD test groups; far classes that the
catalog contradicts, because they are below a parent of a class of an ID source (``sibling``) or have the
synset of an excluded class.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import RecipeError
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.construct.selection import Selection, read_table
from wordnet_splits.benchmark.recipe import Group, KnownLeak, Recipe, recipe_names
from wordnet_splits.datasets.catalog.image_pairs import NO_DUPLICATE

EXAMPLES = 5
IMAGE_KINDS = ("digest", "near-duplicate")
"""Kinds of leaks between images."""
TRAINING_ROLES = frozenset({"id", "external"})
ImageKey = tuple[str, str]
"""Source and image id."""
Distances = Mapping[tuple[ImageKey, ImageKey], str]
"""The distance of each pair of near-duplicates, as in the table."""


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
            raise _unnamed_error(recipe, leak)
    for n, matching in leaks_by_entry.items() if strict else ():
        _check_extent(recipe, recipe.known_leak[n], matching, groups, unknown_digests)


def _unnamed_error(recipe: Recipe, leak: Leak) -> RecipeError:
    count, a, b = len(leak.pairs), leak.a, leak.b
    where = f"between groups {a!r} and {b!r}" if a != b else f"within group {a!r}"
    subject = f"{counted(count, f'{leak.kind} leak')} {where}"
    if a == b and leak.kind == "digest":
        verb = "is" if count == 1 else "are"
        subject = f"{counted(count, 'image')} {verb} in two splits or classes of the ID group {a!r}"
    entry = f'kind = "{leak.kind}", a = "{as_operand(a)}", b = "{as_operand(b)}", count = {count}'
    change = "remove the copies" if leak.kind in IMAGE_KINDS else "change the rule"
    drop = "" if recipe.drop_leaks else ", set drop_leaks = true,"  # it has already removed all that it can
    hint = f"{change}{drop} or name them in [[known_leak]]: {entry}, and a reason"
    return RecipeError(f"{subject}: {leak.shown()}", where=recipe.name, hint=hint)


def _serious(groups: Mapping[str, Group], leak: Leak) -> bool:
    a, b = groups.get(leak.a), groups.get(leak.b)
    if a is None or b is None or leak.kind == "sibling":
        return False
    if a.name == b.name and a.role == "id":  # an image in two splits or classes
        return leak.kind in IMAGE_KINDS
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
    may_be_fewer = recipe.drop_leaks or (
        entry.kind in IMAGE_KINDS
        and any(_covers(o, name, groups) for o in (entry.a, entry.b) for name in unknown_digests)
    )
    pairs = {p[::-1] if _orders(entry, leak, groups)[0] else p for leak in leaks for p in leak.pairs}
    named_pairs = set(entry.classes or ())
    unnamed, idle = sorted(pairs - named_pairs), sorted(named_pairs - pairs)
    problem = None
    if not leaks:
        problem = None if may_be_fewer else "matches nothing"
    elif entry.count is not None:
        if len(pairs) > entry.count or (len(pairs) < entry.count and not may_be_fewer):
            problem = f"the recipe names {entry.count:,}, found {counted(len(pairs), 'pair')}"
    elif unnamed or (idle and not may_be_fewer):
        problem = f"{unnamed[0]} is not named" if unnamed else f"{idle[0]} matches nothing"
    if problem is not None:
        message = f"known_leak {entry.kind} between {entry.a} and {entry.b}: {problem}"
        raise RecipeError(message, where=recipe.name, hint="name exactly the leaks that there are")


def trains(a: Group, b: Group) -> bool:
    """Return whether either group is used in training, so that their leaks matter."""
    return a.name != b.name and "csid" not in (a.role, b.role) and bool({a.role, b.role} & TRAINING_ROLES)


def as_operand(name: str) -> str:
    """Return the name of a set in known leaks and in ``manifest.json``."""
    return name if name.startswith("source:") else f"group:{name}"


def near_duplicate_pairs(recipe: Recipe) -> Distances:
    """Return the pairs of a recipe's ``near_duplicates`` except those judged different."""
    name = recipe.near_duplicates
    if name is None:
        return {}
    where = f"{recipe.name}: near_duplicates"
    rows = [row for row in read_table(recipe, name, where) if row["image_id_b"]]
    sources = set(recipe.sources)
    within = [row for row in rows if {row["source_a"], row["source_b"]} <= sources]
    if rows and not within:
        of_table = sorted({row[f"source_{side}"] for row in rows for side in "ab"})
        hint = f"it compares {', '.join(of_table)}; the sources here are {', '.join(recipe.sources)}"
        raise RecipeError(f"no pair of {name} has both images in the benchmark", where=where, hint=hint)
    return {
        ((row["source_a"], row["image_id_a"]), (row["source_b"], row["image_id_b"])): row["distance"]
        for row in within
        if row["verdict"] not in NO_DUPLICATE
    }


def near_duplicate_leaks(recipe: Recipe, distances: Distances, tables: Sequence[pa.Table]) -> list[Leak]:
    """Return the near-duplicates between groups, and within a group across splits or classes."""
    ids = pa.array({image_id for pair in distances for _, image_id in pair}, pa.string())
    positions: dict[ImageKey, tuple[str, ...]] = {}
    for table in tables if distances else ():
        rows = table.filter(pc.is_in(table["image_id"], ids))
        names = ("source", "image_id", "group", "split", "class_id")
        for source, image_id, *position in _columns(rows, *names):
            positions[source, image_id] = tuple(position)
    order = {group.name: n for n, group in enumerate(recipe.group)}
    between: dict[tuple[str, str], dict[tuple[str, str], str]] = defaultdict(dict)
    for pair, distance in distances.items():
        if not positions.keys() >= set(pair) or positions[pair[0]] == positions[pair[1]]:
            continue
        a, b = sorted(pair, key=lambda image: (order[positions[image][0]], image))
        between[positions[a][0], positions[b][0]][a[1], b[1]] = distance
    leaks = []
    for groups in sorted(between, key=lambda names: [order[name] for name in names]):
        pairs = dict(sorted(between[groups].items()))
        leaks.append(Leak("near-duplicate", *groups, [*pairs], distances=[*pairs.values()]))
    return leaks


def digest_leaks(recipe: Recipe, tables: Sequence[pa.Table]) -> list[Leak]:
    """Return the identical images between groups, and within a group across splits or classes.

    One pair per shared digest and pair of groups, in time linear in the number of copies.
    """
    holders: dict[bytes, list[Copy]] = defaultdict(list)
    shared = _repeated(table["digest"].drop_null() for table in tables)
    for table in tables if len(shared) else ():
        rows = table.filter(pc.is_in(table["digest"], shared))
        for *position, digest in _columns(rows, "group", "split", "image_id", "class_id", "digest"):
            holders[digest].append(Copy(*position))
    order = {group.name: n for n, group in enumerate(recipe.group)}
    pairs_between: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for copies in holders.values():
        for groups, pair in _example_pairs(copies, order).items():
            pairs_between[groups].add(pair)
    ordered = sorted(pairs_between, key=lambda groups: [order[name] for name in groups])
    return [Leak("digest", *groups, sorted(pairs_between[groups])) for groups in ordered]


class Copy(NamedTuple):
    """A copy of an image."""

    group: str
    split: str
    image_id: str
    class_id: str


def _example_pairs(
    copies: Iterable[Copy], order: Mapping[str, int]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return a pair of copies for every two groups that contain the image: the first copy in each group.

    Within a group, pair the first copy with the next copy in another split or class.
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
                    message = f"image {image_id} of {source} is in {before} and in {position}"
                    raise RecipeError(message, where=where, hint="let each image be taken once")


def _repeated(columns: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Return the values that occur more than once in the columns."""
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    if not chunks:
        return pa.array([])
    counts = pc.value_counts(pa.chunked_array(chunks))
    return counts.field("values").filter(pc.greater(counts.field("counts"), 1))


def _columns(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)


KEPT_SPLITS = ("test", "val", "train")
"""Splits by preference: an ID image that is in several stays in the first."""


def drop_identical(selections: Sequence[Selection]) -> None:
    """Drop images that equal an ID image, OOD images that equal an external one, and copies within ID.

    An ID image in two classes is dropped from both, since its label is uncertain. An ID image in two splits
    stays in the split that comes first in `KEPT_SPLITS`. Copies within a split and class stay.
    """
    ready = [s for s in selections if s.awaiting is None]
    training = {d for s in ready if s.group.role in TRAINING_ROLES for d in s.digests.values()}
    of_id = {d for s in ready if s.group.role == "id" for d in s.digests.values()}
    inside = _within_id([s for s in ready if s.group.role == "id"])
    for selection in ready:
        copies = inside.get(selection.split, set())
        digests = {"id": copies, "external": of_id}.get(selection.group.role, training)
        selection.leave_out({i for i, d in selection.digests.items() if d in digests})


def _within_id(selections: Sequence[Selection]) -> dict[str, set[bytes]]:
    """Return the digests of the images to drop, by split."""
    times = Counter(d for s in selections for d in s.digests.values())
    classes: dict[bytes, set[tuple[str, str]]] = defaultdict(set)
    splits: dict[bytes, set[str]] = defaultdict(set)
    for selection in selections:
        for class_id, ids in selection.images.items():
            for digest in (selection.digests.get(i) for i in ids):
                if digest is not None and times[digest] > 1:
                    classes[digest].add((selection.group.source, class_id))
                    splits[digest].add(selection.split)
    dropped: dict[str, set[bytes]] = defaultdict(set)
    for digest, digest_splits in splits.items():
        stays = None if len(classes[digest]) > 1 else min(digest_splits, key=KEPT_SPLITS.index)
        for split in digest_splits - {stays}:
            dropped[split].add(digest)
    return dropped


def drop_near_duplicates(selections: Sequence[Selection], pairs: Distances) -> None:
    """Drop one image of each pair of near-duplicates that leaks: the OOD image, or the external image.

    Two ID images are both dropped if their classes differ; otherwise the image whose split is later in
    `KEPT_SPLITS`. Shifted copies of ID images stay. A dropped image causes no further drops.
    """
    if not pairs:
        return
    of_pairs = {image for pair in pairs for image in pair}
    positions = {
        (selection.group.source, image_id): (n, class_id)
        for n, selection in enumerate(selections)
        for class_id, ids in selection.images.items()
        for image_id in ids
        if (selection.group.source, image_id) in of_pairs
    }

    def rank(image: ImageKey) -> tuple[int, int, int, ImageKey]:
        n, _ = positions[image]
        role = selections[n].group.role
        in_id = KEPT_SPLITS.index(selections[n].split) if role == "id" else 0
        return {"id": 0, "external": 1}.get(role, 2), in_id, n, image

    dropped: set[ImageKey] = set()
    ranked = [sorted(pair, key=rank) for pair in pairs if positions.keys() >= set(pair)]
    for stays, goes in sorted(ranked, key=lambda pair: [rank(image) for image in pair]):
        (n_a, class_a), (n_b, class_b) = positions[stays], positions[goes]
        a, b = selections[n_a], selections[n_b]
        if stays in dropped or goes in dropped:
            continue
        if a.group.role == b.group.role == "id":
            if (a.group.source, class_a) != (b.group.source, class_b):
                dropped |= {stays, goes}
            elif a.split != b.split:
                dropped.add(goes)
        elif trains(a.group, b.group):
            dropped.add(goes)
    for selection in selections:
        selection.leave_out({image_id for source, image_id in dropped if source == selection.group.source})
