"""held_out: whole subtrees or leaves, each with a relative that stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wordnet_splits.benchmark.rules.test_families import Parents, above, accepted, judged, wnid, worlds
from tests.wordnet_splits.benchmark.rules.toy import taken
from wordnet_splits.benchmark.construct.classes import decide_membership
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy


def rule(unit: str, classes: int, **options: int) -> dict[str, Any]:
    return {"held_out": {"of": "source:own", "unit": unit, "classes": classes, **options}}


def families(parents: Parents, classes: list[str], held: set[str]) -> list[set[str]]:
    """Return, for each class held out, the smallest set of classes below a node with one that stays."""
    below = [{c for c in classes if node in above(parents, c)} for node in {*parents, *classes, "n00000001"}]
    return [min((s for s in below if c in s and s - held), key=len, default=set()) for c in sorted(held)]


@pytest.mark.parametrize("unit", ["leaves", "subtrees"])
@given(worlds(), st.integers(1, 9))
def test_every_class_held_out_has_a_relative_that_stays(
    unit: str, drawn: tuple[Parents, list[str]], most: int
) -> None:
    parents, classes = drawn
    held = set(accepted(judged(rule(unit, most), parents, classes)))
    assert len(held) <= most
    assert all(families(parents, classes, held))
    assert held == set(accepted(judged(rule(unit, most), parents, classes[::-1])))  # whatever the order


@given(worlds(), st.integers(2, 9))
def test_subtrees_are_held_out_whole(drawn: tuple[Parents, list[str]], most: int) -> None:
    parents, classes = drawn
    verdicts = judged(rule("subtrees", most, largest=4), parents, classes)
    for name in accepted(verdicts):
        node = verdicts[name].via[0].wnid
        together = [c for c in classes if node in above(parents, c)]
        assert 2 <= len(together) <= 4
        assert all(verdicts[c].accepted for c in together)


def test_on_the_toy_dogs() -> None:
    # below toy_dog are pug and chihuahua, below dog also borzoi: of each family one stays
    held = taken({"held_out": {"of": "source:pets", "unit": "subtrees", "classes": 2}})
    assert held == {"pug", "chihuahua"}
    leaves = taken({"held_out": {"of": "source:pets", "unit": "leaves", "classes": 9}})
    assert len(leaves & {"pug", "chihuahua"}) == 1
    assert 0 < len(leaves) < 5


def test_the_evidence_names_the_node_and_what_stays() -> None:
    parents = {wnid(n): [wnid(parent)] for n, parent in ((2, 1), (3, 2), (4, 2), (5, 1))}
    classes = ["n00000003", "n00000004", "n00000005"]
    verdicts = judged(rule("subtrees", 5), parents, classes)
    assert accepted(verdicts) == ["n00000003", "n00000004"]
    assert [via.wnid for via in verdicts["n00000003"].via] == ["n00000002"]


RECIPE = """
schema = 1
name = "held"
version = 1
draw = "held"
seed = 0
transforms = { cifar100 = "none" }
[[group]]
name = "out"
role = "near"
source = "cifar100"
classes = { held_out = { of = "source:cifar100", unit = "UNIT", classes = 20, largest = 5 } }
images = { test = { from = "test", all = true } }
[[group]]
name = "in"
role = "id"
source = "cifar100"
classes = { rest = true }
images = { test = { from = "test", all = true } }
"""


@pytest.mark.parametrize("unit", ["leaves", "subtrees"])
def test_the_truth_of_a_class_held_out_is_a_node_that_is_no_class(unit: str, tmp_path: Path) -> None:
    (tmp_path / "held.toml").write_text(RECIPE.replace("UNIT", unit))
    groups = decide_membership(load_recipe(tmp_path / "held.toml"), 0, Taxonomy.embedded()).groups
    assert len(groups["in"]) == 100 - len(groups["out"])
    assert 16 <= len(groups["out"]) <= 20
    catalog = load_catalog("cifar100")
    hierarchy = pytest.importorskip("wordnet_splits.hierarchy").ClassHierarchy.of(
        [catalog[c].wnids for c in groups["in"]]
    )
    truths = [hierarchy.truth(catalog[c].wnids) for c in groups["out"]]
    assert hierarchy.root not in truths
    assert hierarchy.inner[truths].all()
