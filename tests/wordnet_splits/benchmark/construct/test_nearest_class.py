"""What the evidence says of a class's place: nearest ID class, meeting synset, edges, rank, all refusals."""

from __future__ import annotations

import re

import pytest

from wordnet_splits.benchmark.construct.classes import build_class_table, decide_membership, labels_of
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
            assert row["evidence"].endswith("so that it has no distance to ID")
            continue
        edges = "1 edge" if row["distance"] == 1 else f"{row['distance']} edges"
        lcs = row["lcs"]
        meet = f"{taxonomy.lemmas(lcs)[0].replace('_', ' ')} ({lcs}: {taxonomy.first_definition(lcs)})"
        assert f"ID class is {names[row['nearest_id']]}, {edges} away through {meet}; " in row["evidence"]
        assert not re.search(r"or \d+ more|\b1 (edges|classes|candidates)\b", row["evidence"])


def test_rank_and_share_are_those_of_the_ood_classes(rows):
    scores = [r["mean"] for r in rows if r["role"] in ("near", "far")]
    for row in rows:
        if row["mean"] is None:
            continue
        nearer = sum(s is not None and s > row["mean"] for s in scores)
        share = f"{nearer / len(scores):.0%}"
        if row["role"] in ("near", "far"):
            said = f"number {nearer + 1} of {len(scores)} OOD classes by nearness, {share} are nearer"
        else:
            verb = "is" if nearer == 1 else "are"
            said = f"{nearer} of {len(scores)} OOD classes {verb} nearer ({share})"
        assert row["evidence"].endswith(said)


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
