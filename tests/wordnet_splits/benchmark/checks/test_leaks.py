"""The leaks of a finished manifest are those it records, with every pair; anything else is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.made_manifests import altered
from tests.raising import raises
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.checks import leaks as lr
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest, write_manifest
from wordnet_splits.benchmark.resolve import load_manifest

RECIPE = """\
schema = 1
name = "halves"
draw = "unknown-cifar"
reproduces = true

[[group]]
name = "known"
role = "id"
source = "cifar100"
classes = { draw = 2, within = "superclass" }
images = { test = { from = "test", all = true } }

[[group]]
name = "near"
role = "near"
source = "cifar100"
classes = { rest = true }
images = { test = { from = "test", all = true } }

[[group]]
name = "places"
role = "far"
source = "lsun"
classes = { rest = true }
images = { test = { from = "train", per_class = 400 } }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Manifest:
    path = tmp_path_factory.mktemp("recipe") / "halves.toml"
    path.write_text(RECIPE)
    return build_benchmark(path).manifest


@pytest.fixture
def manifest(built) -> Manifest:
    return altered(built)


def test_a_fresh_manifest_has_just_the_leaks_it_records(manifest):
    report = lr.report_leaks(manifest)
    assert report.ok
    assert [(x.kind, x.a, x.b, len(x.pairs)) for x in report.leaks] == [
        (r.kind, r.a.removeprefix("group:"), r.b.removeprefix("group:"), r.count) for r in manifest.data.leaks
    ]
    assert {x.kind for x in report.leaks} == {"class", "ancestry", "sibling", "digest"}
    assert {x.severity for x in report.leaks} == {"known", "recorded"}


def test_all_pairs_are_listed(manifest):
    digests = [x for x in lr.report_leaks(manifest).leaks if x.kind == "digest" and x.a != x.b]
    assert [p for x in digests for p in x.pairs] == [("test/baby/baby_s_000223", "test/girl/baby_s_000223")]


def test_sets_without_digests_are_named(manifest):
    assert lr.report_leaks(manifest).unchecked == [
        {"group": "places", "split": "test", "source": "lsun", "why": "awaiting lsun"}
    ]
    assert lr.report_leaks(manifest).groups_not_compared == 1
    table = manifest.parts["test", "near"]()
    column = table.schema.get_field_index("digest")
    without = table.set_column(column, table.schema.field(column), pa.nulls(len(table), pa.binary(32)))
    manifest.parts["test", "near"] = lambda: without
    assert lr.report_leaks(manifest).unchecked[0]["why"] == "6,000 of 6,000 digests unknown"


def test_a_leak_not_recorded_is_told(manifest):
    gone, *others = [row.model_dump() for row in manifest.data.leaks]
    report = lr.report_leaks(altered(manifest, leaks=others))
    assert not report.ok
    new = [x for x in report.leaks if x.status != lr.AS_RECORDED]
    assert [(x.kind, x.status, x.recorded, len(x.pairs)) for x in new] == [
        (gone["kind"], lr.NEW, None, gone["count"])
    ]


def test_a_count_that_differs_and_a_leak_not_found_are_told(manifest):
    first, *others = [row.model_dump() for row in manifest.data.leaks]
    first["count"] += 1
    leaks = [first, *others, {**first, "kind": "class", "a": "group:near"}]
    report = lr.report_leaks(altered(manifest, leaks=leaks))
    assert not report.ok
    assert [x.status for x in report.leaks if x.status != lr.AS_RECORDED] == [lr.CHANGED, lr.GONE]


def test_a_manifest_read_back_says_the_same(manifest, tmp_path: Path):
    folder = write_manifest(manifest, tmp_path)
    again = lr.report_leaks(load_manifest(folder))
    assert again.as_dict() == lr.report_leaks(manifest).as_dict()


def test_a_malformed_recipe_within_is_one_clear_error(manifest):
    recipe = manifest.data.recipe.as_dict()
    del recipe["group"]
    manifest = altered(manifest, recipe=recipe)
    with raises(ManifestError, where="manifest.json"):
        lr.report_leaks(manifest)
