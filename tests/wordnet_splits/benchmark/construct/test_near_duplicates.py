"""``near_duplicates`` of a recipe: the pairs of a table are leaks, which are named, dropped or refused."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.benchmark.construct.test_clear_of_pictures import row
from wordnet_splits.base.errors import DataError, RecipeError
from wordnet_splits.benchmark.checks.leaks import report_leaks
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.construct.leak_kinds import drop_near_duplicates
from wordnet_splits.benchmark.construct.selection import Selection
from wordnet_splits.benchmark.recipe import Group, load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.cli.main import app, run
from wordnet_splits.datasets.catalog.image_pairs import write_pairs

RECIPE = """extends = "digits"
name = "apart"
near_duplicates = "pairs.tsv"
"""
NAMED = """[[known_leak]]
kind = "near-duplicate"
a = "group:digits-0-5"
b = "group:digits-6-9"
count = 2
reason = "a 1 may look like a 7"
"""
TEST = {"test": {"from": "all", "all": True}}
INSIDE = NAMED.replace("digits-6-9", "digits-0-5").replace("count = 2", "count = 1")


@pytest.fixture(scope="module")
def ids() -> dict[str, list[str]]:
    """Return the image ids of each split of ID (``train 0``: of a class, too), and ``near``."""
    parts = build_benchmark("digits").manifest.parts
    rows = [r for split in ("train", "test") for r in parts[split, "digits-0-5"]().to_pylist()]
    by_class = groupby(sorted(rows, key=_split_and_class), _split_and_class)
    near = parts["test", "digits-6-9"]()["image_id"].to_pylist()
    return {name: [r["image_id"] for r in of_class] for name, of_class in by_class} | {"near": near}


def _split_and_class(image: dict[str, str]) -> str:
    return f"{image['split']} {image['class_id']}"


def write(folder: Path, rows: list[dict[str, str]], recipe: str = "") -> Path:
    write_pairs(folder / "pairs.tsv", [{**r, "distance": str(n)} for n, r in enumerate(rows)])
    path = folder / "apart.toml"
    path.write_text(RECIPE + recipe)
    return path


def images(manifest) -> set[str]:
    return {i for read in manifest.parts.values() for i in read()["image_id"].to_pylist()}


def test_pairs_of_id_and_ood_are_recorded_shown_and_verified(tmp_path, ids, capsys):
    known, near = ids["train 0"], ids["near"]
    rows = [
        row(known[0], near[0]),
        row(near[1], known[1], "same"),
        row(known[2], near[2], "different"),
        row(known[3], known[4]),  # of one split and class
        row(known[5], verdict="leave out"),
        row(known[6], "elsewhere"),
    ]
    path = write(tmp_path, rows, NAMED)
    build_benchmark(path, out=tmp_path)
    manifest = load_manifest(tmp_path / "apart")
    leak = manifest.data.leaks[-1]
    assert (leak.kind, leak.a, leak.b, leak.count) == (
        *("near-duplicate", "group:digits-0-5", "group:digits-6-9"),
        2,
    )
    assert sorted(leak.examples) == sorted([[known[0], near[0], "0"], [known[1], near[1], "1"]])
    assert leak.severity == "known"
    assert images(manifest) == images(build_benchmark("digits").manifest)
    assert verify_benchmark(manifest).ok
    report = report_leaks(manifest)
    assert report.ok
    assert {(r["first"], r["second"], r["distance"]) for r in report.rows() if r["kind"] == leak.kind} == {
        tuple(example) for example in leak.examples
    }
    assert run(app, ["audit", "leaks", str(tmp_path / "apart")], "wordnet-splits") == 0
    assert f"    1  {known[1]}  {near[1]}\n" in capsys.readouterr().out
    (tmp_path / "pairs.tsv").unlink()  # the manifest carries it
    assert report_leaks(manifest).ok
    (tmp_path / "apart/pairs/1.tsv").unlink()
    assert run(app, ["audit", "leaks", str(tmp_path / "apart")], "wordnet-splits") == 2
    assert "pairs/1.tsv" in capsys.readouterr().err


def test_a_near_duplicate_that_is_not_named_stops_the_build(tmp_path, ids):
    path = write(tmp_path, [row(ids["near"][0], ids["train 0"][0])])
    with raises(RecipeError, where="apart") as error:
        build_benchmark(path)
    assert 'kind = "near-duplicate", a = "group:digits-0-5", b = "group:digits-6-9", count = 1' in str(
        error.value.hint
    )
    path = write(tmp_path, [row(ids["train 0"][0], ids["test 0"][0])])
    with raises(RecipeError, where="apart", naming="digits-0-5"):
        build_benchmark(path)
    build_benchmark(write(tmp_path, [row(ids["train 0"][0], ids["test 0"][0])], INSIDE))


def test_drop_leaks_removes_the_ood_picture_and_that_of_the_earlier_use_in_id(tmp_path, ids):
    train, test, near = ids["train 0"], ids["test 0"], ids["near"]
    rows = [
        row(near[0], test[0]),
        row(train[1], test[1]),
        row(train[2], ids["train 1"][0]),  # of two classes: both go
        row(train[2], near[1]),  # train[2] is gone, so near[1] stays
        row(near[2], near[-1]),  # of two classes of an OOD group
        row(train[4], near[4], "different"),
    ]
    path = write(tmp_path, rows, "drop_leaks = true\n")
    built = build_benchmark(path, out=tmp_path)
    everything = images(build_benchmark("digits").manifest)
    assert everything - images(built.manifest) == {near[0], train[1], train[2], ids["train 1"][0]}
    leaks = [leak for leak in built.manifest.data.leaks if leak.kind == "near-duplicate"]
    assert [(leak.a, leak.b, leak.severity) for leak in leaks] == [
        ("group:digits-6-9", "group:digits-6-9", "recorded")
    ]
    counts = {(g.group, g.split): g for g in built.manifest.groups}
    assert (counts["digits-6-9", "test"].status, "1 image" in counts["digits-6-9", "test"].reason) == (
        "complete",
        True,
    )
    assert verify_benchmark(load_manifest(tmp_path / "apart")).ok


@pytest.mark.parametrize(
    ("roles", "removed"),
    [
        (("near", "id"), "near"),
        (("id", "external"), "external"),
        (("external", "far"), "far"),
        (("id", "csid"), None),
        (("near", "far"), None),
    ],
)
def test_which_of_two_sets_loses_a_picture(roles, removed):
    groups = [Group(name=r, role=r, source=f"of-{r}", classes={"rest": True}, images=TEST) for r in roles]
    selections = [Selection(group, "test", 2, {"c": ["x", "y"]}) for group in groups]
    drop_near_duplicates(selections, [((f"of-{roles[0]}", "x"), (f"of-{roles[1]}", "x"))])
    lost = [s.group.role for s in selections if (s.images, s.copies, s.expected) == ({"c": ["y"]}, 1, 1)]
    assert lost == ([removed] if removed else [])
    assert sum(s.copies for s in selections) == len(lost)


def test_a_table_of_other_sources_or_without_a_folder_is_refused(tmp_path, ids):
    path = write(tmp_path, [row(ids["near"][0], ids["train 0"][0], source="photographs")])
    with raises(RecipeError, where="near_duplicates") as error:
        build_benchmark(path)
    assert "digits, photographs" in str(error.value.hint)
    (tmp_path / "pairs.tsv").unlink()
    with raises(DataError, where="pairs.tsv", naming="near_duplicates"):
        build_benchmark(load_recipe(path))
