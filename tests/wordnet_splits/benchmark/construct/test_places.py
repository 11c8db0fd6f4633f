"""Benchmarks of Recalcati et al. and Abdelzad et al., and the ladders: classes, roles and counts."""

from __future__ import annotations

import shutil
from bisect import bisect_right
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import jpeg
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.benchmark.rules import Context, decide
from wordnet_splits.benchmark.rules.syntax import ClassRule
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.wordnet.taxonomy import Taxonomy

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


CUTS = (0.45, 0.50, 0.55, 0.60)
LADDERS = {
    "rungs-imagenet": (("rung-1", 208), ("rung-2", 142), ("rung-3", 248), ("rung-4", 91), ("rung-5", 111)),
    "rungs-cifar100": (("rung-1", 15), ("rung-2", 16), ("rung-3", 7), ("rung-4", 8), ("rung-5", 14)),
}


@pytest.mark.parametrize("name", LADDERS)
def test_each_class_is_on_the_rung_of_its_similarity(name):
    """The class table's own measure of nearness is found by other code than the rule's."""
    rows = [r for r in load_manifest(name).classes.to_pylist() if r["role"] in ("near", "far")]
    assert {r["group"] for r in rows} == {rung for rung, _ in LADDERS[name]}
    for row in rows:
        assert row["group"] == f"rung-{len(CUTS) + 1 - bisect_right(CUTS, row['mean'])}", row["class_id"]
    assert Counter(r["group"] for r in rows) == dict(LADDERS[name])
    assert {r["role"] for r in rows if r["mean"] >= 0.5} == {"near"}
    assert {r["role"] for r in rows if r["mean"] < 0.5} == {"far"}


def test_the_validation_images_are_all_that_imagenet_needs():
    manifest = load_manifest("rungs-imagenet")
    assert manifest.complete
    assert {row.split for row in manifest.groups} == {"classes", "test"}
    ids = manifest.images().column("image_id").to_pylist()
    assert len(set(ids)) == len(ids) == 50_000
    assert all(image_id.startswith("ILSVRC2012_val_") for image_id in ids)


def test_cifar_builds_whole_from_the_publishers_files(real_data):
    built = build_benchmark("rungs-cifar100", roots={"cifar100": real_data / "cifar-100-python"})
    assert built.manifest.complete
    assert built.manifest.fingerprint == load_manifest("rungs-cifar100").fingerprint


SMALL = 4840
WHOLE = 10_000


def expected(manifest: Manifest) -> dict[tuple[str, str], tuple[int | None, int | None, str]]:
    rows = [row for row in manifest.data.groups if row.split != "classes"]
    return {(row.group, row.split): (row.expected, row.actual, row.status) for row in rows}


@pytest.mark.parametrize(
    ("name", "known", "far"), [("mnist", "mnist", "fashion-mnist"), ("fashion", "fashion-mnist", "mnist")]
)
@pytest.mark.parametrize(("ending", "count"), [("", WHOLE), ("-small", SMALL)])
def test_every_set_has_as_many_images(name: str, known: str, far: str, ending: str, count: int) -> None:
    manifest = load_manifest(f"optimizers-{name}{ending}")
    found = expected(manifest)
    assert {group: row[0] for (group, split), row in found.items() if split == "test"} == dict.fromkeys(
        (known, far, "omniglot", "gaussian", "uniform"), count
    )
    assert (found[known, "val"][0], found[known, "train"][0]) == (6000, 54_000)
    awaited = {"fashion-mnist"} | ({"omniglot"} if not ending else set())
    assert {key[0] for key, row in found.items() if row[2] != "complete"} == awaited
    assert set(manifest.data.awaiting) == awaited
    assert all(row[1] is None for key, row in found.items() if key[0] in awaited)


def test_the_small_benchmark_holds_each_drawing_once() -> None:
    table = load_manifest("optimizers-mnist-small").images("test", "omniglot")
    ids = table["image_id"].to_pylist()
    assert len(set(ids)) == len(ids) == SMALL
    assert set(Counter(table["class_id"].to_pylist()).values()) == {20}
    assert set(table["view"].to_pylist()) == {"inverted-28"}
    known = load_manifest("optimizers-mnist-small").images("test", "mnist")
    assert set(Counter(known["class_id"].to_pylist()).values()) == {484}


def test_the_classes_of_a_publishers_split() -> None:
    rule = ClassRule.model_validate({"listed": "split:omniglot/evaluation"})
    ids = ["Greek/character01", "Angelic/character01", "Futurama/character01"]
    verdicts = decide(rule, "omniglot", ids, Context(taxonomy=Taxonomy.embedded()))
    assert [verdicts[i].accepted for i in ids] == [False, True, False]


@pytest.mark.oracle
def test_built_whole_from_real_data(real_data: Path, tmp_path: Path) -> None:
    """Our copy of Fashion-MNIST is not in the publisher's order, so the whole of it is a local build."""
    roots = {name: real_data / name for name in ("mnist", "fashion-mnist", "omniglot")}
    built = build_benchmark("optimizers-mnist-small", roots=roots, out=tmp_path, local=True).manifest
    assert built.name == "optimizers-mnist-small@local"
    assert (built.data.complete, list(built.data.awaiting), list(built.data.missing)) == (True, [], [])
    assert {row[:2] for key, row in expected(built).items() if key[1] == "test"} == {(SMALL, SMALL)}
    frozen = load_manifest("optimizers-mnist-small")
    for split, group in frozen.parts:
        assert built.images(split, group).equals(frozen.images(split, group)), group
    pytest.importorskip("torch")
    from loaders import UnknownDetectionSet

    drawings = UnknownDetectionSet(built, group="omniglot", split="test", roots=roots)
    image, label = drawings[7]
    assert (len(drawings), image.size, label) == (SMALL, (28, 28), -1)
    source = open_source("omniglot", roots["omniglot"])
    raw = source.decode(source.read([drawings.table["image_id"][7].as_py()])[0])
    shrunk = ImageOps.invert(raw).resize((28, 28), Image.Resampling.BILINEAR)
    assert np.array_equal(np.asarray(image), np.asarray(shrunk))
    digits = UnknownDetectionSet(built, group="mnist", split="test", roots=roots)
    assert Counter(digits[i][1] for i in range(0, SMALL, 40)).keys() <= set(range(10))


def test_places_against_whole_house_numbers() -> None:
    manifest = load_manifest("places-baseline")
    counts = {key: row[1] for key, row in expected(manifest).items()}
    assert counts == {
        ("places", "val"): 18_250,
        ("places", "test"): 18_250,
        ("svhn-train", "val"): 16_701,
        ("svhn-train", "test"): 16_701,
        ("svhn-test", "val"): 1_549,
        ("svhn-test", "test"): 1_549,
    }
    assert manifest.data.complete
    assert set(Counter(manifest.images("val", "places")["class_id"].to_pylist()).values()) == {50}
