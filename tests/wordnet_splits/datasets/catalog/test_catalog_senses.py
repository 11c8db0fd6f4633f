"""The synsets of the catalogs: they exist, they are the senses meant, and each is mapped as it says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import UnknownNameError
from wordnet_splits.datasets.catalog import CatalogClass, catalog_names, load_catalog
from wordnet_splits.datasets.catalog.check import check_catalogs, naive_sense
from wordnet_splits.wordnet.taxonomy import Taxonomy

LARGEST = "imagenet21k"
IMAGENET_FAMILY = (
    "imagenet1k",
    "openood-tin597",
    "tiny-imagenet",
    "imagenet-a",
    "imagenet-c",
    "imagenet-es",
    "imagenet-r",
    "imagenet-v2",
    "ssb-hard",
    LARGEST,
)
NAMED = [n for n in catalog_names() if n not in IMAGENET_FAMILY]

MEANT = {
    ("cifar100", "beaver"): {"beaver.n.07"},
    ("cifar100", "dolphin"): {"dolphin.n.02"},
    ("cifar100", "lobster"): {"lobster.n.02"},
    ("cifar100", "maple_tree"): {"maple.n.02"},
    ("cifar100", "plate"): {"plate.n.04"},
    ("cifar100", "ray"): {"ray.n.07"},
    ("cifar100", "seal"): {"seal.n.09"},
    ("cifar100", "shrew"): {"shrew.n.02"},
    ("cifar100", "skunk"): {"skunk.n.04"},
    ("cifar100", "table"): {"table.n.02"},
    ("cifar100", "television"): {"television_receiver.n.01"},
    ("cifar100", "trout"): {"trout.n.02"},
    ("cifar100", "turtle"): {"turtle.n.02"},
    ("cifar100", "whale"): {"whale.n.02"},
    ("caltech256", "033.cd"): {"compact_disk.n.01"},
    ("caltech256", "137.mars"): {"mars.n.01"},
    ("caltech256", "142.microwave"): {"microwave.n.02"},
    ("caltech256", "225.tower-pisa"): {"leaning_tower.n.01"},
    ("caltech256", "251.airplanes-101"): {"airplane.n.01"},
    ("fashion-mnist", "Ankle boot"): {"boot.n.01"},
    ("fashion-mnist", "Bag"): {"bag.n.04"},
    ("fashion-mnist", "T-shirt/top"): {"jersey.n.03", "top.n.10"},
    ("food101", "hot_dog"): {"hotdog.n.02"},
    ("food101", "tacos"): {"taco.n.02"},
    ("inaturalist", "Lilium martagon"): {"turk's-cap.n.02"},
    ("lsun", "church_outdoor"): {"church.n.02"},
    ("ninco", "octopus_rubescens"): {"octopus.n.02"},
    ("ninco", "walker"): {"walker.n.05"},
    ("places365", "berth"): {"berth.n.03"},
    ("places365", "carrousel"): {"carousel.n.02"},
    ("places365", "castle"): {"castle.n.02"},
    ("places365", "galley"): {"galley.n.03", "galley.n.04"},
    ("places365", "home_office"): {"study.n.05"},
    ("places365", "mansion"): {"mansion.n.02"},
    ("places365", "pharmacy"): {"drugstore.n.01"},
    ("places365", "stage/indoor"): {"stage.n.03"},
    ("places365", "watering_hole"): {"water_hole.n.01"},
    ("places365", "yard"): {"yard.n.02"},
}


@pytest.fixture(scope="module")
def wordnet() -> Taxonomy:
    return Taxonomy.embedded()


@pytest.mark.parametrize("source", catalog_names())
def test_every_synset_exists(source: str, wordnet: Taxonomy) -> None:
    for item in load_catalog(source):
        for wnid in item.wnids:
            assert wnid in wordnet, f"{source} {item.class_id}: {wnid} is not in WordNet 3.0"
            words, gloss = ", ".join(wordnet.lemmas(wnid)), wordnet.gloss(wnid)
            print(f"{source}\t{item.class_id}\t{item.mapped}\t{wnid}\t{words}\t{gloss}")  # shown by -s


def test_the_senses_meant(wordnet: Taxonomy) -> None:
    ours = {key: {wordnet.name(w) for w in load_catalog(key[0])[key[1]].wnids} for key in MEANT}
    assert {k: {wordnet.from_name(n) for n in v} for k, v in ours.items()} == {
        k: {wordnet.from_name(n) for n in v} for k, v in MEANT.items()
    }


def test_imagenet_classes_are_their_synsets(wordnet: Taxonomy) -> None:
    for source in IMAGENET_FAMILY:
        for item in load_catalog(source):
            assert item.wnids == (item.class_id,)
            lemmas = {lemma.replace("_", " ").lower() for lemma in wordnet.lemmas(item.class_id)}
            assert item.name.lower() in lemmas, f"{item.class_id} is {lemmas}, not {item.name}"
    ids = {s: set(load_catalog(s).column("class_id")) for s in IMAGENET_FAMILY}
    assert ids["imagenet-es"] == ids["tiny-imagenet"]
    assert ids["tiny-imagenet"] <= ids["imagenet1k"] == ids["imagenet-c"] == ids["imagenet-v2"]
    assert ids["imagenet-a"] | ids["imagenet-r"] | ids["openood-tin597"] < ids["imagenet1k"]
    assert ids["imagenet1k"] - ids[LARGEST] == {wordnet.from_name("teddy.n.01")}  # not in the release of 2011
    assert ids["ssb-hard"] < ids[LARGEST]
    assert not ids["imagenet1k"] & ids["ssb-hard"]


def test_digits_share_one_parent(wordnet: Taxonomy) -> None:
    digit = wordnet.from_name("digit.n.01")
    for source in ("digits", "mnist", "svhn"):
        for item in load_catalog(source):
            (wnid,) = item.wnids
            assert item.class_id in wordnet.lemmas(wnid)
            assert wordnet.parents(wnid) == (digit,)


def squash(text: str) -> str:
    """Spelling without what variants may differ in: case, joints, apostrophes and every s."""
    return re.sub(r"[^a-rt-z]", "", re.sub(r"-101$", "", text.split("/")[0].lower()))


@pytest.mark.parametrize("source", NAMED)
def test_classes_are_mapped_as_they_say(source: str, wordnet: Taxonomy) -> None:
    def exact(item: CatalogClass) -> bool:
        name = re.sub(r"[ -]", "_", re.sub(r"-101$", "", item.name.split("/")[0])).lower()
        lemmas = {lemma.replace("-", "_").lower() for lemma in wordnet.lemmas(item.wnids[0])}
        return name in lemmas and item.wnids == (naive_sense(item, wordnet),)

    def variant(item: CatalogClass) -> bool:
        alike = [m for m in wordnet.lemmas(item.wnids[0]) if squash(m) == squash(item.name)]
        return any(wordnet.senses(m)[:1] == item.wnids for m in alike)

    def wider(item: CatalogClass) -> bool:
        whole = {squash(re.sub("/", "_", m)) for w in item.wnids for m in wordnet.lemmas(w)}
        return squash(item.name.replace("/", "_")) not in whole and item.why.endswith(".")

    def hand(item: CatalogClass) -> bool:
        return item.wnids != (naive_sense(item, wordnet),) and item.why.endswith(".")

    says = {"exact": exact, "variant": variant, "wider": wider, "hand": hand}
    says |= {"": lambda item: not item.wnids}
    assert [c.class_id for c in load_catalog(source) if not says[c.mapped](c)] == []


@pytest.mark.parametrize(
    ("source", "class_id", "mapped"),
    [
        ("ninco", "pseudorca_crassidens", "wider"),
        ("ninco", "triturus_marmoratus", "wider"),
        ("ninco", "door", "exact"),
        ("inaturalist", "Linaria purpurea", "wider"),
        ("inaturalist", "Osmunda claytoniana", "hand"),  # under another spelling
        ("food101", "pho", "wider"),
        ("food101", "prime_rib", "hand"),
        ("caltech256", "162.picnic-table", "wider"),
        ("places365", "fastfood_restaurant", "wider"),
        ("places365", "church/outdoor", "hand"),  # a view of it
        ("sun397", "skatepark", "wider"),
        ("cifar100", "aquarium_fish", "hand"),  # fish of any kind, goldfish among them
    ],
)
def test_a_synset_above_what_the_name_means_is_wider(source: str, class_id: str, mapped: str) -> None:
    item = load_catalog(source)[class_id]
    assert item.mapped == mapped
    assert item.covers == (() if mapped == "wider" else item.wnids)


def test_nothing_lies_below_a_head_noun(wordnet: Taxonomy) -> None:
    picnic_table = replace(load_catalog("caltech256")["162.picnic-table"], mapped="head")
    assert picnic_table.covers == ()
    assert replace(picnic_table, mapped="proposed").covers == picnic_table.wnids


def test_check_reports_what_first_sense_gets_wrong(wordnet: Taxonomy) -> None:
    (report,) = check_catalogs(["cifar100"], wordnet)
    assert report.ok
    assert report.classes == sum(report.mapped.values()) == 100
    wrong = {w.name: w for w in report.naive_wrong}
    assert {"dolphin", "skunk", "trout", "television"} <= set(wrong)
    assert wrong["trout"].naive == wordnet.from_name("trout.n.01")
    assert wrong["trout"].naive_gloss.startswith("flesh of")
    assert wrong["trout"].ours == wordnet.from_name("trout.n.02")
    assert "apple" not in wrong
    assert report.naive_nothing == ("aquarium_fish", "maple_tree")


def test_check_covers_all_catalogs_by_default(wordnet: Taxonomy) -> None:
    reports = check_catalogs()
    assert [r.source for r in reports] == list(catalog_names())
    assert all(r.ok for r in reports)
    unmapped = {r.source: r.unmapped for r in reports if r.unmapped}
    assert unmapped == {
        "caltech256": ("021.breadmaker",),
        "dtd": ("interlaced", "marbled", "sprinkled"),
        "gaussian": ("all",),
        "imagenet-o": tuple(load_catalog("imagenet-o").column("class_id")),
        "mos-sun": ("all",),
        "ninco": ("high_heels", "mbira"),
        "ninco-species": ("all",),
        "openimage-o": ("all",),
        "openood-species": ("all",),
        "uniform": ("all",),
    }
    with raises(UnknownNameError, naming="nowhere"):
        check_catalogs(["nowhere"])


def test_check_finds_synsets_that_another_taxonomy_lacks() -> None:
    toy = Taxonomy.from_edges({"n02121620": ["n00001740"]})
    (report,) = check_catalogs(["cifar10"], toy)
    assert not report.ok
    assert ("dog", "n02084071") in report.absent
    assert ("cat", "n02121620") not in report.absent
