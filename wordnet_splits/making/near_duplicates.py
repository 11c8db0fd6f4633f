"""Near-duplicates between the sets of a benchmark, by the table of pairs that its recipe names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import RecipeError, SplitsError
from wordnet_splits.catalog.picture_pairs import NO_DUPLICATE, PairRow, read_pairs
from wordnet_splits.making.leaks import Leak
from wordnet_splits.recipe import Recipe

Picture = tuple[str, str]
"""Source and image id."""
Distances = Mapping[tuple[Picture, Picture], str]
"""The distance of each pair of near-duplicates, as in the table."""


def read_table(recipe: Recipe, name: str, where: str) -> list[PairRow]:
    """Return the rows of a table of pairs that a recipe names. Raises SplitsError."""
    try:
        return read_pairs(recipe.table_path(name, where))
    except SplitsError as error:
        raise error.within(where) from None


def near_duplicate_pairs(recipe: Recipe) -> Distances:
    """Return the pairs of a recipe's ``near_duplicates`` that nobody has judged different.

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
