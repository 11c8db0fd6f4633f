"""WordNet's own nouns, written as files, decide as WordNet does: every class, distance and sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wordnet_splits.benchmark.construct.assemble import build_class_table
from wordnet_splits.benchmark.construct.classes import CLASS_KINDS, assign_classes, labels_of
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.recipe import Recipe, load_recipe, recipe_names
from wordnet_splits.benchmark.recipe.schema import Origin
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.similarity.pairs import MEASURES
from wordnet_splits.wordnet.taxonomy import Taxonomy

OF_TREE = ("osc-p1", "osc-p2", "osc-p3")
_NAME = re.compile(r"[^\s(]+\.n\.\d\d+")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def written(once_for_all_workers: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """A folder with WordNet's nouns, and the edges of the former ImageNet tree."""

    def write(folder: Path) -> None:
        wordnet = Taxonomy.embedded()
        wordnet.to_files(folder / "wordnet.tsv", folder / "nodes.tsv")
        tree = wordnet.tree()
        below = sorted(tree.descendants(tree.root))  # without instances, which have no edge in it
        rows = [f"{node}\t{parent}\n" for node in below for parent in tree.parents(node)]
        (folder / "tree").mkdir()
        (folder / "tree/tree.tsv").write_text("child\tparent\n" + "".join(rows))

    return once_for_all_workers("wordnet-as-files", write)


def over(recipe: Recipe, file: Path, name: str, version: str) -> Recipe:
    """The recipe over the hierarchy in a file, called as WordNet is."""
    hierarchy = OwnHierarchy(file=file.name, name=name, version=version).located(file)
    return recipe.model_copy(update={"hierarchy": hierarchy}).read_at(Origin(hierarchy=hierarchy))


def rows_of(recipe: Recipe, taxonomy: Taxonomy) -> tuple[dict[tuple[str, ...], Row], Counter[Any]]:
    """The class table by source, class and group, and the number of pairs of each leak between classes."""
    membership, leaks = assign_classes(recipe, recipe.seed, taxonomy)
    table = build_class_table(membership, labels_of(membership), taxonomy)
    counts = {(leak.kind, leak.a, leak.b): len(leak.pairs) for leak in leaks}
    return by_class(table.to_pylist()), Counter(counts)


def by_class(rows: list[Row]) -> dict[tuple[str, ...], Row]:
    return {(row["source"], row["class_id"], row["group"]): row for row in rows}


def differences(a: dict[tuple[str, ...], Row], b: dict[tuple[str, ...], Row]) -> Iterator[tuple[Any, ...]]:
    """Each class and column whose values differ, and each class that only one of the tables has."""
    yield from sorted(a.keys() ^ b.keys())
    yield from ((key, c, a[key][c], b[key][c]) for key in a for c in a[key] if a[key][c] != b[key].get(c))


def compare(name: str, written: Path) -> tuple[int, list[tuple[Any, ...]]]:
    """The number of classes in groups, and the differences between the frozen table and that of the files."""
    wordnet, recipe, frozen = Taxonomy.embedded(), load_recipe(name), load_manifest(name)
    expected = by_class(frozen.classes.to_pylist())
    count = sum(group != "" for _, _, group in expected)
    if name in OF_TREE:  # its distances are those of all of WordNet, so that they are compared with the tree
        custom = over(recipe, written / "tree/tree.tsv", "tree", "1")
        found, _ = rows_of(custom, custom.own_hierarchy.taxonomy())  # type: ignore[union-attr]
        tree, _ = rows_of(recipe.model_copy(update={"hierarchy": "wordnet"}), wordnet.tree())
        decided = ("role", "group", "label", "wnids", "rule")
        distances = (
            "own_wnid",
            "nearest_wnid",
            "nearest_id",
            "lcs",
            "distance",
            "path",
            "wup",
            "lch",
            "mean",
        )
        pairs = ((found, expected, decided), (found, tree, distances))
        found_differences = [
            difference
            for a, b, columns in pairs
            for difference in differences(
                *({key: {c: row[c] for c in columns} for key, row in rows.items()} for rows in (a, b))
            )
        ]
        return count, found_differences
    custom = over(recipe, written / "wordnet.tsv", "WordNet", "3.0")
    taxonomy = custom.own_hierarchy.taxonomy()  # type: ignore[union-attr]
    found, leaks = rows_of(custom, taxonomy)
    for key, row in expected.items():
        text = _NAME.sub(lambda match: taxonomy.name(wordnet.from_name(match[0])), row["evidence"])
        text = text.replace("synset", "node").replace("WordNet 3.0", taxonomy.title)
        # clauses about leaks follow, whose reasons are the recipe's
        row["evidence"] = text if key not in found else text[: len(found[key]["evidence"])]
    of_frozen = Counter(
        {
            (k.kind, k.a.removeprefix("group:"), k.b.removeprefix("group:")): k.count
            for k in frozen.data.leaks
            if k.kind in CLASS_KINDS
        }
    )
    return count, [*differences(found, expected), *((leaks - of_frozen) + (of_frozen - leaks)).items()]


@pytest.mark.parametrize("name", ["digits", "rungs-cifar100", "unknown-cifar"])
def test_a_benchmark_over_wordnet_as_files_is_the_frozen_one(name: str, written: Path) -> None:
    count, found = compare(name, written)
    assert count > 0
    assert found == []


def test_measures_are_the_same_to_the_last_bit(written: Path) -> None:
    wordnet = Taxonomy.embedded()
    custom = Taxonomy.from_files(written / "wordnet.tsv", written / "nodes.tsv")
    wnids = sorted(np.random.default_rng(40).choice(np.array(wordnet.wnids), 150, replace=False).tolist())
    names = tuple(MEASURES)
    of_wordnet, of_files = (
        similarity.similarity_matrices(names, wnids, wnids, taxonomy) for taxonomy in (wordnet, custom)
    )
    assert [n for n in names if of_wordnet[n].tobytes() != of_files[n].tobytes()] == []


@pytest.mark.oracle
def test_every_shipped_benchmark_over_wordnet_as_files_is_the_frozen_one(written: Path) -> None:
    names = sorted(set(recipe_names()) & set(manifest_names()))
    compared = {name: compare(name, written) for name in names}
    rows = sum(count for count, _ in compared.values())
    print(f"{rows:,} rows in groups of {len(names)} benchmarks compared")
    assert {name: found[:3] for name, (_, found) in compared.items() if found} == {}
    assert rows >= 45_796
