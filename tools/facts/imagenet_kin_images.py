"""The inventories of ImageNet's kin and of OpenOOD's sets, from OpenOOD's lists of whole sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tools.facts.imagenet_kin import (
    LISTS,
    NINCO_INSPECTED,
    SPECIES_IMAGES,
    SPECIES_LIST,
    inspected_species,
    paths,
    places_selection,
    species,
    words,
)
from tools.facts.images import Inventory, stem, unique
from tools.facts.published import Published
from wordnet_splits.datasets.sources.imagenet import PHOTOGRAPHED_FOLDERS


def in_wnid_folders(name: str) -> Callable[[Path, Path, str], Inventory]:
    """Return the reader of a list of ``<set>/<class>/<file>``; ids are ``<class>/<stem>``."""

    def read(facts: Path, data: Path, split: str) -> Inventory:
        path = facts / f"{LISTS}/{name}.txt.gz"
        pairs = ((f"{folder}/{stem(file)}", folder) for _, folder, file in paths(path))
        return Inventory(unique(pairs), Published(path).origin)

    return read


def imagenet_v2(facts: Path, data: Path, split: str) -> Inventory:
    path = facts / f"{LISTS}/test_imagenet_v2.txt.gz"
    wnids = list(words(facts))
    pairs = ((stem(file), wnids[int(folder)]) for _, folder, file in paths(path))
    return Inventory(unique(pairs), Published(path).origin)


def imagenet_es(facts: Path, data: Path, split: str) -> Inventory:
    """Every photograph, but none of the originals: all settings of the test part have the same 1,000."""
    originals = Published(Path(__file__).with_name("imagenet_es_originals.txt"))
    labels = Published(facts / "imagenet/imagenet_val_labels.tsv.gz").records()
    wnids = {stem(r["filename"]): r["wnid"] for r in labels}
    pairs = (
        (f"{folder}/{name}", wnids[name]) for folder in PHOTOGRAPHED_FOLDERS for name in originals.lines()
    )
    return Inventory(unique(pairs), originals.origin)


def inaturalist(facts: Path, data: Path, split: str) -> Inventory:
    """Images by the species that NINCO's authors list for each; the images must be the ones in MOS's list."""
    listed = Published(facts / "mos/inaturalist_files.txt.gz")
    known = species(facts)
    named = Published(facts / "mos/inaturalist_classes.tsv").origin
    if {stem(line) for line in listed.lines()} != set(known):
        raise ValueError("the species are of other pictures than those listed")
    return Inventory(unique(known.items()), f"{listed.origin}; species: {named}")


def openimage_o(facts: Path, data: Path, split: str) -> Inventory:
    files = Published(facts / "openimage_o/files.tsv.gz")
    return Inventory(unique((stem(r["filename"]), "all") for r in files.records()), files.origin)


def mos_places(facts: Path, data: Path, split: str) -> Inventory:
    origin = Published(facts / "mos/places_files.txt.gz").origin
    val = Published(facts / "places365/places365_val.txt.gz").origin
    return Inventory(unique(places_selection(facts).items()), f"{origin}; classes of val: {val}")


def mos_sun(facts: Path, data: Path, split: str) -> Inventory:
    files = Published(facts / "mos/sun_files.txt.gz")
    return Inventory(unique((stem(line), "all") for line in files.lines()), files.origin)


def ninco_species(facts: Path, data: Path, split: str) -> Inventory:
    return Inventory(unique((name, "all") for name in inspected_species(facts)), NINCO_INSPECTED)


def openood_species(facts: Path, data: Path, split: str) -> Inventory:
    return Inventory({str(number): "all" for number in range(SPECIES_IMAGES)}, SPECIES_LIST)


IMAGENET_KIN_INVENTORIES: Mapping[tuple[str, str], tuple[Callable[[Path, Path, str], Inventory], int]] = {
    ("imagenet-es", "test"): (imagenet_es, 64_000),
    ("imagenet-o", "all"): (in_wnid_folders("test_imagenet_o"), 2_000),
    ("imagenet-r", "all"): (in_wnid_folders("test_imagenet_r"), 30_000),
    ("imagenet-v2", "all"): (imagenet_v2, 10_000),
    ("inaturalist", "all"): (inaturalist, 10_000),
    ("mos-places", "all"): (mos_places, 10_000),
    ("mos-sun", "all"): (mos_sun, 10_000),
    ("ninco", "all"): (in_wnid_folders("test_ninco"), 5_879),
    ("ninco-species", "all"): (ninco_species, 172),
    ("openimage-o", "all"): (openimage_o, 17_632),
    ("openood-species", "all"): (openood_species, 10_000),
}
