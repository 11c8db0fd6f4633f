"""The ladders: every class on the rung that its distance to the nearest ID class says."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import pytest

from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.resolve import load_manifest

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
