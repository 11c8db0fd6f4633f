"""Builds from real CIFAR-100, DTD, Tiny ImageNet and ImageNet-layout folders: the issue's main job."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.raising import mentions
from wordnet_splits.base.terminal.output import BAD_INPUT, LEFT_OUT
from wordnet_splits.benchmark.checks.verify import diff_manifests
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest
from wordnet_splits.cli.main import app, run
from wordnet_splits.datasets.catalog.inventory import load_inventory

from ...command import Command

ROOTS = {"cifar100": "cifar-100-python", "dtd": "dtd", "tiny-imagenet": "tiny-imagenet-200"}


@pytest.fixture
def command(capsys, monkeypatch, tmp_path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def root_flags(real_data: Path, *names: str) -> list[str]:
    return [part for name in names for part in ("--root", f"{name}={real_data / ROOTS[name]}")]


@pytest.fixture(
    scope="module", params=["unknown-cifar", pytest.param("unknown-cifar-tinyval", marks=pytest.mark.oracle)]
)
def built(request, real_data, tmp_path_factory) -> tuple[int, Manifest]:
    """The exit code of the build with every real root that it can use, and its manifest."""
    out = tmp_path_factory.mktemp("build")
    name: str = request.param
    used = ROOTS if name.endswith("tinyval") else [n for n in ROOTS if n != "tiny-imagenet"]
    flags = root_flags(real_data, *used)
    code = run(app, ["build", name, *flags, "--allow-missing", "--out", str(out), "--json"], "wordnet-splits")
    return code, load_manifest(out / name)


def counts(manifest: Manifest) -> dict[tuple[str, str], int | None]:
    return {(r.group, r.split): r.actual for r in manifest.groups}


def status(manifest: Manifest, group: str, split: str) -> dict[str, Any]:
    rows = [row.model_dump() for row in manifest.groups]
    return next(r for r in rows if (r["group"], r["split"]) == (group, split))


def test_dtd_is_a_subset_so_something_is_left_out(built):
    code, manifest = built
    assert code == LEFT_OUT
    assert not manifest.complete
    far = status(manifest, "dtd", "test")
    assert (far["published"], far["expected"], far["actual"]) == (5640, 5640, 60)
    assert far["status"] == "missing 5,580"
    kinds = Counter((p.kind, p.source) for p in manifest.data.missing)
    assert kinds == {("missing", "dtd"): 5580}


def test_dtd_keeps_the_60_that_are_there(built, real_data):
    _, manifest = built
    held = {f"{p.parent.name}/{p.stem}" for p in (real_data / "dtd" / "images").rglob("*.jpg")}
    assert len(held) == 60
    table = manifest.images("test", "dtd")
    assert set(table.column("image_id").to_pylist()) == held
    assert table.column("digest").null_count == 0
    assert set(Counter(table.column("class_id").to_pylist()).values()) == {6}


def test_cifar_100_is_there_down_to_the_last_pixel(built):
    _, manifest = built
    found = counts(manifest)
    expected = {"train": 18_000, "val": 2_000, "test": 4_000}
    assert {split: found["cifar-40", split] for split in expected} == expected
    assert (found["cifar-40", "classes"], found["cifar-60", "classes"]) == (40, 60)
    assert found["cifar-60", "test"] == 6_000
    for split, each in (("train", 450), ("val", 50), ("test", 100)):
        table = manifest.images(split, "cifar-40")
        assert table.column("digest").null_count == 0
        assert set(Counter(table.column("class_id").to_pylist()).values()) == {each}
    assert manifest.images("test", "cifar-60").column("digest").null_count == 0
    for split in expected:  # two of the five classes of every superclass
        table = manifest.images(split, "cifar-40")
        assert set(table.column("label").to_pylist()) == set(range(40))


def test_its_digests_are_those_of_the_inventory(built):
    """Inventories were made from another reading of the data: the two must agree image by image."""
    _, manifest = built
    known: dict[str, bytes] = {}
    for split in ("train", "test"):
        table = load_inventory("cifar100", split)
        assert table is not None
        known |= dict(
            zip(table.column("image_id").to_pylist(), table.column("digest").to_pylist(), strict=True)
        )
    table = manifest.images(group="cifar-40")
    rows = zip(table.column("image_id").to_pylist(), table.column("digest").to_pylist(), strict=True)
    assert all(known[image_id] == digest for image_id, digest in rows)


def test_real_pixels_change_no_frozen_row(built):
    _, manifest = built
    frozen = load_manifest(find_manifest(manifest.name))
    found = diff_manifests(frozen, manifest)
    assert not found.classes.count
    assert (found.images.only_b, found.images.changed) == ([], [])
    assert {r["source"] for r in found.images.only_a} == {"dtd"}
    assert len(found.images.only_a) == 5580


def test_what_is_not_at_hand_is_awaited_and_says_why(built):
    _, manifest = built
    lsun = status(manifest, "lsun", "test")
    assert (lsun["status"], lsun["expected"], lsun["actual"]) == ("awaiting lsun", 4000, None)
    assert "not known without the dataset" in lsun["reason"]
    assert manifest.fingerprint is None
    assert counts(manifest)["svhn", "test"] == 4000
    assert counts(manifest)["gaussian", "test"] == 10_000
    external = status(manifest, "tin158", "val")
    if manifest.name == "unknown-cifar":
        assert (external["status"], external["expected"]) == ("awaiting imagenet1k", 2000)
    else:
        assert (external["status"], external["published"], external["actual"]) == ("complete", 2000, 7900)
        table = manifest.images("val", "tin158")
        assert table.column("digest").null_count == 0
        assert set(Counter(table.column("class_id").to_pylist()).values()) == {50}


def test_without_allow_missing_nothing_is_written(command, real_data, tmp_path):
    line = command("build", "unknown-cifar-tinyval", *root_flags(real_data, "dtd"), "--out", "out").error
    assert line.startswith("error: unknown-cifar-tinyval: 5,580 of 5,640 images of dtd are missing under ")
    left = {p.name.removeprefix(".unknown-cifar-tinyval") for p in (tmp_path / "out").iterdir()}
    assert left == {".journal"}


# -- ImageNet --------------------------------------------------------------------------------------------


def test_a_folder_of_imagenet_pictures_under_other_names_says_what_is_missing(command, real_data, tmp_path):
    flag = f"imagenet1k={real_data / 'imagenet'}"
    refused = command("build", "unknown-imagenet", "--root", flag, "--out", "out")
    assert refused.code == BAD_INPUT
    assert mentions(refused.error, "20,000", "imagenet1k")
    assert mentions(refused.error, "200")
    assert not (tmp_path / "out" / "unknown-imagenet").exists()

    left = command("build", "unknown-imagenet", "--root", flag, "--out", "out", "--allow-missing", "--json")
    assert left.code == LEFT_OUT
    (row,) = left.json["built"]
    assert sum(row["unexpected"]["imagenet1k"].values()) == 200
    assert Counter(m["kind"] for m in row["missing"]) == {"missing": 20_000}
    groups = {(g["group"], g["split"]): g for g in row["groups"]}
    for name, split, expected in (
        ("imagenet-200", "train", 248_758),
        ("imagenet-200", "val", 10_000),
        ("external", "train", 485_219),
        ("external", "val", 19_750),
    ):
        drawn = groups[name, split]
        assert (drawn["status"], drawn["expected"], drawn["actual"]) == (
            "awaiting imagenet1k",
            expected,
            None,
        )
        assert "the root holds 0 of 1,281,167 train images of imagenet1k" in drawn["reason"]
    assert groups["imagenet-200", "test"]["status"] == "missing 10,000"
    assert groups["food", "test"]["status"] == groups["caltech", "test"]["status"] == "complete"
    assert not (tmp_path / "out" / "unknown-imagenet" / "images" / "train").exists()
    table = pq.read_table(tmp_path / "out" / "unknown-imagenet" / "images" / "test" / "imagenet-200.parquet")
    assert table.num_rows == 0


def test_the_table_a_user_sees(command, real_data):
    done = command("build", "unknown-cifar", *root_flags(real_data, "dtd"), "--allow-missing")
    assert done.code == LEFT_OUT
    lines = {tuple(line.split()[1:5]): line.split()[5:] for line in done.out.splitlines() if line}
    assert lines["dtd", "far", "dtd", "test"] == ["5,640", "60", "missing", "5,580"]
    assert lines["tin158", "external", "imagenet1k", "train"] == [
        "79,000",
        "(79,000)",
        "awaiting",
        "imagenet1k",
    ]
    assert "dtd: 5,580 images missing: banded/banded_0010, banded/banded_0011" in done.err
    assert "unknown-cifar: tin158 train and val: awaiting imagenet1k: the image ids of" in done.out
