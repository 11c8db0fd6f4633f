"""The shipped inventories: whole, unique, and of the classes and counts that the catalogs hold."""

from __future__ import annotations

import io
import pickle
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from PIL import Image

from tests.raising import raises
from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.parquet import write_table
from wordnet_splits.datasets.catalog import catalog_names, inventory, load_catalog
from wordnet_splits.datasets.catalog.inventory import INVENTORY_SCHEMA, inventory_splits, load_inventory

# images, of each class (where all classes hold the same), whether digests are shipped, one known image
PUBLISHED = {
    ("caltech256", "all"): (29_780, None, False, ("001.ak47/001_0001", "001.ak47")),
    ("cifar10", "test"): (10_000, 1000, True, ("test/airplane/aeroplane_s_000002", "airplane")),
    ("cifar10", "train"): (50_000, 5000, False, ("train/frog/leptodactylus_pentadactylus_s_000004", "frog")),
    ("cifar100", "test"): (10_000, 100, True, ("test/apple/apple_s_000022", "apple")),
    ("cifar100", "train"): (50_000, 500, True, ("train/apple/apple_s_000027", "apple")),
    ("digits", "all"): (1_797, None, True, ("0", "0")),
    ("dtd", "all"): (5_640, 120, False, ("banded/banded_0002", "banded")),
    ("food101", "test"): (25_250, 250, False, ("apple_pie/1011328", "apple_pie")),
    ("food101", "train"): (75_750, 750, False, ("apple_pie/1005649", "apple_pie")),
    ("imagenet-es", "test"): (
        *(64_000, 320, False),
        ("param_control/l5/param_27/ILSVRC2012_val_00030992", "n02699494"),
    ),
    ("imagenet-o", "all"): (2_000, None, False, ("n01443537/benthos_0.9994893", "n01443537")),
    ("imagenet-r", "all"): (30_000, None, False, ("n02607072/misc_46", "n02607072")),
    ("imagenet-v2", "all"): (10_000, 10, False, ("1638b8f31ee2421090d0b242466ff709a2e5e044", "n03874599")),
    ("imagenet1k", "val"): (50_000, 50, False, ("ILSVRC2012_val_00000293", "n01440764")),
    ("mnist", "test"): (10_000, None, True, ("test/0", "7")),
    ("mnist", "train"): (60_000, None, True, ("train/0", "5")),
    ("openood-cifar10", "test"): (10_000, 1000, False, ("test/airplane/0298", "airplane")),
    ("openood-cifar10", "train"): (50_000, 5000, False, ("train/cat/3975", "cat")),
    ("openood-cifar100", "test"): (10_000, 100, False, ("test/streetcar/0065", "streetcar")),
    ("openood-cifar100", "train"): (50_000, 500, False, ("train/worm/0500", "worm")),
    ("openood-mnist", "test"): (10_000, None, False, ("test/8_8486", "8")),
    ("openood-mnist", "train"): (60_000, None, False, ("train/9_30085", "9")),
    ("openood-svhn", "test"): (26_032, None, False, ("test/022008_2", "2")),
    ("openood-tin597", "test"): (29_850, 50, False, ("n03710637_12", "n03710637")),
    ("omniglot", "background-small"): (4_840, 20, True, ("Greek/character01/0394_03", "Greek/character01")),
    ("inaturalist", "all"): (10_000, None, False, ("002201d30ffeb436a4554d6ec91eaa15", "Sambucus racemosa")),
    ("mos-places", "all"): (10_000, None, False, ("Places365_val_00000382", "desert/sand")),
    ("mos-sun", "all"): (10_000, 10_000, False, ("sun_aaaevyiuguntlerb", "all")),
    ("ninco", "all"): (5_879, None, False, ("high_heels/high_heels_043_235", "high_heels")),
    ("ninco-species", "all"): (172, 172, False, ("Species_002_anaxyrus_debilis_15289366", "all")),
    ("openood-species", "all"): (10_000, 10_000, False, ("9999", "all")),
    ("openimage-o", "all"): (17_632, 17_632, False, ("000d5efd9500e718", "all")),
    ("places365", "val"): (36_500, 100, False, ("Places365_val_00000001", "greenhouse/indoor")),
    ("svhn-full", "extra"): (202_353, 202_353, False, ("extra/202353", "all")),
    ("svhn-full", "test"): (13_068, 13_068, False, ("test/1", "all")),
    ("svhn-full", "train"): (33_402, 33_402, False, ("train/33402", "all")),
    ("svhn", "test"): (26_032, None, False, ("test/22007", "2")),
    ("tiny-imagenet", "train"): (100_000, 500, False, ("n01443537_0", "n01443537")),
    ("tiny-imagenet", "val"): (10_000, 50, True, ("val_0", "n03444034")),
}
SHIPPED = sorted(PUBLISHED)
OF_DATA = ("digits", "mnist", "omniglot", "svhn-full")  # the other inventories are of a file of facts


def load(source: str, split: str) -> pa.Table:
    table = load_inventory(source, split)
    assert table is not None
    return table


def classes_by_id(source: str, split: str) -> dict[str, str]:
    table = load(source, split)
    return dict(zip(table["image_id"].to_pylist(), table["class_id"].to_pylist(), strict=True))


def digests_by_id(source: str, split: str) -> dict[str, bytes]:
    table = load(source, split)
    return dict(zip(table["image_id"].to_pylist(), table["digest"].to_pylist(), strict=True))


def test_the_sources_whose_ids_are_known_are_shipped() -> None:
    shipped = [(source, split) for source in catalog_names() for split in inventory_splits(source)]
    assert sorted(shipped) == SHIPPED


@pytest.mark.parametrize(("source", "split"), SHIPPED)
def test_an_inventory_is_whole_and_unique_and_counts_as_published(source: str, split: str) -> None:
    images, per_class, digested, (image_id, class_id) = PUBLISHED[source, split]
    table = load(source, split)
    assert table.schema.equals(INVENTORY_SCHEMA)
    ids = table["image_id"].to_pylist()
    assert len(ids) == len(set(ids)) == images
    assert ids == sorted(ids)
    assert classes_by_id(source, split)[image_id] == class_id
    assert (table["digest"].null_count == 0) is digested
    if per_class:
        assert set(Counter(table["class_id"].to_pylist()).values()) == {per_class}
    # a file of facts, or the data
    assert b"@" in table.schema.metadata[b"origin"] or source in OF_DATA


@pytest.mark.parametrize(("source", "split"), SHIPPED)
def test_an_inventory_agrees_with_the_catalog_class_by_class(source: str, split: str) -> None:
    catalog = load_catalog(source)
    held = Counter(load(source, split)["class_id"].to_pylist())
    assert set(held) == {item.class_id for item in catalog if item.counts[split] != 0}
    counted = {c: catalog.count(c, split) for c in held if catalog.count(c, split) is not None}
    assert counted == {c: held[c] for c in counted}
    sums: Counter[str] = Counter()
    for class_id in held.keys() - counted.keys():
        sums[catalog[class_id].count_group] += held[class_id]
    assert dict(sums) == catalog.group_counts(split)


def test_ids_of_one_source_never_name_two_images() -> None:
    for source in catalog_names():
        columns = [load(source, split)["image_id"] for split in inventory_splits(source)]
        ids = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
        assert pc.count_distinct(ids).as_py() == len(ids), source


def test_svhn_places_are_the_published_numbers_less_one_with_the_published_digit_counts() -> None:
    classes = classes_by_id("svhn", "test")
    assert set(classes) == {f"test/{i}" for i in range(26_032)}
    digits = Counter(classes.values())  # Netzer et al. 2011: label counts of test_32x32.mat, 10 meaning 0
    assert [digits[str(d)] for d in range(10)] == [
        1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595,
    ]  # fmt: skip


def test_four_cifar100_file_names_occur_in_two_classes() -> None:
    holders = defaultdict(set)
    for split in ("train", "test"):
        for image_id, class_id in classes_by_id("cifar100", split).items():
            holders[image_id.rsplit("/", 1)[1]].add(class_id)
    assert sum(len(held) > 1 for held in holders.values()) == 4


def test_cifar100_has_26_groups_of_identical_pixels() -> None:
    groups = defaultdict(set)
    for split in ("train", "test"):
        for image_id, digest in digests_by_id("cifar100", split).items():
            groups[digest].add(tuple(image_id.split("/")))
    equal = [held for held in groups.values() if len(held) > 1]
    assert len(equal) == 26
    assert sum(len({class_id for _, class_id, _ in held}) > 1 for held in equal) == 17
    assert sum(len({split for split, _, _ in held}) > 1 for held in equal) == 10


@pytest.mark.parametrize(
    ("source", "split", "file"),
    [
        ("cifar100", "train", "cifar-100-python/train"),
        ("cifar100", "test", "cifar-100-python/test"),
        ("cifar10", "test", "cifar-10-batches-py/test_batch"),
    ],
)
def test_cifar_digests_are_those_of_the_publishers_pixels(
    real_data: Path, source: str, split: str, file: str
) -> None:
    with (real_data / file).open("rb") as opened:
        batch = pickle.load(opened, encoding="bytes")  # "latin1" takes twice the memory
    labels = batch.get(b"fine_labels", batch.get(b"labels"))
    names = [item.class_id for item in load_catalog(source)]
    digests = digests_by_id(source, split)
    for row in range(0, len(labels), 211):
        planes = np.asarray(batch[b"data"][row], np.uint8).reshape(3, 32, 32)
        image_id = f"{split}/{names[labels[row]]}/{batch[b'filenames'][row].decode().removesuffix('.png')}"
        assert digests[image_id] == digest_pixels(np.dstack(list(planes)))
        png = io.BytesIO()  # a lossless copy has the same digest
        Image.fromarray(np.dstack(list(planes))).save(png, "PNG")
        assert digests[image_id] == digest_pixels(np.asarray(Image.open(png).convert("RGB")))


def test_tiny_imagenet_digests_are_those_of_the_publishers_files(real_data: Path) -> None:
    digests = digests_by_id("tiny-imagenet", "val")
    for number in range(0, 10_000, 97):
        file = real_data / f"tiny-imagenet-200/val/images/val_{number}.JPEG"
        assert digests[f"val_{number}"] == digest_file(file.read_bytes())


def test_unknown_sources_and_splits_offer_near_names() -> None:
    with raises(UnknownNameError, near="cifar100"):
        load_inventory("cifar-100", "test")
    with raises(UnknownNameError, naming="../lists"):
        inventory_splits("../lists")
    with raises(UnknownNameError, where="cifar100", naming="tets", near="test"):
        load_inventory("cifar100", "tets")


def test_a_split_whose_ids_are_not_known_is_none() -> None:
    assert load_inventory("imagenet1k", "train") is None
    assert load_inventory("lsun", "val") is None
    assert inventory_splits("gaussian") == ()


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"image_id": ["b", "a"]}, "image_id"),
        ({"image_id": ["a", "a"]}, "image_id"),
        ({"class_id": ["x", None]}, "class_id"),
        ({"split": ["all", "test"]}, ()),
        ({"digest": pa.array([b"\1" * 32, None], pa.binary(32))}, ()),
        ({"digest": pa.array([b"\1" * 16, None], pa.binary(16))}, ("16", "32")),
    ],
)
def test_a_damaged_inventory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: dict[str, object], named: object
) -> None:
    good = {
        "image_id": ["a", "b"],
        "class_id": ["x", "x"],
        "split": ["all", "all"],
        "digest": pa.nulls(2, pa.binary(32)),
    }
    folder = tmp_path / "inventories" / "lsun"
    folder.mkdir(parents=True)
    write_table(pa.table(good | columns), folder / "all.parquet")
    monkeypatch.setattr(inventory, "DATA", tmp_path)
    with raises(DataError, where="all.parquet", naming=named) as caught:
        inventory._load_shipped.__wrapped__("lsun", "all")
    assert caught.value.where == str(folder / "all.parquet")
