from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import MissingImageError, SourceError, UnsafeDataError
from wordnet_splits.datasets.sources import Source, open_source

from .cifar_copies import (
    digests,
    identity,
    pictures,
    png,
    scan,
    write_pickle,
    write_shards,
)


@pytest.fixture(scope="module")
def encoded(cifar100: dict[str, dict[str, Any]]) -> dict[str, list[bytes]]:
    return {split: [png(p) for p in pictures(batch)] for split, batch in cifar100.items()}


@pytest.fixture(scope="module")
def png_root(
    tmp_path_factory: pytest.TempPathFactory,
    cifar100: dict[str, dict[str, Any]],
    names100: list[str],
    encoded: dict[str, list[bytes]],
) -> Path:
    root = tmp_path_factory.mktemp("cifar100-png")
    for split, batch in cifar100.items():
        for name in names100:
            (root / split / name).mkdir(parents=True)
        for row, file in enumerate(batch["filenames"]):
            (root / split / names100[batch["fine_labels"][row]] / file).write_bytes(encoded[split][row])
    return root


@pytest.fixture(scope="module")
def parquet_root(
    tmp_path_factory: pytest.TempPathFactory,
    cifar100: dict[str, dict[str, Any]],
    encoded: dict[str, list[bytes]],
) -> Path:
    root = tmp_path_factory.mktemp("cifar100-hub")
    for split, batch in cifar100.items():
        rows = np.random.default_rng(0).permutation(len(encoded[split]))
        table = pa.table(
            {
                "img": [{"bytes": encoded[split][row], "path": None} for row in rows],
                "fine_label": [batch["fine_labels"][row] for row in rows],
                "coarse_label": [batch["coarse_labels"][row] for row in rows],
            }
        )
        write_shards(root / "cifar100", split, table, shards=2)
    return root


@pytest.fixture(scope="module")
def reference(real_data: Path, cifar100: dict[str, Any], names100: list[str]) -> dict[str, tuple[str, bytes]]:
    """image_id -> (class_id, digest) of the pictures that the copies hold, from the pickles."""
    source = open_source("cifar100", real_data / "cifar-100-python")
    ids = [
        f"{split}/{names100[label]}/{file.removesuffix('.png')}"
        for split, batch in cifar100.items()
        for label, file in zip(batch["fine_labels"], batch["filenames"], strict=True)
    ]
    return {i: (i.split("/")[1], d) for i, d in zip(ids, digests(source, ids), strict=True)}


def test_a_png_copy_is_the_same_dataset(png_root: Path, reference: dict[str, tuple[str, bytes]]) -> None:
    source = open_source("cifar100", png_root)
    assert source.layout == "folder"
    assert identity(source) == reference
    assert source.unexpected == {}


def test_a_parquet_copy_is_the_same_dataset(
    parquet_root: Path, reference: dict[str, tuple[str, bytes]]
) -> None:
    source = open_source("cifar100", parquet_root)
    assert (source.layout, source.order) == ("parquet", "published")
    found = identity(source)
    test = {i: v for i, v in reference.items() if i.startswith("test/")}
    assert {i: v for i, v in found.items() if i.startswith("test/")} == test
    # Of equal pictures in one class a part of train holds some; which file name they had, nothing says.
    assert sorted(v for i, v in found.items() if i.startswith("train/")) == sorted(
        v for i, v in reference.items() if i.startswith("train/")
    )
    assert source.unexpected == {}


def test_numbered_files_in_class_folders_are_matched_by_pixels(
    tmp_path: Path,
    cifar100: dict[str, Any],
    names100: list[str],
    encoded: dict[str, list[bytes]],
    reference: Any,
) -> None:
    labels = cifar100["test"]["fine_labels"]
    rows = range(0, 1000, 2)
    for row in rows:
        folder = tmp_path / "cifar100" / "test" / names100[labels[row]]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{row:04d}.png").write_bytes(encoded["test"][row])
    found = identity(open_source("cifar100", tmp_path))
    expected = [f"test/{names100[labels[r]]}/{cifar100['test']['filenames'][r][:-4]}" for r in rows]
    assert sorted(found.values()) == sorted(reference[i] for i in expected)
    assert len(set(expected) - set(found)) <= 5  # equal pictures in one class go by image_id


def test_classes_of_both_splits_in_one_folder(
    tmp_path: Path,
    cifar100: dict[str, Any],
    names100: list[str],
    encoded: dict[str, list[bytes]],
    reference: Any,
) -> None:
    expected = {}
    for split, batch in cifar100.items():
        for row in range(300):
            name = names100[batch["fine_labels"][row]]
            (tmp_path / name).mkdir(exist_ok=True)
            file = batch["filenames"][row] if row % 3 else f"{split}{row}.png"
            (tmp_path / name / file).write_bytes(encoded[split][row])
            image_id = f"{split}/{name}/{batch['filenames'][row][:-4]}"
            expected[image_id] = reference[image_id]
    source = open_source("cifar100", tmp_path)
    assert identity(source) == expected
    assert source.count(["test"]) == {"test": 300}


def test_pickles_without_file_names_are_matched_by_pixels(
    tmp_path: Path, cifar100: dict[str, Any], reference: Any
) -> None:
    batch = cifar100["test"]
    write_pickle(tmp_path / "test", {"fine_labels": batch["fine_labels"], "data": batch["data"]})
    found = identity(open_source("cifar100", tmp_path))
    assert found == {i: v for i, v in reference.items() if i.startswith("test/")}


@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles_written_again_in_another_order_by_python_3(
    tmp_path: Path, cifar100: dict[str, Any], names100: list[str], reference: Any, protocol: int
) -> None:
    order = np.random.default_rng(1).permutation(1000)
    batch = cifar100["test"]
    again = {
        b"data": batch["data"][order],
        b"fine_labels": np.array(batch["fine_labels"])[order],
        b"filenames": [batch["filenames"][i].encode() for i in order],
    }
    write_pickle(tmp_path / "test", again, protocol)
    write_pickle(tmp_path / "meta", {b"fine_label_names": [name.encode() for name in names100]}, protocol)
    found = identity(open_source("cifar100", tmp_path))
    assert found == {i: v for i, v in reference.items() if i.startswith("test/")}


def test_what_cannot_be_matched_is_reported(
    tmp_path: Path, real_data: Path, encoded: dict[str, list[bytes]], cifar100: dict[str, Any]
) -> None:
    labels = cifar100["test"]["fine_labels"][:50]
    images = encoded["test"][:50]
    images[3] = png(np.zeros((32, 32, 3), np.uint8))  # no picture of CIFAR
    images[4] = png(np.zeros((64, 64, 3), np.uint8))
    images[5] = images[5][:100]
    images[6] = images[7]  # the same one twice; its class is another
    labels[8] = 100
    table = pa.table({"img": [{"bytes": b, "path": ""} for b in images], "fine_label": labels})
    write_shards(tmp_path / "data", "test", table)
    source = open_source("cifar100", tmp_path)
    assert len(scan(source)) == 45
    assert source.unexpected == {
        "test-00000-of-00001.parquet: pixels of no known image": 4,
        "test-00000-of-00001.parquet: unknown label": 1,
    }


def test_cifar10_train_without_names_cannot_be_matched(tmp_path: Path) -> None:
    table = pa.table(
        {"img": [{"bytes": png(np.zeros((32, 32, 3), np.uint8)), "path": None}] * 3, "label": [0, 1, 2]}
    )
    write_shards(tmp_path / "plain_text", "train", table)
    source = open_source("cifar10", tmp_path)
    assert scan(source) == []
    assert sum(source.unexpected.values()) == 3


def test_unknown_names_in_folders_are_counted(
    tmp_path: Path, cifar100: dict[str, Any], names100: list[str], encoded: dict[str, list[bytes]]
) -> None:
    batch = cifar100["test"]
    for row in range(20):
        folder = tmp_path / "test" / names100[batch["fine_labels"][row]]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / batch["filenames"][row]).write_bytes(encoded["test"][row])
    first = tmp_path / "test" / names100[batch["fine_labels"][0]]
    (first / "readme.txt").write_text("x")
    (first / "picture.jpg").write_bytes(b"x")
    (first / "broken.png").write_bytes(b"x")
    (tmp_path / "test" / "unicorn").mkdir()
    source = open_source("cifar100", tmp_path)
    assert len(scan(source)) == 20
    expected = {f"test/{first.name}/{name}" for name in ("readme.txt", "picture.jpg", "broken.png")}
    assert set(source.unexpected) == expected | {"test/unicorn"}


def test_another_dataset_is_named(real_data: Path, parquet_root: Path, png_root: Path) -> None:
    with raises(SourceError, where="cifar-10-batches-py", naming="cifar100"):
        open_source("cifar100", real_data / "cifar-10-batches-py")
    with raises(SourceError, where="cifar-100-python", naming=("cifar10", "cifar100")):
        open_source("cifar10", real_data / "cifar-100-python")
    with raises(SourceError, naming=("cifar10", "cifar100")):
        open_source("cifar10", parquet_root)
    with raises(SourceError, naming=("cifar10", "cifar100")):
        open_source("cifar10", png_root)
    with raises(SourceError, where="dtd", naming="cifar100"):
        open_source("cifar100", real_data / "dtd")


def test_the_hubs_misspelt_class_is_known(tmp_path: Path, names100: list[str], png_root: Path) -> None:
    names = ["cra" if name == "crab" else name for name in names100]
    features = {"info": {"features": {"fine_label": {"names": names, "_type": "ClassLabel"}}}}
    picture = next((png_root / "test" / "crab").iterdir())
    table = pa.table(
        {"img": [{"bytes": picture.read_bytes(), "path": None}], "fine_label": [names.index("cra")]}
    )
    table = table.replace_schema_metadata({b"huggingface": json.dumps(features)})
    write_shards(tmp_path / "hub" / "cifar100", "test", table)
    (tmp_path / "folders" / "test" / "cra").mkdir(parents=True)
    (tmp_path / "folders" / "test" / "cra" / picture.name).write_bytes(picture.read_bytes())
    for copy in ("hub", "folders"):
        assert scan(open_source("cifar100", tmp_path / copy)) == [
            (f"test/crab/{picture.stem}", "crab", "test")
        ]


def test_parquet_that_names_other_classes_is_another_dataset(tmp_path: Path) -> None:
    features = b'{"info": {"features": {"label": {"names": ["cat", "dog"]}}}}'
    table = pa.table({"img": [{"bytes": b"", "path": ""}], "label": [0]})
    write_shards(tmp_path, "train", table.replace_schema_metadata({b"huggingface": features}))
    with raises(SourceError, where=tmp_path, naming="cifar10"):
        open_source("cifar10", tmp_path)


def test_corrupt_parquet(tmp_path: Path, parquet_root: Path) -> None:
    folder = tmp_path / "cifar100"
    folder.mkdir()
    whole = (parquet_root / "cifar100" / "test-00000-of-00002.parquet").read_bytes()
    (folder / "test-00000-of-00001.parquet").write_bytes(whole[:5000])
    with raises(SourceError, where="test-00000-of-00001.parquet"):
        open_source("cifar100", tmp_path)
    damaged = whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :]
    (folder / "test-00000-of-00001.parquet").write_bytes(damaged)
    source = open_source("cifar100", tmp_path)
    with raises(SourceError, where="test-00000-of-00001.parquet"):
        scan(source)


def test_corrupt_png_is_a_missing_image_that_is_named(tmp_path: Path, png_root: Path) -> None:
    folder = tmp_path / "test" / "apple"
    folder.mkdir(parents=True)
    whole = (png_root / "test" / "apple" / "apple_s_000022.png").read_bytes()
    for data in (whole[:200], b"", png(np.zeros((8, 8, 3), np.uint8)), b"\x89PNG" + bytes(2_000_000)):
        (folder / "apple_s_000022.png").write_bytes(data)
        with raises(MissingImageError, where=tmp_path, naming="test/apple/apple_s_000022"):
            open_source("cifar100", tmp_path).read(["test/apple/apple_s_000022"])


def test_links_stay_inside_the_root(tmp_path: Path, png_root: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes((png_root / "test" / "apple" / "apple_s_000022.png").read_bytes())
    folder = tmp_path / "root" / "test" / "apple"
    folder.mkdir(parents=True)
    (folder / "apple_s_000022.png").symlink_to(outside)
    with raises(UnsafeDataError, where="apple_s_000022.png"):
        scan(open_source("cifar100", tmp_path / "root"))
    (folder / "apple_s_000022.png").unlink()
    (folder / "inside.png").write_bytes(outside.read_bytes())
    (folder / "apple_s_000022.png").symlink_to("inside.png")
    assert scan(open_source("cifar100", tmp_path / "root")) == [
        ("test/apple/apple_s_000022", "apple", "test")
    ]
    (folder / "again").symlink_to("..")
    with raises(SourceError, where="again"):
        scan(open_source("cifar100", tmp_path / "root"))
    (tmp_path / "pickles").mkdir()
    (tmp_path / "pickles" / "test").symlink_to(outside)
    with raises(UnsafeDataError, where="test"):
        scan(open_source("cifar100", tmp_path / "pickles"))


def test_ids_that_cannot_be_are_missing_not_read(real_data: Path, png_root: Path, parquet_root: Path) -> None:
    for root in (real_data, png_root, parquet_root):
        source = open_source("cifar100", root)
        for image_id in (
            "",
            "x",
            "val/apple/apple_s_000022",
            "test/apple/../apple/apple_s_000022",
            "test/apple/no",
        ):
            with pytest.raises(MissingImageError):
                source.read([image_id])


def worker(job: tuple[Source, list[str]]) -> tuple[list[bytes], int, int]:
    source, ids = job
    return digests(source, ids), id(source), os.getpid()


@pytest.fixture(scope="module", params=["fork", "spawn"])
def pool(request: pytest.FixtureRequest) -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context(request.param)) as executor:
        yield executor


@pytest.mark.parametrize("layout", ["pickle", "folder", "parquet"])
def test_workers_read_the_same_and_open_once(
    layout: str, pool: ProcessPoolExecutor, real_data: Path, png_root: Path, parquet_root: Path
) -> None:
    root = {"pickle": real_data / "cifar-100-python", "folder": png_root, "parquet": parquet_root}[layout]
    source = open_source("cifar100", root)
    ids = [row[0] for row in scan(source, ["test"])][:300]
    here = digests(source, ids)
    results = list(pool.map(worker, [(source, ids[:150]), (source, ids[150:])]))
    assert results[0][0] + results[1][0] == here
    assert results[0][2] != os.getpid()
    assert results[0][1] == results[1][1]  # one object in the worker, so one index and one open batch
    assert len(pickle.dumps(source)) < 2000
