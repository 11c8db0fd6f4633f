"""The mechanical columns of the catalogs of ImageNet's kin: shifted copies, ImageNet-21K, OpenOOD's sets."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from tools.facts.published import Published
from tools.facts.rows import Row, Table, body, first_word, records, sources
from wordnet_splits.datasets.sources.imagenet import PHOTOGRAPHED_FOLDERS
from wordnet_splits.wordnet.taxonomy import Taxonomy

LISTS = "openood/benchmark_imglist/imagenet"
CORRUPTIONS = {"standard": 15, "extra": 4}
SEVERITIES = 5
NINCO_INSPECTED = (
    "j-cb/NINCO:data/NINCO_popular_datasets_subsamples.csv@11bf339ecfdeb7b0e5ae6ac6e4cb31cda01f8ffb"
)
SPECIES_LIST = (
    "hungdv1107/OpenOOD:data/benchmark_imglist/imagenet/test_species.txt"
    "@135c53b46c849e0e5145787c8c8d3a0f15530c3c"
)
SPECIES_IMAGES = 10_000  # numbered from 0, each once, in that list
FALL11_IMAGES = 14_197_122


def paths(path: Path) -> list[list[str]]:
    """Return the parts of each path of an OpenOOD list, its label left out."""
    return [line.rpartition(" ")[0].split("/") for line in Published(path).lines()]


def words(facts: Path) -> dict[str, str]:
    """Return wnid -> name of ImageNet-1K's classes, by wnid."""
    path = facts / "imagenet/imagenet1k_classes.tsv"
    return dict(sorted((r["wnid"], first_word(r["synset_words"])) for r in Published(path).records()))


def imagenet_v2(facts: Path) -> Table:
    path = facts / f"{LISTS}/test_imagenet_v2.txt.gz"
    names = words(facts)
    counts = Counter(int(folder) for _, folder, _ in paths(path))
    rows = [Row(wnid, name, counts={"all": counts[n]}) for n, (wnid, name) in enumerate(names.items())]
    return Table(("all",), rows, sources(path), own_wnids=True)


def imagenet_r(facts: Path) -> Table:
    path = facts / f"{LISTS}/test_imagenet_r.txt.gz"
    names = words(facts)
    counts = Counter(wnid for _, wnid, _ in paths(path))
    rows = [Row(wnid, names[wnid], counts={"all": counts[wnid]}) for wnid in sorted(counts)]
    return Table(("all",), rows, sources(path), own_wnids=True)


def imagenet_a(facts: Path) -> Table:
    path = facts / "imagenet/imagenet_a_wnids.txt"
    names = words(facts)
    wnids = sorted(line.split("\t")[0] for line in Published(path).lines())
    rows = [Row(wnid, names[wnid], count_group="all:imagenet-a=7500") for wnid in wnids]
    note = "publisher: Hendrycks et al. 2021, 7,500 images; of each class there is no list"
    return Table(("all",), rows, [*sources(path), note], own_wnids=True)


def imagenet_o(facts: Path) -> Table:
    path = facts / f"{LISTS}/test_imagenet_o.txt.gz"
    names = words(facts)
    counts = Counter(wnid for _, wnid, _ in paths(path))
    rows = [Row(wnid, names[wnid], counts={"all": counts[wnid]}) for wnid in sorted(counts)]
    note = "a class is the ImageNet class that a network takes the picture for, not what it shows"
    return Table(("all",), rows, [*sources(path), note])


def imagenet_c(facts: Path) -> Table:
    path = facts / "imagenet/imagenet1k_classes.tsv"
    val = {r["wnid"]: int(r["val_count"]) for r in Published(path).records()}
    rows = [
        Row(wnid, name, counts={s: val[wnid] * n * SEVERITIES for s, n in CORRUPTIONS.items()})
        for wnid, name in words(facts).items()
    ]
    origin = [
        *sources(path),
        "publisher: Hendrycks and Dietterich 2019, ImageNet's validation images under 15 corruptions"
        " (standard) and 4 more (extra), in 5 severities",
    ]
    return Table(tuple(CORRUPTIONS), rows, origin, own_wnids=True)


def imagenet_es(facts: Path) -> Table:
    path = facts / "tiny_imagenet/classes.tsv"
    names = words(facts)
    wnids = sorted(r["wnid"] for r in Published(path).records())
    rows = [Row(wnid, names[wnid], counts={"test": 5 * len(PHOTOGRAPHED_FOLDERS)}) for wnid in wnids]
    origin = [
        *sources(path),
        *sources(Path(__file__).with_name("imagenet_es_originals.txt")),
        "publisher: Baek et al. 2024, 5 originals of each class of Tiny ImageNet, each photographed 64 times",
    ]
    return Table(("test",), rows, origin, own_wnids=True)


def releases(facts: Path) -> tuple[set[str], set[str], list[Path]]:
    """Return the wnids listed in fall11 only, the wnids listed in winter21, and the files that list them."""
    splits = [facts / f"ssb/imagenet_osr_splits{suffix}.tsv" for suffix in ("", "_winter21")]
    synsets = facts / "field/imagenet21k/synsets.tsv"
    kinds = ("hard_i21k_classes", "easy_i21k_classes")
    fall, winter = ({r[1] for r in Published(path).rows() if r[0] in kinds} for path in splits)
    winter |= {r["wnid"] for r in Published(synsets).records() if r["p_winter21"] == "1"}
    return fall - winter, winter, [*splits, synsets]


def known_in(wnid: str, alone: set[str], winter: set[str]) -> str:
    return "fall11" if wnid in alone else "fall11 winter21" if wnid in winter else ""


def imagenet21k(facts: Path) -> Table:
    alone, winter, origin = releases(facts)
    taxonomy = Taxonomy.embedded()
    wnids = sorted(r["wnid"] for r in Published(origin[-1]).records() if r["fall11"] == "1")
    rows = [
        Row(
            wnid,
            taxonomy.lemmas(wnid)[0].replace("_", " "),
            known_in(wnid, alone, winter),
            count_group=f"fall11:imagenet21k={FALL11_IMAGES}",
        )
        for wnid in wnids
    ]
    notes = [
        f"publisher: image-net.org, {FALL11_IMAGES:,} images of 21,841 synsets in the release of fall 2011",
        "names are the first words of the synsets; superclass: the releases that a class is known to be in",
    ]
    return Table(("fall11", "winter21"), rows, [*sources(*origin), *notes], own_wnids=True)


def ssb_hard(facts: Path) -> Table:
    alone, winter, origin = releases(facts)
    taxonomy = Taxonomy.embedded()
    hard = sorted(r[1] for r in Published(origin[0]).rows() if r[0] == "hard_i21k_classes")
    rows = [Row(w, taxonomy.lemmas(w)[0].replace("_", " "), known_in(w, alone, winter)) for w in hard]
    note = "the publisher lists classes (fall11: all; winter21: 980), not images, so there are no counts"
    return Table(("fall11", "winter21"), rows, [*sources(*origin), note], own_wnids=True)


def ninco_names(facts: Path) -> dict[str, str]:
    """Return NINCO's class folders, with underscores for blanks, and the name printed for each.

    A printed abbreviation (AFA, M. wesenbergii) is replaced by its folder's name.
    """
    path = facts / "ninco/NINCO_class_names.csv"
    rows = csv.DictReader(Published(path).body.decode("utf-8").splitlines())
    printed = {
        r["filename"].replace(" ", "_"): r["printname"] for r in rows if r["benchmark status"].isdigit()
    }
    return {c: c.replace("_", " ") if "." in name or name.isupper() else name for c, name in printed.items()}


def ninco(facts: Path) -> Table:
    listed = facts / f"{LISTS}/test_ninco.txt.gz"
    counts = Counter(folder for _, folder, _ in paths(listed))
    names = ninco_names(facts)
    rows = [Row(class_id, names[class_id], counts={"all": counts[class_id]}) for class_id in sorted(counts)]
    origin = [
        *sources(listed),
        "source: j-cb/NINCO: NINCO_class_names.csv",
        "class ids have underscores where the publisher's folders have blanks",
    ]
    return Table(("all",), rows, origin)


def species(facts: Path) -> dict[str, str]:
    """Return image id -> species of the iNaturalist selection."""
    path = facts / "mos/OOD_iNaturalist_MOS_labels.csv.gz"
    rows = csv.DictReader(Published(path).body.decode("utf-8").splitlines())
    return {r["image_location"].removesuffix(".jpg"): " ".join(r["species"].split()) for r in rows}


def inaturalist(facts: Path) -> Table:
    counts = Counter(species(facts).values())
    rows = [Row(name, name, counts={"all": counts[name]}) for name in sorted(counts)]
    return Table(("all",), rows, sources(facts / "mos/inaturalist_classes.tsv"))


def inspected_species(facts: Path) -> list[str]:
    """Return NINCO's file names, without extension, of the images of Species that its authors kept."""
    path = facts / "ninco/NINCO_popular_datasets_subsamples.csv.gz"
    rows = csv.DictReader(Published(path).body.decode("utf-8").splitlines())
    files = (r["image_location"].rpartition("/")[2] for r in rows if r["class"] == "Species")
    return sorted(file.rpartition(".")[0] for file in files)


def ninco_species(facts: Path) -> Table:
    origin = [f"source: {NINCO_INSPECTED}", "the species are in the file names; none is mapped to WordNet"]
    return Table(("all",), [Row("all", "Species", counts={"all": len(inspected_species(facts))})], origin)


def openood_species(facts: Path) -> Table:
    origin = [f"source: {SPECIES_LIST}", "the list gives the images numbers and no classes"]
    rows = [Row("all", "Species", counts={"all": SPECIES_IMAGES})]
    return Table(("all",), rows, origin, like="openimage-o")


def openimage_o(facts: Path) -> Table:
    path = facts / "openimage_o/files.tsv.gz"
    counts = len(list(Published(path).records()))
    origin = [*sources(path), "the images are given no class"]
    return Table(("all",), [Row("all", "OpenImage-O", counts={"all": counts})], origin)


def places_selection(facts: Path) -> dict[str, str]:
    """Return image id -> Places365 class of MOS's selection; names of training images contain the class."""
    classes = [line.split()[0] for line in body(facts / "places365/categories_places365.txt")]
    classes = [name.removeprefix(f"/{name[1]}/") for name in classes]
    by_folder = {name.replace("/", "_"): name for name in classes}
    val = (line.split("\t") for line in body(facts / "places365/places365_val.txt.gz"))
    of_val = {file.removesuffix(".jpg"): classes[int(index)] for file, index, _ in val}
    stems = (line.removesuffix(".jpg") for line in body(facts / "mos/places_files.txt.gz"))
    return {s: of_val[s] if s in of_val else by_folder[s[2:].rpartition("_")[0]] for s in stems}


def mos_places(facts: Path) -> Table:
    counts = Counter(places_selection(facts).values())
    published = {r["class"]: int(r["count"]) for r in records(facts / "mos/places_classes.tsv")}
    if published != {name.replace("/", "_"): count for name, count in counts.items()}:
        raise ValueError("the classes are others than those listed")
    rows = [Row(name, name, counts={"all": counts[name]}) for name in sorted(counts)]
    files = sources(facts / "mos/places_files.txt.gz", facts / "places365/places365_val.txt.gz")
    return Table(("all",), rows, files, like="places365")


def mos_sun(facts: Path) -> Table:
    path = facts / "mos/sun_files.txt.gz"
    origin = [*sources(path), "the classes of the pictures are not published"]
    rows = [Row("all", "SUN", counts={"all": len(body(path))})]
    return Table(("all",), rows, origin, like="openimage-o")


IMAGENET_KIN = {
    "imagenet-a": imagenet_a,
    "imagenet-c": imagenet_c,
    "imagenet-es": imagenet_es,
    "imagenet-o": imagenet_o,
    "imagenet-r": imagenet_r,
    "imagenet-v2": imagenet_v2,
    "imagenet21k": imagenet21k,
    "inaturalist": inaturalist,
    "mos-places": mos_places,
    "mos-sun": mos_sun,
    "ninco": ninco,
    "ninco-species": ninco_species,
    "openimage-o": openimage_o,
    "openood-species": openood_species,
    "ssb-hard": ssb_hard,
}
