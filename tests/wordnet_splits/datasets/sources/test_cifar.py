"""CIFAR-10 and CIFAR-100: the publisher's pickles, and copies as PNG folders, Parquet and other pickles."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import (
    digests,
    identity,
    png,
    scan,
    write_pickle,
    write_shards,
)
from wordnet_splits.base.errors import MissingImageError, SourceError, UnsafeDataError
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.layouts.unpickle import load_pickle

Identity = dict[str, tuple[str, bytes]]
"""image_id -> (class_id, digest)."""


class Published(NamedTuple):
    """An image of CIFAR-100."""

    split: str
    class_id: str
    file: str
    label: int
    pixels: npt.NDArray[np.uint8]
    png: bytes

    @property
    def image_id(self) -> str:
        return f"{self.split}/{self.class_id}/{self.file.removesuffix('.png')}"

    @property
    def row(self) -> npt.NDArray[np.uint8]:
        """The pixels as a batch holds them, channel by channel."""
        return self.pixels.transpose(2, 0, 1).reshape(-1)


@pytest.fixture(scope="module")
def names100(real_data: Path) -> list[str]:
    meta: Any = load_pickle(real_data / "cifar-100-python" / "meta")
    names: list[str] = meta["fine_label_names"]
    return names


@pytest.fixture(scope="module")
def cifar100(real_data: Path, names100: list[str]) -> dict[str, list[Published]]:
    """The first 1,500 train and 1,000 test images of CIFAR-100."""
    images = {}
    for split, count in (("train", 1500), ("test", 1000)):
        batch: Any = load_pickle(real_data / "cifar-100-python" / split)
        planes = batch["data"][:count].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).copy()
        listed = zip(batch["filenames"], batch["fine_labels"], planes, strict=False)
        images[split] = [Published(split, names100[n], file, n, p, png(p)) for file, n, p in listed]
    return images


@pytest.fixture(scope="module")
def reference(real_data: Path, cifar100: dict[str, list[Published]]) -> Identity:
    """image_id -> (class_id, digest) of the images that the copies hold, from the pickles."""
    source = open_source("cifar100", real_data / "cifar-100-python")
    images = [image for split in cifar100.values() for image in split]
    held = digests(source, [image.image_id for image in images])
    return {image.image_id: (image.class_id, d) for image, d in zip(images, held, strict=True)}


@pytest.fixture
def tested(reference: Identity) -> Identity:
    """Those of the test split."""
    return {image_id: found for image_id, found in reference.items() if image_id.startswith("test/")}


@pytest.fixture(scope="module")
def png_root(
    tmp_path_factory: pytest.TempPathFactory, cifar100: dict[str, list[Published]], names100: list[str]
) -> Path:
    root = tmp_path_factory.mktemp("cifar100-png")
    for split, images in cifar100.items():
        for name in names100:
            (root / split / name).mkdir(parents=True)
        for image in images:
            (root / split / image.class_id / image.file).write_bytes(image.png)
    return root


@pytest.fixture(scope="module")
def parquet_root(tmp_path_factory: pytest.TempPathFactory, cifar100: dict[str, list[Published]]) -> Path:
    root = tmp_path_factory.mktemp("cifar100-hub")
    for split, images in cifar100.items():
        shuffled = [images[n] for n in np.random.default_rng(0).permutation(len(images))]
        write_shards(root / "cifar100", split, table_of(shuffled), shards=2)
    return root


def table_of(images: Iterable[Published]) -> pa.Table:
    """The images as the Hub has them."""
    rows = [({"bytes": image.png, "path": ""}, image.label, 0) for image in images]
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("img", "fine_label", "coarse_label"), map(list, columns), strict=True)))


def batch_of(images: Sequence[Published], *keys: str) -> dict[str, Any]:
    """The images as the publisher's batches have them."""
    batch = {
        "data": np.stack([image.row for image in images]),
        "fine_labels": [image.label for image in images],
        "filenames": [image.file for image in images],
    }
    return {key: batch[key] for key in keys or batch}


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


def test_pixels_are_the_published_ones(real_data: Path, cifar100: dict[str, list[Published]]) -> None:
    published = cifar100["test"][234]
    source = open_source("cifar100", real_data / "cifar-100-python")
    (raw,) = source.read([published.image_id])
    assert isinstance(raw, np.ndarray)
    assert (raw.shape, raw.dtype) == ((32, 32, 3), np.uint8)
    assert np.array_equal(raw, published.pixels)
    image = source.decode(raw)
    assert (image.mode, image.size) == ("RGB", (32, 32))
    assert np.array_equal(np.asarray(image), raw)


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("echo hacked",)


@pytest.mark.parametrize("file", ["test", "meta"])
def test_hostile_pickles_are_refused(tmp_path: Path, cifar100: dict[str, list[Published]], file: str) -> None:
    write_pickle(tmp_path / "test", batch_of(cifar100["test"][:5]))
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


def test_an_image_held_twice_is_refused(tmp_path: Path, cifar100: dict[str, list[Published]]) -> None:
    write_pickle(tmp_path / "test", batch_of(cifar100["test"][:5] * 2))
    with raises(SourceError, where="test/mountain/alp_s_000099"):
        scan(open_source("cifar100", tmp_path))


def test_a_png_copy_is_the_same_dataset(png_root: Path, reference: Identity) -> None:
    source = open_source("cifar100", png_root)
    assert source.layout == "folder"
    assert identity(source) == reference
    assert source.unexpected == {}


def test_a_parquet_copy_is_the_same_dataset(
    parquet_root: Path, reference: Identity, tested: Identity
) -> None:
    source = open_source("cifar100", parquet_root)
    assert (source.layout, source.order) == ("parquet", "published")
    found = identity(source)
    assert {i: v for i, v in found.items() if i.startswith("test/")} == tested
    # Of equal images in one class a part of train holds some; which file name they had, nothing says.
    assert sorted(found.values()) == sorted(reference.values())
    assert source.unexpected == {}


def test_numbered_files_in_class_folders_are_matched_by_pixels(
    tmp_path: Path, cifar100: dict[str, list[Published]], reference: Identity
) -> None:
    images = cifar100["test"][::2]
    for number, image in enumerate(images):
        folder = tmp_path / "cifar100" / "test" / image.class_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:04d}.png").write_bytes(image.png)
    found = identity(open_source("cifar100", tmp_path))
    assert sorted(found.values()) == sorted(reference[image.image_id] for image in images)
    # equal images in one class go by image_id
    assert len({image.image_id for image in images} - set(found)) <= 5


def test_classes_of_both_splits_in_one_folder(
    tmp_path: Path, cifar100: dict[str, list[Published]], reference: Identity
) -> None:
    expected = {}
    for split, images in cifar100.items():
        for number, image in enumerate(images[:300]):
            (tmp_path / image.class_id).mkdir(exist_ok=True)
            file = image.file if number % 3 else f"{split}{number}.png"
            (tmp_path / image.class_id / file).write_bytes(image.png)
            expected[image.image_id] = reference[image.image_id]
    source = open_source("cifar100", tmp_path)
    assert identity(source) == expected
    assert source.count(["test"]) == {"test": 300}


def test_pickles_without_file_names_are_matched_by_pixels(
    tmp_path: Path, cifar100: dict[str, list[Published]], tested: Identity
) -> None:
    write_pickle(tmp_path / "test", batch_of(cifar100["test"], "fine_labels", "data"))
    assert identity(open_source("cifar100", tmp_path)) == tested


@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles_written_again_in_another_order_by_python_3(
    tmp_path: Path,
    cifar100: dict[str, list[Published]],
    names100: list[str],
    tested: Identity,
    protocol: int,
) -> None:
    batch = batch_of([cifar100["test"][n] for n in np.random.default_rng(1).permutation(1000)])
    again = {
        b"data": batch["data"],
        b"fine_labels": np.array(batch["fine_labels"]),
        b"filenames": [file.encode() for file in batch["filenames"]],
    }
    write_pickle(tmp_path / "test", again, protocol)
    write_pickle(tmp_path / "meta", {b"fine_label_names": [name.encode() for name in names100]}, protocol)
    assert identity(open_source("cifar100", tmp_path)) == tested


def test_what_cannot_be_matched_is_reported(tmp_path: Path, cifar100: dict[str, list[Published]]) -> None:
    images = cifar100["test"][:50]
    images[3] = images[3]._replace(png=png(np.zeros((32, 32, 3), np.uint8)))  # no image of CIFAR
    images[4] = images[4]._replace(png=png(np.zeros((64, 64, 3), np.uint8)))
    images[5] = images[5]._replace(png=images[5].png[:100])
    images[6] = images[6]._replace(png=images[7].png)  # the same one twice; its class is another
    images[8] = images[8]._replace(label=100)
    write_shards(tmp_path / "data", "test", table_of(images))
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


def test_unknown_names_in_folders_are_counted(tmp_path: Path, cifar100: dict[str, list[Published]]) -> None:
    for image in cifar100["test"][:20]:
        folder = tmp_path / "test" / image.class_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / image.file).write_bytes(image.png)
    for name in ("readme.txt", "picture.jpg", "broken.png"):
        (folder / name).write_bytes(b"x")
    (tmp_path / "test" / "unicorn").mkdir()
    source = open_source("cifar100", tmp_path)
    assert len(scan(source)) == 20
    expected = {f"test/{folder.name}/{name}" for name in ("readme.txt", "picture.jpg", "broken.png")}
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
