"""The benchmarks of Recalcati et al.: classes, roles, labels and per-split counts beside table II-V."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import jpeg
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog

FROZEN = (
    "places-inter",
    "places-wordnet-t40",
    "places-wordnet-t45",
    "places-wordnet-t50",
    "places-typical-t1",
    "places-typical-t2",
)


def counts(manifest: Manifest, group: str) -> dict[str, tuple[int | None, int | None]]:
    """(published, ours or expected) of the classes and each split of a group."""
    return {
        row.split: (row.published, row.expected if row.actual is None else row.actual)
        for row in manifest.groups
        if row.group == group
    }


@pytest.mark.parametrize("name", FROZEN)
def test_places_are_halved_and_alone_have_labels(name: str) -> None:
    manifest = load_manifest(name)
    assert counts(manifest, "places") == {
        "classes": (365, 365),
        "val": (18250, 18250),
        "test": (18250, 18250),
    }
    halves = [set(manifest.images(s, "places")["image_id"].to_pylist()) for s in ("val", "test")]
    assert not halves[0] & halves[1]
    assert len(halves[0] | halves[1]) == 36_500
    for split in ("val", "test"):
        assert set(Counter(manifest.images(split, "places")["class_id"].to_pylist()).values()) == {50}
    rows = manifest.classes.to_pylist()
    labels = {r["class_id"]: r["label"] for r in rows if r["group"] == "places"}
    assert labels == {c.class_id: c.index for c in load_catalog("places365")}
    assert {r["label"] for r in rows if r["group"] != "places"} == {-1}


def test_inter_has_the_published_classes_and_counts() -> None:
    assert counts(load_manifest("places-inter"), "imagenet") == {
        "classes": (968, 968),
        "val": (18108, 18108),
        "test": (18108, 18108),
    }


@pytest.mark.parametrize(
    ("name", "bound", "published", "ours"),
    [("t40", 0.60, 56, 58), ("t45", 0.55, 90, 90), ("t50", 0.50, 140, 165)],
)
def test_similar_classes_of_imagenet_are_id(name: str, bound: float, published: int, ours: int) -> None:
    manifest = load_manifest(f"places-wordnet-{name}")
    assert counts(manifest, "imagenet-id") == {
        "classes": (published, ours),
        "val": (50 * published, 50 * ours),
        "test": (50 * published, 50 * ours),
    }
    assert counts(manifest, "imagenet-ood")["classes"] == (1000 - published, 1000 - ours)
    for row in manifest.classes.to_pylist():
        if row["source"] == "imagenet1k":
            assert row["role"] == ("id" if row["group"] == "imagenet-id" else "far")
            (via,) = [v for v in row["via"] if v["relation"] == "threshold"] or [{"value": 0}]
            assert (via["value"] >= bound) == (row["role"] == "id")


@pytest.mark.parametrize(("name", "typical"), [("t1", "near"), ("t2", "id")])
def test_levels_of_the_counterpart_of_facets(name: str, typical: str) -> None:
    manifest = load_manifest(f"places-typical-{name}")
    rows = manifest.classes.to_pylist()
    groups = Counter(r["group"] for r in rows)
    assert [groups[f"sun-{level}"] for level in range(4)] == [294, 69, 19, 15]
    roles = {r["group"]: r["role"] for r in rows}
    assert [roles[f"sun-{level}"] for level in range(4)] == ["id", "id", typical, "far"]
    assert (groups["imagenet-id"], groups["imagenet-ood"]) == (192, 808)
    assert (roles["imagenet-id"], roles["imagenet-ood"], roles["imagenet-ood-train"]) == ("id", "far", "far")
    assert counts(manifest, "imagenet-id")["test"] == (8900, 25 * 192)
    awaiting = {
        row.group: row.status for row in manifest.groups if row.group.startswith("sun") and row.split == "val"
    }
    assert set(awaiting.values()) == {"awaiting sun397"}


HALVES = """
schema = 1
name = "halves"
[[group]]
name = "all"
role = "id"
source = "sun397"
labelled = false
classes = { rest = true }
images = { val = { from = "all", half = true }, test = { from = "all", rest = true } }
"""


def test_halves_of_a_source_are_cut_by_class(tmp_path: Path) -> None:
    """With a copy at hand: floor(n/2) of each class to val, the others to test, nothing twice."""
    held = {c.class_id: 2 + n % 3 for n, c in enumerate(load_catalog("sun397"))}
    picture = jpeg(1)
    for class_id, number in held.items():
        folder = tmp_path / "root" / class_id[0] / class_id
        folder.mkdir(parents=True)
        for n in range(number):
            own_tail = f"{class_id} {n}".encode()  # of the file, not of the picture
            (folder / f"sun_{'a' * 15}{chr(97 + n)}.jpg").write_bytes(picture + own_tail)
    recipe = tmp_path / "halves.toml"
    recipe.write_text(HALVES)
    found = build_benchmark(recipe, roots={"sun397": tmp_path / "root"}, local=True).manifest
    val, test = (found.images(s, "all") for s in ("val", "test"))
    assert Counter(val["class_id"].to_pylist()) == {c: n // 2 for c, n in held.items()}
    assert Counter(test["class_id"].to_pylist()) == {c: n - n // 2 for c, n in held.items()}
    assert not set(val["image_id"].to_pylist()) & set(test["image_id"].to_pylist())
    assert set(test["label"].to_pylist()) == {-1}
    shutil.rmtree(tmp_path / "root")


def test_only_id_groups_can_be_without_labels(tmp_path: Path) -> None:
    recipe = tmp_path / "halves.toml"
    recipe.write_text(
        HALVES
        + HALVES.partition("[[group]]")[2]
        .join(["\n[[group]]", ""])
        .replace('"all"\nrole = "id"', '"b"\nrole = "far"')
    )
    with raises(RecipeError, where="halves.toml, line 12"):
        build_benchmark(recipe)
