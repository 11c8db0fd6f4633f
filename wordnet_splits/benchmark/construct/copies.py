"""Copies of images between the sets of a benchmark: identical images and near-duplicates.

Identical images have one digest; near-duplicates are the pairs of a table that the recipe names. Copies are
leaks, and with ``drop_leaks`` they are removed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.construct.leak_kinds import TRAINING_ROLES, Leak, trains
from wordnet_splits.benchmark.construct.selection import Selection, read_table
from wordnet_splits.benchmark.recipe import Recipe
from wordnet_splits.datasets.catalog.image_pairs import NO_DUPLICATE

Picture = tuple[str, str]
"""Source and image id."""
Distances = Mapping[tuple[Picture, Picture], str]
"""The distance of each pair of near-duplicates, as in the table."""


def near_duplicate_pairs(recipe: Recipe) -> Distances:
    """Return the pairs of a recipe's ``near_duplicates`` except those judged different.

    Raises
    ------
    RecipeError, DataError : the table cannot be read, or has no pair of the benchmark's sources.
    """
    name = recipe.near_duplicates
    if name is None:
        return {}
    where = f"{recipe.name}: near_duplicates"
    rows = [row for row in read_table(recipe, name, where) if row["image_id_b"]]
    sources = set(recipe.sources)
    within = [row for row in rows if {row["source_a"], row["source_b"]} <= sources]
    if rows and not within:
        of_table = sorted({row[f"source_{side}"] for row in rows for side in "ab"})
        raise RecipeError(
            f"no pair of {name} has both pictures in the benchmark",
            where=where,
            hint=f"it compares {', '.join(of_table)}; the sources here are {', '.join(recipe.sources)}",
        )
    return {
        ((row["source_a"], row["image_id_a"]), (row["source_b"], row["image_id_b"])): row["distance"]
        for row in within
        if row["verdict"] not in NO_DUPLICATE
    }


def near_duplicate_leaks(recipe: Recipe, distances: Distances, tables: Sequence[pa.Table]) -> list[Leak]:
    """Return the near-duplicates between groups, and within a group across splits or classes."""
    ids = pa.array({image_id for pair in distances for _, image_id in pair}, pa.string())
    positions: dict[Picture, tuple[str, str, str]] = {}
    for table in tables if distances else ():
        rows = table.filter(pc.is_in(table["image_id"], ids))
        names = ("source", "image_id", "group", "split", "class_id")
        for source, image_id, *position in zip(*(rows[name].to_pylist() for name in names), strict=True):
            group, split, class_id = position
            positions[source, image_id] = group, split, class_id
    order = {group.name: n for n, group in enumerate(recipe.group)}
    between: dict[tuple[str, str], dict[tuple[str, str], str]] = defaultdict(dict)
    for pair, distance in distances.items():
        if not positions.keys() >= set(pair) or positions[pair[0]] == positions[pair[1]]:
            continue
        a, b = sorted(pair, key=lambda picture: (order[positions[picture][0]], picture))
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
    order = {g.name: n for n, g in enumerate(recipe.group)}
    pairs_between: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for copies in holders.values():
        for groups, pair in _example_pairs(copies, order).items():
            pairs_between[groups].add(pair)
    return [
        Leak("digest", a, b, sorted(pairs))
        for (a, b), pairs in sorted(
            pairs_between.items(), key=lambda item: (order[item[0][0]], order[item[0][1]])
        )
    ]


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


KEPT_SPLITS = ("test", "val", "train")
"""Splits by preference: an ID image that is in several stays in the first."""
_ROLE_RANKS = {"id": 0, "external": 1}


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


def drop_near_duplicates(selections: Sequence[Selection], pairs: Collection[tuple[Picture, Picture]]) -> None:
    """Drop one image of each pair of near-duplicates that leaks: the OOD image, or the external image.

    Two ID images are both dropped if their classes differ; otherwise the image whose split is later in
    `KEPT_SPLITS`. Shifted copies of ID images stay. A dropped image causes no further drops.
    """
    if not pairs:
        return
    of_pairs = {picture for pair in pairs for picture in pair}
    positions = {
        (selection.group.source, image_id): (n, class_id)
        for n, selection in enumerate(selections)
        for class_id, ids in selection.images.items()
        for image_id in ids
        if (selection.group.source, image_id) in of_pairs
    }

    def rank(picture: Picture) -> tuple[int, int, int, Picture]:
        n, _ = positions[picture]
        role = selections[n].group.role
        in_id = KEPT_SPLITS.index(selections[n].split) if role == "id" else 0
        return _ROLE_RANKS.get(role, len(_ROLE_RANKS)), in_id, n, picture

    dropped: set[Picture] = set()
    ranked = [sorted(pair, key=rank) for pair in pairs if positions.keys() >= set(pair)]
    for stays, goes in sorted(ranked, key=lambda pair: [rank(picture) for picture in pair]):
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
