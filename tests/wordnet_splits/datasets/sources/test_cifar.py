from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import MissingImageError, SourceError, UnsafeDataError
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import open_source

from .cifar_copies import digests, scan, write_pickle


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


def test_truncated_and_malformed_pickles(tmp_path: Path, cifar100: dict[str, Any]) -> None:
    write_pickle(tmp_path / "test", {key: value[:500] for key, value in cifar100["test"].items()})
    whole = (tmp_path / "test").read_bytes()
    for data in (whole[: len(whole) // 2], whole[:10], b"", whole[:-1]):
        (tmp_path / "test").write_bytes(data)
        with raises(SourceError, where="test"):
            scan(open_source("cifar100", tmp_path))
    rows = np.zeros((2, 3072), np.uint8)
    for value, why in [
        ([1, 2], ()),
        ({"labels": [1, 2], "data": rows}, ()),
        ({"fine_labels": [1, 2, 3], "data": rows}, "3"),
        ({"fine_labels": [1, 2], "data": rows[:, :100]}, ()),
        ({"fine_labels": [1, 2], "data": rows.astype("i4")}, ()),
        ({"fine_labels": [1, "2"], "data": rows}, ()),
        ({"fine_labels": 1, "data": rows}, ()),
        ({"fine_labels": [1, 2], "data": rows, "filenames": ["a"]}, ()),
    ]:
        write_pickle(tmp_path / "test", value)
        with raises(SourceError, where="test", naming=why):
            scan(open_source("cifar100", tmp_path))
    write_pickle(tmp_path / "test", {"fine_labels": [1, 2], "data": rows})
    write_pickle(tmp_path / "meta", {"fine_label_names": ["cat", "dog"]})
    with raises(SourceError, where="meta"):
        scan(open_source("cifar100", tmp_path))


def test_an_image_held_twice_is_refused(tmp_path: Path, cifar100: dict[str, Any]) -> None:
    batch = cifar100["test"]
    twice = {k: [*v[:5], *v[:5]] for k, v in batch.items() if k in ("fine_labels", "filenames")}
    write_pickle(tmp_path / "test", {**twice, "data": np.vstack([batch["data"][:5]] * 2)})
    with raises(SourceError, where="test/mountain/alp_s_000099"):
        scan(open_source("cifar100", tmp_path))
