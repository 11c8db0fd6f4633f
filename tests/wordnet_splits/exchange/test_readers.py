"""Exports in the other projects' own readers, where those are installed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.wordnet_splits.datasets.sources import trees
from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.exchange import export_benchmark, import_benchmark


@pytest.fixture
def truth() -> dict[str, dict[str, object]]:
    """The rows of `digits`, test, by source and image id."""
    rows = load_manifest("digits").images("test").to_pylist()
    return {f"{row['source']}/{row['image_id']}": row for row in rows}


def test_torchvision_reads_the_tree(export_once):
    datasets = pytest.importorskip("torchvision").datasets
    _, tree = export_once("digits", "imagefolder")
    manifest = load_manifest("digits")
    for split, group in manifest.parts:
        table = manifest.images(split, group)
        folder = datasets.ImageFolder(str(tree / split / group))
        assert Counter(folder.classes[label] for _, label in folder.samples) == Counter(
            table["class_id"].to_pylist()
        )
        digests = {digest_pixels(np.asarray(image)) for image, _ in folder}
        assert digests == set(table["digest"].to_pylist())


def test_webdataset_reads_the_shards(export_once, truth):
    webdataset = pytest.importorskip("webdataset")
    _, folder = export_once("digits", "webdataset")
    shards = sorted(str(path) for path in (folder / "test").glob("*.tar"))
    assert len(shards) == 4
    samples = list(webdataset.WebDataset(shards, shardshuffle=False).decode("pil"))
    assert len(samples) == len(truth)
    for sample in samples:
        row = truth.pop(f"{sample['json']['source']}/{sample['json']['image_id']}")
        assert sample["cls"] == sample["json"]["label"] == row["label"]
        assert sample["json"]["group"] == row["group"]
        assert digest_pixels(np.asarray(sample["png"].convert("RGB"))) == row["digest"]


def test_shards_are_the_same_bytes_each_time(export_once, tmp_path):
    _, first = export_once("digits", "webdataset")
    export_benchmark("digits", "webdataset", tmp_path / "again")
    files = {path.relative_to(first): path.read_bytes() for path in first.rglob("*.tar")}
    assert files == {path: (tmp_path / "again" / path).read_bytes() for path in files}


def test_datasets_reads_a_configuration_a_group(export_once, tmp_path, monkeypatch, truth):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    _, folder = export_once("digits", "hub")
    for group in ("digits-0-5", "digits-6-9", "gaussian", "uniform"):
        found = datasets.load_dataset(str(folder), group, split="test", cache_dir=str(tmp_path / "cache"))
        for row in found:
            wanted = truth.pop(f"{row['source']}/{row['image_id']}")
            assert (row["label"], row["class_id"]) == (wanted["label"], wanted["class_id"])
            assert digest_pixels(np.asarray(row["image"])) == wanted["digest"]
    assert not truth


def test_ids_only_holds_no_picture_and_comes_back(tmp_path):
    export_benchmark("digits", "hub", tmp_path / "hub", ids_only=True)
    path = next((tmp_path / "hub").rglob("digits-0-5-*.parquet"))
    features = json.loads(pq.read_schema(path).metadata[b"huggingface"])["info"]["features"]
    assert features["label"] == {"names": load_manifest("digits").class_names(), "_type": "ClassLabel"}
    sizes = sum(path.stat().st_size for path in (tmp_path / "hub").rglob("*.parquet"))
    assert sizes < 200_000
    done = import_benchmark("hub", tmp_path / "hub", tmp_path / "out")
    assert done.fingerprint == load_manifest("digits").fingerprint


@pytest.mark.parametrize("name", manifest_names())
def test_the_names_of_the_labels_are_distinct(name):
    """`datasets` reads no ClassLabel with a name twice, and ImageNet has *crane* twice."""
    names = load_manifest(name, check="classes").class_names()
    assert len(set(names)) == len(names)
    if name == "openood-imagenet1k":
        twice = [name for name in names if name.startswith(("crane", "maillot"))]
        assert twice == [
            "crane (n02012849)",
            "crane (n03126707)",
            "maillot (n03710637)",
            "maillot (n03710721)",
        ]


@pytest.mark.parametrize("benchmark", ["unknown-cifar", "unknown-imagenet", "digits"])
def test_pytorch_ood_maps_labels_as_we_do(benchmark, tmp_path):
    utils = pytest.importorskip("pytorch_ood.utils")
    export_benchmark(benchmark, "pytorch-ood", tmp_path / "lists")
    sources = json.loads((tmp_path / "lists" / "classes.json").read_text())["sources"]
    from wordnet_splits.datasets.catalog import load_catalog

    rows = load_manifest(benchmark).classes.select(["source", "class_id", "role", "label"]).to_pylist()
    assert {row["source"] for row in rows} == sources.keys()
    for row in rows:
        lists = sources[row["source"]]
        mapping = utils.TargetMapping(set(lists["known"]), set(lists["unknown"]))
        mapped = mapping(load_catalog(row["source"])[row["class_id"]].index)
        assert mapped == row["label"] if row["role"] == "id" else mapped < 0


def test_class_lists_of_somebody_else_make_a_recipe(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"sources": {"digits": {"known": [0, 1, 2], "unknown": [8, 9]}}}))
    done = import_benchmark("pytorch-ood", file, tmp_path / "out", roles={"unknown": "near"})
    assert done.manifest is not None
    found = [(g.group, g.role, g.split, g.actual) for g in done.manifest.groups]
    assert found == [
        ("known", "id", "classes", 3),
        ("known", "id", "test", 178 + 182 + 177),  # of scikit-learn's load_digits
        ("unknown", "near", "classes", 2),
        ("unknown", "near", "test", 174 + 180),
    ]


def test_files_are_linked_or_copied_and_nothing_leaves_the_tree(tmp_path):
    rows = trees.some("imagenet1k", "val", classes=2, each=2)
    root = tmp_path / "imagenet"
    trees.write_images(root, trees.in_class_folders(rows, "val"))
    ids = {row[0] for row in rows}
    images = load_manifest("rungs-imagenet").images().select(["group", "image_id"]).to_pylist()
    groups = sorted({image["group"] for image in images if image["image_id"] in ids})
    for name, copies in (("links", False), ("copies", True)):
        done = export_benchmark(
            "rungs-imagenet",
            "imagefolder",
            tmp_path / name,
            roots={"imagenet1k": root},
            copies=copies,
            groups=groups,
            splits=["test"],
            allow_missing=True,
        )
        files = {path.stem: path for path in (tmp_path / name).rglob("*.jpg")}
        assert files.keys() <= ids
        assert done.images == len(files)
        assert len(files) + len(done.problems) == sum(image["group"] in groups for image in images)
        for path in files.values():
            assert path.is_symlink() is not copies
            original = next(root.rglob(f"{path.stem}.JPEG"))
            assert digest_file(path.read_bytes()) == digest_file(original.read_bytes())


def test_a_tree_of_links_is_read_by_its_names(export_once, tmp_path):
    _, folder = export_once("digits", "imagefolder")
    shutil.copytree(folder, tmp_path / "tree")
    file = next((tmp_path / "tree" / "test" / "digits-0-5" / "0").iterdir())
    file.unlink()
    file.symlink_to(Path("/nowhere") / file.name)
    roles = {"digits-0-5": "id", "digits-6-9": "near"}
    sources = {"digits-0-5": "digits", "digits-6-9": "digits", "gaussian": "gaussian", "uniform": "uniform"}
    done = import_benchmark("imagefolder", tmp_path / "tree", tmp_path / "out", roles=roles, sources=sources)
    assert done.fingerprint == load_manifest("digits").fingerprint
