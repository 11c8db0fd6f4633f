"""OpenOOD's ImageNet benchmarks: every frozen image and label is in the published list, and no other."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tools.facts.published import Published
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy

# group -> how many parts of a list's path, from its end, name the image
KEPT = {"imagenet-c": 3, "imagenet-r": 2, "ninco": 2, "textures": 2}
OOD = {
    ("test", "ssb-hard"): "test_ssb_hard",
    ("test", "ninco"): "test_ninco",
    ("test", "inaturalist"): "test_inaturalist",
    ("test", "textures"): "test_textures",
    ("test", "openimage-o"): "test_openimage_o",
    ("val", "openimage-o"): "val_openimage_o",
}
LISTS = {
    "imagenet": {
        ("val", "imagenet-1k"): "val_imagenet",
        ("test", "imagenet-1k"): "test_imagenet",
        ("test", "imagenet-v2"): "test_imagenet_v2",
        ("test", "imagenet-c"): "test_imagenet_c",
        ("test", "imagenet-r"): "test_imagenet_r",
        **OOD,
    },
    "imagenet200": {
        ("val", "imagenet-200"): "val_imagenet200",
        ("test", "imagenet-200"): "test_imagenet200",
        ("test", "imagenet-v2"): "test_imagenet200_v2",
        ("test", "imagenet-c"): "test_imagenet200_c",
        ("test", "imagenet-r"): "test_imagenet200_r",
        **OOD,
    },
}
BENCHMARKS = {"imagenet": "openood-imagenet1k", "imagenet200": "openood-imagenet200"}
EACH = [(family, at, name) for family, lists in LISTS.items() for at, name in lists.items()]


def published(facts: Path, family: str, name: str, kept: int) -> set[tuple[str, int]]:
    """(image id, label) of each line of OpenOOD's list."""
    rows = set()
    for line in Published(facts / f"openood/benchmark_imglist/{family}/{name}.txt.gz").lines():
        path, label = line.split(" ")
        rows.add(("/".join(path.split("/")[-kept:]).rpartition(".")[0], int(label)))
    return rows


@pytest.mark.parametrize(("family", "at", "name"), EACH, ids=[f"{f}-{n}" for f, _, n in EACH])
def test_each_frozen_set_is_the_published_list(
    facts: Path, family: str, at: tuple[str, str], name: str
) -> None:
    table = load_manifest(BENCHMARKS[family]).images(*at)
    frozen = list(zip(table["image_id"].to_pylist(), table["label"].to_pylist(), strict=True))
    assert len(set(frozen)) == len(frozen)
    assert set(frozen) == published(facts, family, name, KEPT.get(at[1], 1))


@pytest.mark.parametrize("name", BENCHMARKS.values())
def test_every_published_count_is_met_and_nothing_else_is_frozen(name: str) -> None:
    manifest = load_manifest(name)
    assert [(r.group, r.split) for r in manifest.groups if r.published not in (None, r.actual)] == []
    (family,) = (f for f, benchmark in BENCHMARKS.items() if benchmark == name)
    frozen = {(r.split, r.group) for r in manifest.groups if r.split != "classes" and r.status == "complete"}
    assert frozen == set(LISTS[family])
    awaited = {(r.group, r.split) for r in manifest.groups if r.status != "complete"}
    assert awaited == {(g, "train") for g in ("imagenet-1k", "imagenet-200", "imagenet-800")} & {
        (r.group, "train") for r in manifest.groups
    }


def test_the_200_and_the_800_classes_are_imagenets(facts: Path) -> None:
    rows = load_manifest("openood-imagenet200").classes.to_pylist()
    known = {r["class_id"]: r["label"] for r in rows if r["role"] == "id"}
    listed = Published(facts / "openood/imagenet200_classes.tsv").records()
    assert known == {r["wnid"]: int(r["label"]) for r in listed}
    external = {r["class_id"] for r in rows if r["role"] == "external"}
    assert len(external) == 800
    assert not external & known.keys()
    for row in rows:
        if row["role"] == "csid":
            assert row["label"] == known[row["class_id"]]


VERIFIED = ("openood-imagenet1k-verified", "openood-imagenet200-verified")


@pytest.mark.parametrize("name", ["openood-imagenet1k-clean", *VERIFIED])
def test_verified_sets_are_what_nincos_authors_looked_at(facts: Path, name: str) -> None:
    text = Published(facts / "ninco/NINCO_popular_datasets_subsamples.csv.gz").body.decode()
    named = [row["image_location"].split("/")[1:] for row in csv.DictReader(text.splitlines())]
    manifest = load_manifest(name)
    validation = set(load_manifest("openood-imagenet1k").images("val", "openimage-o")["image_id"].to_pylist())
    added = (("Species", "species", 172, 0), ("Places", "places", 153, 0)) if name in VERIFIED else ()
    for dataset, group, count, elsewhere in (
        *added,
        ("SSB_hard", "ssb-hard", 208, 0),
        ("iNaturalist_OOD_Plants", "inaturalist", 383, 0),
        ("Textures", "textures", 288, 0),
        ("OpenImage_O", "openimage-o", 368, 41),
    ):
        files = [file.removeprefix(dataset).split("_", 2)[2] for of, file in named if of == dataset]
        if group == "species":  # its ids are NINCO's own file names
            files = [file for of, file in named if of == dataset]
        looked_at = {file.rpartition(".")[0] for file in files}
        assert len(files) == len(looked_at) == count
        frozen = {i.rpartition("/")[2] for i in manifest.images("test", group)["image_id"].to_pylist()}
        assert frozen == looked_at - validation
        assert len(looked_at) - len(frozen) == elsewhere


@pytest.mark.parametrize("of", ["imagenet1k", "imagenet200"])
def test_the_noisy_sets_are_species_and_places_whole(facts: Path, of: str) -> None:
    """Published: OpenOOD's list has species_sub/0.jpg to 9999.jpg, MOS's has the names of Places."""
    manifest = load_manifest(f"openood-{of}-noisy")
    species, places = (set(manifest.images("test", g)["image_id"].to_pylist()) for g in ("species", "places"))
    assert species == {str(number) for number in range(10_000)}
    names = Published(facts / "mos/places_files.txt.gz").lines()
    assert places == {name.removesuffix(".jpg") for name in names}
    verified = load_manifest(f"openood-{of}-verified").images("test", "places")["image_id"].to_pylist()
    assert places.issuperset(verified)


def test_the_spectrum_of_today_adds_imagenet_es_alone() -> None:
    then, now = load_manifest("openood-imagenet1k"), load_manifest("openood-imagenet1k-es")
    assert now.parts.keys() - then.parts.keys() == {("test", "imagenet-es")}
    assert all(now.images_fingerprint(part) == then.images_fingerprint(part) for part in then.parts)
    table = now.images("test", "imagenet-es")
    assert table.num_rows == 64_000
    known = {r["class_id"]: r["label"] for r in now.classes.to_pylist() if r["role"] == "id"}
    pairs = zip(table["class_id"].to_pylist(), table["label"].to_pylist(), strict=True)
    assert all(known[class_id] == label for class_id, label in pairs)


def test_no_class_of_the_clean_200_is_kin_of_a_class_trained_on() -> None:
    taxonomy = Taxonomy.embedded()
    rows = load_manifest("openood-imagenet200-clean").classes.to_pylist()
    trained = {(w, r["role"]) for r in rows if r["role"] in ("id", "external") for w in r["wnids"]}
    others = [load_catalog(r["source"])[r["class_id"]] for r in rows if r["role"] in ("near", "far")]
    unknown = {w for item in others for w in item.wnids}
    known = {w for w, _ in trained}
    above_known = {up for w in known for up in taxonomy.ancestors(w)}
    assert not unknown & known
    assert not above_known & {w for item in others if item.mapped != "wider" for w in item.wnids}
    assert not [w for w in unknown if known & taxonomy.ancestors(w).keys()]
    identities = {w for w, role in trained if role == "id"}
    assert len(identities) == 200
    assert not [w for w in known - identities if identities & taxonomy.ancestors(w).keys()]
