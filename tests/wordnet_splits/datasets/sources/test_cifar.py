"""CIFAR-10 and CIFAR-100: the publisher's pickles, and copies as PNG folders, Parquet and other pickles."""

from __future__ import annotations

import json
import os
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import (
    digests,
    identity,
    pictures,
    png,
    scan,
    write_pickle,
    write_shards,
)
from wordnet_splits.base.errors import MissingImageError, SourceError, UnsafeDataError
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.layouts.unpickle import load_pickle


@pytest.fixture(scope="module")
def cifar100(real_data: Path) -> dict[str, dict[str, Any]]:
    """The first 1,500 train and 1,000 test images of CIFAR-100."""
    batches = {}
    for split, count in (("train", 1500), ("test", 1000)):
        batch: Any = load_pickle(real_data / "cifar-100-python" / split)
        # copies: a view would keep all the images of the split
        batches[split] = {key: copy(value[:count]) for key, value in batch.items() if key != "batch_label"}
    return batches


@pytest.fixture(scope="module")
def names100(real_data: Path) -> list[str]:
    meta: Any = load_pickle(real_data / "cifar-100-python" / "meta")
    names: list[str] = meta["fine_label_names"]
    return names


def test_pickles_hold_every_published_image(real_data: Path) -> None:
    source = open_source("cifar100", real_data / "cifar-100-python")
    assert (source.layout, source.order, source.lossless) == ("pickle", "published", True)
    for split, count in (("train", 50_000), ("test", 10_000)):
        inventory = load_inventory("cifar100", split)
        assert inventory is not None
        found = scan(source, [split])
        assert len(found) == count
        assert [row[0] for row in found] == inventory["image_id"].to_pylist()
        assert [row[1] for row in found] == inventory["class_id"].to_pylist()
        ids = inventory["image_id"].to_pylist()[::17]
        assert digests(source, ids) == inventory["digest"].to_pylist()[::17]
    assert source.unexpected == {}


def test_cifar10_with_its_test_batch_alone(real_data: Path) -> None:
    source = open_source("cifar10", real_data)  # the folder above, as torchvision takes it
    assert source.count() == {"train": 0, "test": 10_000}
    inventory = load_inventory("cifar10", "test")
    assert inventory is not None
    ids = inventory["image_id"].to_pylist()
    assert digests(source, ids) == inventory["digest"].to_pylist()
    with raises(MissingImageError, naming=("train/frog/leptodactylus_pentadactylus_s_000004", "cifar10")):
        source.read(["train/frog/leptodactylus_pentadactylus_s_000004"])


def test_pixels_are_the_published_ones(
    real_data: Path, cifar100: dict[str, Any], names100: list[str]
) -> None:
    batch = cifar100["test"]
    row = 234
    image_id = f"test/{names100[batch['fine_labels'][row]]}/{batch['filenames'][row].removesuffix('.png')}"
    source = open_source("cifar100", real_data / "cifar-100-python")
    (raw,) = source.read([image_id])
    assert isinstance(raw, np.ndarray)
    assert (raw.shape, raw.dtype) == ((32, 32, 3), np.uint8)
    red = batch["data"][row][:1024].reshape(32, 32)
    assert np.array_equal(raw[:, :, 0], red)
    image = source.decode(raw)
    assert (image.mode, image.size) == ("RGB", (32, 32))
    assert np.array_equal(np.asarray(image), raw)


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("echo hacked",)


@pytest.mark.parametrize("file", ["test", "meta"])
def test_hostile_pickles_are_refused(tmp_path: Path, cifar100: dict[str, Any], file: str) -> None:
    write_pickle(tmp_path / "test", {k: v[:5] for k, v in cifar100["test"].items()})
    write_pickle(tmp_path / file, {"data": [{"nested": Evil()}]})
    source = open_source("cifar100", tmp_path)
    with pytest.raises(UnsafeDataError):
        scan(source)
    with raises(UnsafeDataError, naming="system"):
        source.read(["test/apple/apple_s_000022"])


def test_a_meta_file_of_other_classes_is_refused(tmp_path: Path) -> None:
    write_pickle(tmp_path / "test", {"fine_labels": [1, 2], "data": np.zeros((2, 3072), np.uint8)})
    write_pickle(tmp_path / "meta", {"fine_label_names": ["cat", "dog"]})
    with raises(SourceError, where="meta"):
        scan(open_source("cifar100", tmp_path))


def test_an_image_held_twice_is_refused(tmp_path: Path, cifar100: dict[str, Any]) -> None:
    batch = cifar100["test"]
    twice = {k: [*v[:5], *v[:5]] for k, v in batch.items() if k in ("fine_labels", "filenames")}
    write_pickle(tmp_path / "test", {**twice, "data": np.vstack([batch["data"][:5]] * 2)})
    with raises(SourceError, where="test/mountain/alp_s_000099"):
        scan(open_source("cifar100", tmp_path))


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
    """image_id -> (class_id, digest) of the images that the copies hold, from the pickles."""
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
    # Of equal images in one class a part of train holds some; which file name they had, nothing says.
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
    assert len(set(expected) - set(found)) <= 5  # equal images in one class go by image_id


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
    images[3] = png(np.zeros((32, 32, 3), np.uint8))  # no image of CIFAR
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
    for kept in ("hub", "folders"):
        assert scan(open_source("cifar100", tmp_path / kept)) == [
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
