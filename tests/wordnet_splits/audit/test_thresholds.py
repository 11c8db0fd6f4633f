"""Near and far at every threshold: the recipe's own operators, the audit and plain pairs as oracles."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raising import mentions
from tests.wordnet_splits.recipes import HEAD, group, write_recipe
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.audit.report import LEAKS
from wordnet_splits.audit.thresholds import SCHEMA, Thresholds, thresholds
from wordnet_splits.benchmark.construct.classes import decide_membership
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import load


@pytest.fixture(scope="module")
def caltech() -> Thresholds:
    return thresholds("caltech256", "cifar100")


@pytest.mark.parametrize("threshold", [0.4, 0.5, 0.6])
def test_near_and_far_are_what_a_recipe_draws(tmp_path, caltech, threshold):
    free = '{ not = { overlaps = "group:known", senses = "catalog", relation = "ancestry" } }'

    def drawn(bound: str) -> str:
        measured = f'{{ similarity = {{ to = "group:known", measure = "mean", {bound} = {threshold} }} }}'
        return f"{{ all = [{measured}, {free}] }}"

    images = '{ test = { from = "all", all = true } }'
    known = group(
        "known", "id", "cifar100", '{ listed = "source:cifar100" }', images.replace("all", "test", 1)
    )
    sides = [
        group(side, side, "caltech256", drawn(b), images) for side, b in (("near", "above"), ("far", "below"))
    ]
    recipe = load_recipe(write_recipe(tmp_path, known, *sides, head=HEAD))
    membership = decide_membership(recipe, recipe.seed, load())
    found = caltech.at(threshold)
    for side in ("near", "far"):
        assert set(found[side]) == set(membership.groups[side])


def test_relations_are_those_of_an_audit(caltech):
    audited = {one.id: one for one in audit_classes("caltech256", "cifar100").classes}
    equal = {i for i, one in audited.items() if one.relation == "equal"}
    rows = caltech.rows()
    assert caltech.equal == len(equal)
    assert [row["class_id"] for row in rows] == [i for i in audited if i not in equal]
    for row in rows:
        one = audited[row["class_id"]]
        assert (row["relation"] is None) == (one.relation not in LEAKS)
        assert row["value"] == one.mean
    apart = {row["class_id"] for row in rows if row["value"] is None}
    for threshold in (0.0, 0.55, 2.0):
        sides = caltech.at(threshold)
        assert sorted(i for ids in sides.values() for i in ids) == sorted(
            {r["class_id"] for r in rows} - apart
        )


def test_distance_counts_from_the_near_side():
    found = thresholds("food101", "cifar100", measure="distance")
    own = [item.wnids for item in load_catalog("food101")]
    known = [w for item in load_catalog("cifar100") for w in item.wnids]
    least = [
        min(similarity.compare_synsets(w, k).distance for w in wnids for k in known[::7]) for wnids in own[:3]
    ]
    values = {row["class_id"]: row["value"] for row in found.rows()}
    for item, bound in zip(load_catalog("food101"), least, strict=False):
        assert values[item.class_id] <= bound
    counts = found.counts()
    assert [row["near"] for row in counts] == sorted(row["near"] for row in counts)
    assert counts[-1]["far"] == 0
    assert found.summary() == [
        float(n) for n in range(int(min(values.values())), int(max(values.values())) + 1)
    ]


def test_the_counts_change_at_each_threshold_and_add_up(caltech):
    counts = caltech.counts()
    assert len({row["near"] for row in counts}) == len(counts)
    for row in counts:
        sides = caltech.at(row["threshold"])
        assert {name: len(ids) for name, ids in sides.items()} == {n: row[n] for n in sides}


def test_the_command_writes_parquet_plot_and_json(command, tmp_path, caltech):
    pytest.importorskip("matplotlib")
    words = ("audit", "thresholds", "caltech256", "--against", "cifar100")
    done = command(*words, "--out", "t.parquet", "--plot", "t.svg")
    assert done.code == 0
    assert done.out.startswith(
        f"{len(caltech.table):,} other classes of caltech256 against 100 of cifar100, mean"
    )
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.equals(caltech.table)
    assert table.schema.metadata[b"measure"] == b"mean"
    first = Path("t.svg").read_bytes()
    assert first.startswith(b"<?xml")
    command(*words, "--plot", "t.svg")
    assert Path("t.svg").read_bytes() == first
    assert command(*words, "--json").json == json.loads(json.dumps(caltech.as_dict()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("imagenet21kk",), ("imagenet21kk", "imagenet21k")),
        (("food101", "--measure", "means"), "means"),
        (("food101", "--against", "gaussian"), ()),
        (("food101", "--plot", "x.txt"), ()),
    ],
)
def test_what_cannot_be_done_is_one_line(command, words, said):
    assert mentions(command("audit", "thresholds", *words).error, said)


def test_a_list_without_others_has_no_thresholds():
    found = thresholds(["dog"], ["dog"])
    assert (len(found.table), found.equal, found.counts(), found.summary()) == (0, 1, [], [])


def thresholds_of(values: list[float], measure: str = "mean") -> Thresholds:
    ids = [f"c{n}" for n in range(len(values))]
    nothing = [None] * len(ids)
    table = pa.table([ids, ids, nothing, nothing, values], schema=SCHEMA)
    return Thresholds("list", "known", measure, 1, 0, table)


@pytest.mark.parametrize(
    ("values", "measure", "expected"),
    [
        ([0.9, 0.8, 0.3, 0.2], "mean", (0.55, 2, 2)),
        ([0.9, 0.501, 0.503, 0.2], "mean", (0.502, 2, 2)),  # two digits do not part them
        ([0.9, 0.8, 0.2], "mean", (0.5, 2, 1)),  # of 1:2 and 2:1 the wider gap
        ([0.5, 0.5, 0.5, 0.4], "mean", (0.45, 3, 1)),
        ([2.0, 3.0, 7.0, 8.0], "distance", (5.0, 2, 2)),
    ],
)
def test_the_balanced_threshold_parts_the_classes_most_evenly(values, measure, expected):
    counts = thresholds_of(values, measure)
    balanced = counts.balanced
    assert (balanced.threshold, balanced.near, balanced.far) == expected
    taken = counts.at(balanced.threshold)
    assert (len(taken["near"]), len(taken["far"])) == expected[1:]
    assert balanced.farthest_near in taken["near"]
    assert balanced.nearest_far in taken["far"]
    value = dict(zip(counts.table["class_id"].to_pylist(), values, strict=True))
    for class_id, margin in (
        (balanced.farthest_near, balanced.near_margin),
        (balanced.nearest_far, balanced.far_margin),
    ):
        assert margin == pytest.approx(abs(value[class_id] - balanced.threshold))


@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5], [0.5, 0.5 + 1e-9]])
def test_no_threshold_is_balanced_where_all_classes_are_alike(values):
    counts = thresholds_of(values)
    assert counts.balanced is None
    assert counts.as_dict()["balanced"] is None


def test_the_balanced_threshold_is_no_further_from_even_than_any_other(caltech):
    rows = [row for row in caltech.counts() if row["far"]]
    balanced = caltech.balanced
    assert abs(balanced.near - balanced.far) == min(abs(row["near"] - row["far"]) for row in rows)
