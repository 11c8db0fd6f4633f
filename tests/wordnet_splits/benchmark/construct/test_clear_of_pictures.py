"""``clear_of = { pictures = ... }`` leaves out the pictures of a table of near-duplicates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError, RecipeError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.datasets.catalog.image_pairs import COLUMNS, write_pairs

RECIPE = """extends = "digits"
name = "digits-apart"
[[group]]
name = "digits-6-9"
role = "near"
source = "digits"
classes = { shares_parent_with = "group:digits-0-5" }
images = { test = { from = "all", all = true, clear_of = { pictures = "TABLE" } } }
"""


def row(a: str, b: str = "", verdict: str = "", source: str = "digits") -> dict[str, str]:
    pair = {"source_a": source, "image_id_a": a, "source_b": "digits" if b else "", "image_id_b": b}
    judged = {"verdict": verdict, "reviewer": "AB" if verdict else ""}
    return {**dict.fromkeys(COLUMNS, ""), **pair, **judged}


@pytest.fixture
def near_ids() -> list[str]:
    table = build_benchmark("digits").manifest.parts["test", "digits-6-9"]()
    return sorted(table["image_id"].to_pylist())


def build(folder: Path, table: str = "pairs.tsv"):
    path = folder / "apart.toml"
    path.write_text(RECIPE.replace("TABLE", table))
    return build_benchmark(load_recipe(path)).manifest


def test_pictures_of_rows_that_count_are_left_out(tmp_path, near_ids):
    rows = [
        row(near_ids[0], near_ids[1], "same"),
        row(near_ids[2], "elsewhere"),
        row(near_ids[3], near_ids[4], "different"),
        row(near_ids[5], verdict="leave out"),
        row(near_ids[6], verdict="keep"),
        row(near_ids[7], "elsewhere", source="mnist"),
    ]
    write_pairs(tmp_path / "pairs.tsv", rows)
    manifest = build(tmp_path)
    remaining = set(manifest.parts["test", "digits-6-9"]()["image_id"].to_pylist())
    assert set(near_ids) - remaining == {near_ids[n] for n in (0, 1, 2, 5)}
    (counts,) = (g for g in manifest.groups if (g.group, g.split) == ("digits-6-9", "test"))
    assert (counts.actual, counts.status) == (len(near_ids) - 4, "complete")
    assert "4 images" in counts.reason


@pytest.mark.parametrize("table", ["absent.tsv", "../pairs.tsv", "bad.tsv"])
def test_a_table_that_cannot_be_read_is_refused(tmp_path, table):
    (tmp_path / "bad.tsv").write_text("image_id\n1\n")
    with raises(DataError, naming="digits-6-9"):
        build(tmp_path, table)


def test_a_table_of_other_sources_is_refused(tmp_path):
    write_pairs(tmp_path / "pairs.tsv", [row("1", source="pictures", verdict="leave out")])
    with raises(RecipeError, where="apart.toml, line 7: group digits-6-9, test"):
        build(tmp_path)
    write_pairs(tmp_path / "pairs.tsv", [])  # a comparison without pairs
    assert build(tmp_path).complete
