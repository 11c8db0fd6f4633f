"""What the evidence says of a class's place: nearest ID class, meeting synset, edges, rank, all refusals."""

from __future__ import annotations

import math
import re

import pytest

from wordnet_splits.benchmark.construct.assemble import build_class_table
from wordnet_splits.benchmark.construct.classes import decide_membership, labels_of
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.wordnet.taxonomy import Taxonomy, load


@pytest.fixture(scope="module", params=["unknown-cifar-tinyval", "osc-p2"])
def rows(request) -> list[dict]:
    recipe = load_recipe(request.param)
    membership = decide_membership(recipe, recipe.seed, load())
    return build_class_table(membership, labels_of(membership), load()).to_pylist()


def test_every_sentence_names_the_nearest_id_class_and_where_the_two_meet(rows):
    taxonomy = load()
    names = {r["class_id"]: r["name"].replace("_", " ") for r in rows if r["role"] == "id"}
    for row in rows:
        if row["mean"] is None:
            assert row["evidence"].partition("; ")[0].endswith("so no distance to ID")
            continue
        edges = "1 edge" if row["distance"] == 1 else f"{row['distance']} edges"
        pair = f"ID class {names[row['nearest_id']]} ({edges}, via {taxonomy.name(row['lcs'])}), nearer than "
        assert row["evidence"].removeprefix("nearest ").removeprefix("other ").startswith(pair)
        assert not re.search(r"or \d+ more|\b1 (edges|classes|candidates)\b", row["evidence"])


def test_the_share_is_that_of_the_other_ood_classes_that_are_farther(rows):
    ood = [r for r in rows if r["role"] in ("near", "far") and r["mean"] is not None]
    for row in rows:
        if row["mean"] is None:
            continue
        farther = [other["mean"] < row["mean"] for other in ood if other is not row]
        share = math.floor(100 * sum(farther) / len(farther))
        assert f"), nearer than {share}% of OOD classes; " in row["evidence"]


def test_a_class_refused_by_several_groups_has_every_refusal(rows):
    groups = [group.name for group in load_recipe("osc-p2").group]
    if {r["source"] for r in rows} != {"imagenet1k"}:
        pytest.skip("one group a source")
    for row in rows:
        if row["role"] == "excluded":
            assert re.findall(r"not (known|negative|unknown): ", row["evidence"]) == groups
            assert row["rule"].count("slice") == 2
            assert "subtree" in row["rule"]


def test_a_taxonomy_without_glosses_has_no_definition():
    toy = Taxonomy.from_edges({"n00000002": ["n00000001"]})
    assert toy.definition("n00000002") == ""
