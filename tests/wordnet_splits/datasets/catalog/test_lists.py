"""The shipped published lists: counts of the papers, classes of the catalogs, images of the inventories."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.parquet import write_table
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.datasets.catalog import inventory, load_catalog
from wordnet_splits.datasets.catalog.inventory import (
    ENVIRONMENT,
    LIST_SCHEMA,
    find_list,
    inventory_splits,
    list_names,
    load_inventory,
    load_list,
)

# Palechor et al., table 1: known, negative, unknown images, and the classes of each
OPENSET = {
    "p1_val": ((29_055, 17_420, 0), (116, 67, 0)),
    "p1_test": ((5_800, 3_350, 8_300), (116, 67, 166)),
    "p2_train": ((28_895, 31_794, 0), (30, 31, 0)),
    "p2_val": ((7_224, 7_949, 0), (30, 31, 0)),
    "p2_test": ((1_500, 1_550, 2_750), (30, 31, 55)),
    "p3_val": ((38_633, 24_549, 0), (151, 97, 0)),
    "p3_test": ((7_550, 4_850, 8_200), (151, 97, 164)),
}
# OpenOOD v1.5, table 1 (972 and 7,793 are what the published files hold): source, images
OPENOOD = {
    "cifar10_val_cifar10": ("openood-cifar10", 1_000),
    "cifar10_test_cifar10": ("openood-cifar10", 9_000),
    "cifar10_test_cifar100": ("openood-cifar100", 9_000),
    "cifar10_train_tin597": ("openood-tin597", 29_850),
    "cifar100_val_cifar100": ("openood-cifar100", 1_000),
    "cifar100_test_cifar100": ("openood-cifar100", 9_000),
    "cifar100_test_cifar10": ("openood-cifar10", 10_000),
    "cifar100_train_tin597": ("openood-tin597", 29_850),
    "cifar10_test_mnist": ("mnist", 70_000),
    "cifar100_test_mnist": ("mnist", 70_000),
    "cifar10_test_places365": ("places365", 35_195),
    "cifar10_test_svhn": ("svhn", 26_032),
    "cifar10_test_texture": ("dtd", 5_640),
    "cifar10_test_tin": ("tiny-imagenet", 7_793),
    "cifar10_val_tin": ("tiny-imagenet", 1_000),
    "cifar100_test_places365": ("places365", 33_773),
    "cifar100_test_svhn": ("svhn", 26_032),
    "cifar100_test_texture": ("dtd", 5_640),
    "cifar100_test_tin": ("tiny-imagenet", 6_526),
    "cifar100_val_tin": ("tiny-imagenet", 972),
    "imagenet_test_imagenet": ("imagenet1k", 45_000),
    "imagenet_val_imagenet": ("imagenet1k", 5_000),
    "imagenet_test_textures": ("dtd", 5_160),
    "imagenet_test_imagenet_c": ("imagenet-c", 10_000),
    "imagenet_test_ssb_hard": ("ssb-hard", 49_000),
    "imagenet_test_openimage_o": ("openimage-o", 15_869),
    "imagenet_val_openimage_o": ("openimage-o", 1_763),
    "imagenet200_test_imagenet200_c": ("imagenet-c", 2_000),
    "imagenet200_test_imagenet200": ("imagenet1k", 9_000),
    "imagenet200_val_imagenet200": ("imagenet1k", 1_000),
    "imagenet200_test_textures": ("dtd", 5_160),
}


# NINCO's authors' subsamples of these sets (OpenOOD v1.5, appendix, table 4); 41 of the 368 images of
# OpenImage-O are in OpenOOD's validation list
NINCO = {
    "inaturalist": ("inaturalist", 383),
    "openimage_o_test": ("openimage-o", 368 - 41),
    "places": ("mos-places", 153),
    "ssb_hard": ("ssb-hard", 208),
    "ssb_easy": ("imagenet21k", 151),
    "pascl": ("imagenet21k", 235),
    "cood": ("imagenet21k", 212),
    "openset360": ("imagenet21k", 236),
    "textures": ("dtd", 288),
}


def ids(name: str) -> set[str]:
    return set(load_list(name)["image_id"].to_pylist())


def test_exactly_these_lists_are_shipped() -> None:
    expected = [f"openset-imagenet/{name}" for name in OPENSET] + [f"openood/{name}" for name in OPENOOD]
    assert list(list_names()) == sorted(expected + [f"ninco/{name}" for name in NINCO])


@pytest.mark.parametrize("name", NINCO)
def test_nincos_subsamples_hold_what_its_authors_looked_at(name: str) -> None:
    source, images = NINCO[name]
    table = load_list(f"ninco/{name}")
    assert pc.unique(table["source"]).to_pylist() == [source]
    assert pc.unique(table["label"]).to_pylist() == [-1]
    assert len(table) == images


@pytest.mark.parametrize("name", list_names())
def test_a_list_holds_known_images_under_their_own_class(name: str) -> None:
    table = load_list(name)
    assert table.schema.equals(LIST_SCHEMA)
    val = load_inventory("imagenet1k", "val")
    assert val is not None
    validation = dict(zip(val["image_id"].to_pylist(), val["class_id"].to_pylist(), strict=True))
    for source in pc.unique(table["source"]).to_pylist():
        rows = table.filter(pc.equal(table["source"], source))
        assert set(rows["class_id"].to_pylist()) <= {item.class_id for item in load_catalog(source)}
        known: dict[str, str] = {}
        for split in inventory_splits(source):
            held = load_inventory(source, split)
            assert held is not None
            known |= dict(zip(held["image_id"].to_pylist(), held["class_id"].to_pylist(), strict=True))
        named = zip(rows["image_id"].to_pylist(), rows["class_id"].to_pylist(), strict=True)
        for image_id, class_id in named:
            if image_id in known:
                assert known[image_id] == class_id
            elif source == "imagenet-c":  # which has no inventory of its own: it is ImageNet's
                assert validation[image_id.rpartition("/")[2]] == class_id
            else:  # ImageNet's training ids are known only from these lists; the name bears the class
                assert source in ("imagenet1k", "imagenet21k", "ssb-hard")
                assert image_id.split("_")[0] == class_id


@pytest.mark.parametrize("name", OPENSET)
def test_openset_imagenet_counts_are_the_papers(name: str) -> None:
    table = load_list(f"openset-imagenet/{name}")
    roles = {0: table.filter(pc.greater_equal(table["label"], 0))}
    roles |= {label: table.filter(pc.equal(table["label"], label)) for label in (-1, -2)}
    images, classes = OPENSET[name]
    assert tuple(len(rows) for rows in roles.values()) == images
    assert tuple(len(pc.unique(rows["class_id"])) for rows in roles.values()) == classes
    labels = dict(zip(roles[0]["class_id"].to_pylist(), roles[0]["label"].to_pylist(), strict=True))
    assert labels == {wnid: i for i, wnid in enumerate(sorted(labels))}


@pytest.mark.parametrize("protocol", ["p1", "p2", "p3"])
def test_one_protocol_has_one_labelling_and_no_image_twice(protocol: str) -> None:
    names = [name for name in list_names() if name.startswith(f"openset-imagenet/{protocol}_")]
    label_of: dict[str, set[int]] = {}
    for name in names:
        table = load_list(name)
        for class_id, label in zip(table["class_id"].to_pylist(), table["label"].to_pylist(), strict=True):
            label_of.setdefault(class_id, set()).add(label)
    assert all(len(labels) == 1 for labels in label_of.values())
    assert sum(len(load_list(name)) for name in names) == len(set().union(*map(ids, names)))


def test_train_and_val_of_p2_are_all_training_images_of_its_classes() -> None:
    counts: Counter[str] = Counter()
    for name in ("p2_train", "p2_val"):
        counts.update(load_list(f"openset-imagenet/{name}")["class_id"].to_pylist())
    catalog = load_catalog("imagenet1k")
    assert counts == {wnid: catalog.count(wnid, "train") for wnid in counts}


@pytest.mark.parametrize("name", OPENOOD)
def test_openood_counts_are_the_published_ones(name: str) -> None:
    table = load_list(f"openood/{name}")
    source, images = OPENOOD[name]
    assert pc.unique(table["source"]).to_pylist() == [source]
    assert len(table) == images
    benchmark, _, known = name.partition("_")
    if source in ("imagenet1k", "imagenet-c") or known in (f"val_{benchmark}", f"test_{benchmark}"):
        index = [load_catalog(source)[class_id].index for class_id in table["class_id"].to_pylist()]
        if benchmark != "imagenet200":  # its labels count 200 of the 1,000 classes
            assert index == table["label"].to_pylist()
    else:
        assert pc.unique(table["label"]).to_pylist() == [-1]


def test_openood_validation_and_test_part_the_imagenet_val_images() -> None:
    val = load_inventory("imagenet1k", "val")
    assert val is not None
    parts = ids("openood/imagenet_val_imagenet"), ids("openood/imagenet_test_imagenet")
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == set(val["image_id"].to_pylist())
    for name in ("imagenet_val_imagenet", "imagenet_test_imagenet"):
        table = load_list(f"openood/{name}")
        index = [load_catalog("imagenet1k")[class_id].index for class_id in table["class_id"].to_pylist()]
        assert index == table["label"].to_pylist()


def test_a_list_says_where_it_was_read() -> None:
    info = load_list("openset-imagenet/p2_test").schema.metadata
    assert info[b"origin"].startswith(b"AIML-IfI/openset-imagenet:data/v2/p2_test.csv@")
    assert info[b"sha256"] == b"063a8c22ed291209e19b57c4c280c1085e17fe38d2fdf62279335b551dcc155e"
    assert load_list("openset-imagenet/p2_test").num_rows == 5_800


def test_unknown_lists_offer_near_names() -> None:
    with raises(UnknownNameError, near="openset-imagenet/p3_val"):
        load_list("openset-imagenet/p3-val")
    with raises(UnknownNameError, naming="../inventories/dtd/all"):
        load_list("../inventories/dtd/all")


@pytest.mark.parametrize(
    ("rows", "metadata", "named"),
    [
        ([("a", "2"), ("a", "1")], {"origin": "o", "sha256": "s"}, "image_id"),
        ([("a", "1"), ("a", "1")], {"origin": "o", "sha256": "s"}, "image_id"),
        ([("a", "2"), ("b", "1")], {"origin": "o"}, "sha256"),
    ],
)
def test_a_damaged_list_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[tuple[str, str]],
    metadata: dict[str, str],
    named: object,
) -> None:
    (tmp_path / "lists" / "f").mkdir(parents=True)
    columns = [[s for s, _ in rows], [i for _, i in rows], ["c", "c"], [0, 0]]
    write_table(pa.table(columns, schema=LIST_SCHEMA), tmp_path / "lists/f/n.parquet", metadata=metadata)
    monkeypatch.setattr(inventory, "DATA", tmp_path)
    monkeypatch.setattr(inventory, "list_names", lambda: ("f/n",))
    with raises(DataError, where="n.parquet", naming=named):
        load_list.__wrapped__("f/n")


@pytest.fixture
def author(tmp_path: Path) -> Path:
    """Return the folder of a recipe of own lists, its lists and its manifest."""
    from wordnet_splits.exchange import import_benchmark

    lists = tmp_path / "in"
    lists.mkdir()
    (lists / "test_id.txt").write_text("".join(f"{n % 5}/{n}.png {n % 5}\n" for n in (0, 1, 2, 3, 4)))
    (lists / "test_odd.txt").write_text("5/5.png -1\n7/7.png -1\n")
    import_benchmark("openood", lists, tmp_path / "author", name="mine", source="digits")
    return tmp_path / "author"


def test_a_stranger_is_told_where_a_list_goes(author: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    shutil.copytree(author / "mine", stranger / "mine")
    with raises(UnknownNameError, where="mine: group id, test", naming="mine/test_id") as caught:
        verify_benchmark(read_manifest(stranger / "mine"))
    assert caught.value.hint == (
        f"this list is not shipped: put mine/test_id.parquet into {stranger / 'lists'}"
    )
    shutil.copytree(author / "lists", stranger / "lists")
    assert verify_benchmark(read_manifest(stranger / "mine")).ok


def test_the_folder_of_the_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    with raises(UnknownNameError, naming=("zzz/qqq.parquet", tmp_path)):
        find_list("zzz/qqq")
    with raises(UnknownNameError, near="openood/cifar10_test_svhn"):
        find_list("openood/cifar10_test_svhm")
