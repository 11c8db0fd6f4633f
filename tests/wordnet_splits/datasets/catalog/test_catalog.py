"""Catalogs: what they hold, what their counts sum to, and how malformed tables are refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.datasets.catalog import catalog_names, load_catalog, read_catalog

# number of classes, and of images of each split
PUBLISHED: dict[str, tuple[int, dict[str, int | None]]] = {
    "caltech256": (256, {"all": 29_780}),  # 30,607 with the 827 of clutter
    "cifar10": (10, {"train": 50_000, "test": 10_000}),
    "cifar100": (100, {"train": 50_000, "test": 10_000}),
    "digits": (10, {"all": 1_797}),
    "dtd": (47, {"all": 5_640}),
    "fashion-mnist": (10, {"train": 60_000, "test": 10_000}),
    "food101": (101, {"train": 75_750, "test": 25_250}),
    "gaussian": (1, {"all": None}),
    "imagenet-a": (200, {"all": 7_500}),
    "imagenet-c": (1_000, {"standard": 3_750_000, "extra": 1_000_000}),
    "imagenet-es": (200, {"test": 64_000}),
    "imagenet-o": (200, {"all": 2_000}),
    "imagenet-r": (200, {"all": 30_000}),
    "imagenet-v2": (1_000, {"all": 10_000}),
    "imagenet1k": (1_000, {"train": 1_281_167, "val": 50_000}),
    "imagenet21k": (21_841, {"fall11": 14_197_122, "winter21": None}),
    "inaturalist": (110, {"all": 10_000}),
    "lsun": (10, {"train": None, "val": 3_000}),
    "mnist": (10, {"train": 60_000, "test": 10_000}),
    "mos-places": (50, {"all": 10_000}),
    "mos-sun": (1, {"all": 10_000}),
    "ninco": (64, {"all": 5_879}),
    "ninco-species": (1, {"all": 172}),
    "omniglot": (1_623, {"background-small": 4_840, "background-other": 14_440, "evaluation": 13_180}),
    "openimage-o": (1, {"all": 17_632}),
    "openood-cifar10": (10, {"train": 50_000, "test": 10_000}),
    "openood-cifar100": (100, {"train": 50_000, "test": 10_000}),
    "openood-mnist": (10, {"train": 60_000, "test": 10_000}),
    "openood-species": (1, {"all": 10_000}),
    "openood-svhn": (10, {"test": 26_032}),
    "openood-tin597": (597, {"test": 29_850}),
    "places365": (365, {"train": 1_803_460, "val": 36_500}),
    "ssb-hard": (1_000, {"fall11": None, "winter21": None}),
    "sun397": (397, {"all": 108_754}),
    "svhn": (10, {"train": 73_257, "test": 26_032, "extra": 531_131}),
    "svhn-full": (1, {"train": 33_402, "test": 13_068, "extra": 202_353}),
    "tiny-imagenet": (200, {"train": 100_000, "val": 10_000}),
    "uniform": (1, {"all": None}),
}


def test_catalogs_have_the_published_classes_and_totals() -> None:
    catalogs = {name: load_catalog(name) for name in catalog_names()}
    assert {n: (len(c), {s: c.total(s) for s in c.splits}) for n, c in catalogs.items()} == PUBLISHED


@pytest.mark.parametrize("source", PUBLISHED)
def test_ids_are_unique_and_indices_follow_label_order(source: str) -> None:
    catalog = load_catalog(source)
    assert [c.index for c in catalog] == list(range(len(catalog)))
    assert len({c.class_id for c in catalog}) == len(catalog)
    assert {c.source for c in catalog} == {source}
    assert catalog.origin, "a table without origin"


def test_label_orders() -> None:
    for source in ("imagenet1k", "tiny-imagenet", "openood-tin597"):
        ids = load_catalog(source).column("class_id")
        assert ids == sorted(ids)
    assert load_catalog("cifar100").column("class_id") == sorted(load_catalog("cifar100").column("name"))
    assert load_catalog("cifar10").column("class_id")[:3] == ["airplane", "automobile", "bird"]
    assert load_catalog("places365")["zen_garden"].index == 364
    assert load_catalog("caltech256")["256.toad"].index == 255
    for source in ("svhn", "digits", "mnist"):
        assert load_catalog(source).column("class_id") == list("0123456789")


def test_cifar100_has_twenty_superclasses_of_five() -> None:
    superclasses = load_catalog("cifar100").column("superclass")
    assert {superclasses.count(s) for s in superclasses} == {5}
    assert len(set(superclasses)) == 20
    assert set(load_catalog("places365").column("superclass")) == {"indoor", "outdoor"}


def test_scenes_of_both_datasets_have_one_mapping() -> None:
    """Recalcati et al. count 294 classes that SUN397 and Places365 share."""
    sun, places = load_catalog("sun397"), load_catalog("places365")
    shared = [c.class_id for c in sun if c.class_id in places]
    assert len(shared) == 294
    for name in shared:
        assert (sun[name].wnids, sun[name].mapped) == (places[name].wnids, places[name].mapped)


def test_places_counts_known_only_as_a_sum() -> None:
    places = load_catalog("places365")
    assert places.count("arena/hockey", "train") == 5000
    assert places.count("bazaar/indoor", "train") is None
    assert places["bazaar/indoor"].count_group == places["bazaar/outdoor"].count_group == "bazaar"
    assert places.group_counts("train")["bazaar"] == 9421
    assert places.group_counts("val") == {}


def test_unknown_names_offer_near_ones() -> None:
    with raises(UnknownNameError, naming="cifar1000"):
        load_catalog("cifar1000")
    catalog = load_catalog("cifar100")
    with raises(UnknownNameError, where="'cifar100'", naming=("aple", "apple")):
        catalog["aple"]
    with raises(UnknownNameError, where="'cifar100'", naming="validation"):
        catalog.count("apple", "validation")
    with raises(UnknownNameError, where="'cifar100'", naming=("superclas", "superclass")):
        catalog.column("superclas")
    assert "apple" in catalog
    assert "aple" not in catalog


def test_a_catalog_survives_a_process_border() -> None:
    catalog = load_catalog("digits")
    again = pickle.loads(pickle.dumps(catalog))
    assert again == catalog
    assert hash(again) == hash(catalog)
    assert load_catalog("digits") is catalog


HEADER = "class_id\tindex\tname\tsuperclass\twnids\tmapped\twhy\tcount_train\tcount_val\tcount_group"
GOOD = [
    "# source: a test",
    HEADER,
    "cat\t0\tcat\tpets\tn02121620\texact\t\t10\t5\t",
    "dog\t1\tdog\tpets\tn02084071\thand\tThe animal.\t\t5\ttrain:canine=30",
    "wolf\t2\twolf\t\tn02114100 n02114367\thand\tBoth.\t\t5\ttrain:canine=30",
    "snow\t3\tsnow\t\t\t\tNothing fits.\t3\t\t",
]


def write(tmp_path: Path, lines: list[str]) -> Path:
    path = tmp_path / "pets.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_good_table(tmp_path: Path) -> None:
    catalog = read_catalog(write(tmp_path, GOOD))
    assert (catalog.source, catalog.splits) == ("pets", ("train", "val"))
    assert catalog.origin == ("source: a test",)
    assert catalog["wolf"].wnids == ("n02114100", "n02114367")
    assert catalog["dog"].counts == {"train": None, "val": 5}
    assert catalog.group_counts("train") == {"canine": 30}
    assert catalog.total("train") == 10 + 30 + 3
    assert catalog.total("val") is None
    assert {c.confidence for c in catalog} == {None}


def test_the_column_of_confidences(tmp_path: Path) -> None:
    lines = ["\t".join((*(cells := line.split("\t"))[:7], "", *cells[7:])) for line in GOOD[1:]]
    lines = [GOOD[0], lines[0].replace("why\t\t", "why\tconfidence\t"), *lines[1:]]
    lines[3] = lines[3].replace("The animal.\t", "The animal.\t0.79")
    catalog = read_catalog(write(tmp_path, lines))
    assert [c.confidence for c in catalog] == [None, 0.79, None, None]
    assert [lines[catalog.line(c.class_id) - 1].split("\t")[0] for c in catalog] == [
        c.class_id for c in catalog
    ]
    for wrong in ("1.1", "-0.1", "nan", "1e-1", "½", "0.", "0.1234567890"):
        with raises(DataError, where="pets.tsv:4"):
            read_catalog(write(tmp_path, [line.replace("\t0.79", f"\t{wrong}") for line in lines]))


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (2, "class_id", "class", "wrong header row"),
        (2, "\tcount_train\tcount_val", "", "wrong header row"),
        (2, "count_val", "count_train", "wrong header row"),
        (2, "\tcount_group", "", "wrong header row"),
        (3, "\t10\t", "\t", "10 columns expected, found 9"),
        (3, "cat\t0", "\t0", "empty class_id"),
        (3, "\tpets", "\tpets ", "blank around 'pets '"),
        (4, "dog\t1", "dog\t2", "index '2' where row order gives 1"),
        (4, "dog\t1", "cat\t1", "class 'cat' occurs twice"),
        (3, "n02121620", "n2121620", "'n2121620' is not a wnid"),
        (3, "n02121620", "n02121620 n02121620", "occurs twice"),
        (3, "exact", "guess", "mapped is 'guess'"),
        (3, "n02121620", "", "mapped is 'exact'"),
        (6, "\t\t\tNothing", "\t\texact\tNothing", "mapped is 'exact'"),
        (4, "The animal.", "", "needs a reason"),
        (6, "Nothing fits.", "", "needs a reason"),
        (3, "\t10\t", "\t-10\t", "count_train is '-10'"),
        (3, "\t10\t", "\t1e1\t", "count_train is '1e1'"),
        (3, "\t10\t", "\t010\t", "count_train is '010'"),
        (3, "\t10\t", f"\t{'9' * 5000}\t", "count_train is '999"),
        (4, "train:canine=30", "canine", "count_group is 'canine'"),
        (4, "train:canine=30", "test:canine=30", "count_group is 'test:canine=30'"),
        (5, "train:canine=30", "train:canine=31", "two sums"),
        (5, "\t\t5\ttrain", "\t7\t5\ttrain", "has a count_train, too"),
    ],
)
def test_malformed_tables_are_refused_with_their_line(
    tmp_path: Path, line: int, old: str, new: str, message: str
) -> None:
    lines = list(GOOD)
    assert old in lines[line - 1], "the case changes nothing"
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    with pytest.raises(DataError) as caught:
        read_catalog(write(tmp_path, lines))
    assert message in caught.value.line()
    assert f"pets.tsv:{line}" in caught.value.line()


def test_a_count_group_of_one_class_is_refused(tmp_path: Path) -> None:
    lone = [*GOOD[:4], GOOD[4].replace("train:canine=30", "").replace("\t\t5", "\t7\t5")]
    with raises(DataError, where="pets.tsv:5"):
        read_catalog(write(tmp_path, lone))


@pytest.mark.parametrize("lines", [[], GOOD[:1], GOOD[:2]])
def test_a_table_without_rows_is_refused(tmp_path: Path, lines: list[str]) -> None:
    with raises(DataError, naming="pets.tsv"):
        read_catalog(write(tmp_path, lines))


def test_an_unreadable_table_is_refused(tmp_path: Path) -> None:
    with raises(DataError, where="absent.tsv"):
        read_catalog(tmp_path / "absent.tsv")
    (tmp_path / "latin.tsv").write_bytes(b"\xff\xfe")
    with raises(DataError, where="latin.tsv"):
        read_catalog(tmp_path / "latin.tsv")
