"""OpenOOD v1.5's benchmarks on CIFAR: every frozen set is the published list, label for label."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest

Row = dict[str, str]


def mnist(row: Row) -> str:
    split, _, index = row["image_id"].partition("/")
    return f"mnist/{split}/{row['class_id']}_{index}.jpg"


def svhn(row: Row) -> str:
    return f"svhn/test/{int(row['image_id'].removeprefix('test/')) + 1:06d}_{row['class_id']}.jpg"


# The path in OpenOOD's lists of an image of each source, written independently of what made our lists
PATHS: dict[str, Callable[[Row], str]] = {
    "openood-cifar10": lambda row: f"cifar10/{row['image_id']}.png",
    "openood-cifar100": lambda row: f"cifar100/{row['image_id']}.png",
    "openood-mnist": lambda row: f"mnist/{row['image_id']}.jpg",
    "openood-svhn": lambda row: f"svhn/{row['image_id']}.jpg",
    "openood-tin597": lambda row: f"tin597/test/{row['class_id']}/images/{row['image_id']}.JPEG",
    "tiny-imagenet": lambda row: f"tin/val/images/{row['image_id']}.JPEG",
    "dtd": lambda row: f"texture/{row['image_id']}.jpg",
    "places365": lambda row: f"places365/{row['class_id'].replace('/', '-')}/{row['image_id']}.jpg",
    "mnist": mnist,
    "svhn": svhn,
}
BENCHMARKS = ("cifar10", "cifar100")
OWN_NAMES = {"textures": "texture"}  # group -> what the list calls it


def published(facts: Path, benchmark: str, split: str, group: str) -> set[str]:
    name = f"{split}_{OWN_NAMES.get(group, group)}.txt.gz"
    text = gzip.decompress((facts / "openood/benchmark_imglist" / benchmark / name).read_bytes()).decode()
    return {line for line in text.splitlines() if line and not line.startswith("#")}


def lines(name: str, split: str, group: str) -> set[str]:
    rows = load_manifest(name).images(split, group).to_pylist()
    found = {f"{PATHS[row['source']](row)} {row['label']}" for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.sampled("oracle", one_in=4)
@pytest.mark.parametrize("variant", ["", "-jpeg"])
@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_frozen_set_is_the_published_list(facts: Path, benchmark: str, variant: str) -> None:
    name = f"openood-{benchmark}{variant}"
    parts = sorted(load_manifest(name).parts)
    assert len(parts) == 11
    for split, group in parts:
        assert lines(name, split, group) == published(facts, benchmark, split, group), (split, group)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_clean_variant_drops_whole_classes_and_keeps_the_rest(facts: Path, benchmark: str) -> None:
    whole, clean = load_manifest(f"openood-{benchmark}"), load_manifest(f"openood-{benchmark}-clean")
    kept = {(r["source"], r["class_id"]): r["group"] for r in clean.classes.to_pylist()}
    dropped = 0
    for split, group in sorted(whole.parts):
        rows = whole.images(split, group).to_pylist()
        left = {r["image_id"] for r in rows if kept[r["source"], r["class_id"]] == group}
        assert left == set(clean.images(split, group)["image_id"].to_pylist())
        dropped += len(rows) - len(left)
    assert dropped == {"cifar10": 87 + 58 + 7400, "cifar100": 1000 + 244 + 2871 + 7400}[benchmark]
    serious = [leak for leak in clean.data.leaks if leak.severity != "recorded"]
    assert serious == []


def test_counts_that_differ_from_the_paper_are_said() -> None:
    differs = {
        (name, row.group, row.split): (row.published, row.actual)
        for name in ("openood-cifar10", "openood-cifar100")
        for row in load_manifest(name).groups
        if row.published is not None and row.published != row.actual
    }
    assert differs == {
        ("openood-cifar10", "tin", "test"): (7_797, 7_793),
        ("openood-cifar100", "cifar10", "test"): (9_000, 10_000),
        ("openood-cifar100", "tin", "val"): (1_000, 972),
    }
    for name, group, _ in differs:
        assert next(g.note for g in load_recipe(name).group if g.name == group)


def test_tin597_keeps_seven_birds_and_two_dogs_and_22_scenes() -> None:
    leaks = {(k.kind, k.a, k.b): k for k in load_manifest("openood-cifar10").data.leaks}
    kin = leaks["ancestry", "group:cifar10", "group:tin597"]
    assert kin.count == 9
    birds = [k for k in load_recipe("openood-cifar10").known_leak if k.b == "group:tin597" and k.classes]
    assert sorted(c for k in birds for c, _ in k.classes or () if c in ("bird", "dog")) == [
        *["bird"] * 7, *["dog"] * 2,
    ]  # fmt: skip
    assert leaks["class", "group:places365", "group:tin597"].count == 22
    assert {kin.severity, leaks["class", "group:places365", "group:tin597"].severity} == {"known"}


def test_the_mnist_part_builds_from_the_publishers_files(real_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    others = '["cifar10", "tin", "svhn", "textures", "places365", "tin597"]'
    path.write_text(f'extends = "openood-cifar100"\nname = "mine"\ndrop = {others}\n')
    built = build_benchmark(path, roots={"mnist": real_data / "mnist"})
    assert built.problems == []
    table = built.manifest.images("test", "mnist")
    frozen = load_manifest("openood-cifar100").images("test", "mnist")
    assert table.select(["image_id", "class_id"]).equals(frozen.select(["image_id", "class_id"]))
    assert table["digest"].null_count == 0
