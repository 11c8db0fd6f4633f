"""Regenerate the mechanical columns of the shipped catalogs from the published facts.

``python -m tools.facts.catalogs FACTS`` rewrites ``wordnet_splits/data/catalogs/*.tsv``: class ids, order,
names, superclasses, counts and origin come from the facts (or, where no list is needed, from the publisher's
figures written here); ``wnids``, ``mapped`` and ``why`` are hand work and are kept from the shipped tables,
except in the ImageNet family, where the class id is the synset.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tools.facts.imagenet_kin import IMAGENET_KIN
from tools.facts.openood import openood_file
from tools.facts.rows import Row, Table, body, first_word, records, sources
from wordnet_splits.datasets.catalog import CATALOGS, FIXED_COLUMNS

SUN397_ALL = ("sun397", 108_754)  # the publisher gives the images of all classes together
PLACES_CAP = 5000  # Places365-Standard holds at most 5,000 training images of a class (Zhou et al. 2018)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def imagenet1k(facts: Path) -> Table:
    path = facts / "imagenet/imagenet1k_classes.tsv"
    rows = [
        Row(
            r["wnid"],
            first_word(r["synset_words"]),
            counts={"train": int(r["train_count"]), "val": int(r["val_count"])},
        )
        for r in records(path)
    ]
    return Table(("train", "val"), sorted(rows, key=lambda r: r.class_id), sources(path), own_wnids=True)


def tiny_imagenet(facts: Path) -> Table:
    classes, val = facts / "tiny_imagenet/classes.tsv", facts / "tiny_imagenet/val_annotations.txt"
    counts_of = Counter(line.split("\t")[1] for line in body(val))
    rows = [
        Row(r["wnid"], first_word(r["words"]), counts={"train": 500, "val": counts_of[r["wnid"]]})
        for r in records(classes)
    ]
    origin = [*sources(classes, val), "publisher: Stanford CS231n, 500 training images a class"]
    return Table(("train", "val"), sorted(rows, key=lambda r: r.class_id), origin, own_wnids=True)


def cifar100(facts: Path) -> Table:
    classes, files = facts / "cifar/cifar100_classes.tsv", facts / "cifar/cifar100_files.tsv.gz"
    counts_of = Counter((r["split"], r["fine_class"]) for r in records(files))
    rows = [
        Row(r["fine"], r["fine"], r["coarse"], {s: counts_of[s, r["fine"]] for s in ("train", "test")})
        for r in sorted(records(classes), key=lambda r: int(r["fine_idx"]))
    ]
    return Table(("train", "test"), rows, sources(classes, files))


def cifar10(facts: Path) -> Table:
    path = facts / "cifar/cifar10_classes.tsv"
    rows = [
        Row(r["class"], r["class"], counts={"train": 5000, "test": 1000})
        for r in sorted(records(path), key=lambda r: int(r["idx"]))
    ]
    origin = [*sources(path), "publisher: Krizhevsky 2009, 5,000 training and 1,000 test images a class"]
    return Table(("train", "test"), rows, origin)


def food101(facts: Path) -> Table:
    classes = facts / "food101/classes.txt"
    lists = {split: facts / f"food101/{split}.txt.gz" for split in ("train", "test")}
    counts_of = {split: Counter(line.split("/")[0] for line in body(path)) for split, path in lists.items()}
    rows = [Row(name, name, counts={s: counts_of[s][name] for s in counts_of}) for name in body(classes)]
    return Table(("train", "test"), rows, sources(classes, *lists.values()))


def caltech256(facts: Path) -> Table:
    path = facts / "caltech256/classes_counts.tsv"
    rows = [
        Row(r["category"], r["category"].split(".", 1)[1], counts={"all": int(r["count"])})
        for r in records(path)
    ]
    note = (
        "257.clutter, the publisher's category of images of nothing in particular, is no class and left out"
    )
    return Table(("all",), rows, [*sources(path), note])


def places365(facts: Path) -> Table:
    folder = facts / "places365"
    categories, io = folder / "categories_places365.txt", folder / "IO_places365.txt"
    train, val = folder / "train_counts_by_toplevel_dir.tsv", folder / "places365_val.txt.gz"
    indoor = dict(line.split(" ") for line in body(io))
    counts_of = Counter(line.split("\t")[1] for line in body(val))
    sums = {
        parts[2]: int(count)
        for path, count in (line.split("\t") for line in body(train))
        if len(parts := path.split("/")) == 4
    }
    ordered = sorted((line.split(" ") for line in body(categories)), key=lambda pair: int(pair[1]))
    members = Counter(path.split("/")[2] for path, _ in ordered)
    rows = []
    for path, index in ordered:
        name = path.split("/", 2)[2]
        group = name.split("/")[0]
        row = Row(name, name, {"1": "indoor", "2": "outdoor"}[indoor[path]], {"val": counts_of[index]})
        if members[group] == 1 or sums[group] == PLACES_CAP * members[group]:
            row.counts["train"] = sums[group] // members[group]
        else:
            row.count_group = f"train:{group}={sums[group]}"
        rows.append(row)
    origin = [
        "source: CSAILVision/places365:categories_places365.txt, IO_places365.txt"
        "@06218620d593de09ac4f9f39b72ea0d175990a24",
        *sources(train, val),
        "train counts are published by top-level folder; a folder of n classes that holds n x 5,000 images"
        " holds 5,000 of each, the publisher's maximum; the others stand in count_group",
    ]
    return Table(("train", "val"), rows, list(dict.fromkeys(origin)))


def sun397(facts: Path) -> Table:
    path = facts / "sun397/classes.txt"
    names = [line.split("/", 2)[2] for line in body(path)]
    rows = [Row(name, name, count_group=f"all:{SUN397_ALL[0]}={SUN397_ALL[1]}") for name in names]
    origin = [
        *sources(path),
        "publisher: Xiao et al. 2010, 108,754 images in all; how many of each class is in no list",
        "a name that Places365 has, too, is mapped as there",
    ]
    return Table(("all",), rows, origin)


def lsun(facts: Path) -> Table:
    path = facts / "lsun/scene_categories.txt"
    rows = [Row(name, name, counts={"val": 300}) for name in body(path)]
    origin = [
        *sources(path),
        "publisher: Yu et al. 2015, 300 validation images a category; training databases differ between"
        " copies, so no train count is given",
    ]
    return Table(("train", "val"), rows, origin)


def svhn(facts: Path) -> Table:
    path = facts / "openood/benchmark_imglist/cifar10/test_svhn.txt.gz"
    test = Counter(line.split(".")[0].rsplit("_", 1)[1] for line in body(path))
    train = (4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659)
    extra = (45550, 90560, 74740, 60765, 50633, 53490, 41582, 43997, 35358, 34456)
    rows = [
        Row(str(d), DIGITS[d], counts={"train": train[d], "test": test[str(d)], "extra": extra[d]})
        for d in range(10)
    ]
    origin = [
        *sources(path),
        "publisher: Netzer et al. 2011, cropped digits; 73,257 train, 26,032 test, 531,131 extra; the files"
        " label zero as 10",
    ]
    return Table(("train", "test", "extra"), rows, origin)


def mnist(facts: Path) -> Table:
    train = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
    test = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
    rows = [Row(str(d), DIGITS[d], counts={"train": train[d], "test": test[d]}) for d in range(10)]
    return Table(("train", "test"), rows, ["publisher: LeCun et al. 1998; counts of the published labels"])


def fashion_mnist(facts: Path) -> Table:
    names = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"]
    names += ["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
    rows = [Row(name, name, counts={"train": 6000, "test": 1000}) for name in names]
    origin = "publisher: Xiao et al. 2017, 6,000 training and 1,000 test images of each of its ten classes"
    return Table(("train", "test"), rows, [origin])


def svhn_full(facts: Path) -> Table:
    origin = "publisher: Netzer et al. 2011, full numbers; 33,402 train, 13,068 test, 202,353 extra pictures"
    row = Row("all", "house numbers", counts={"train": 33_402, "test": 13_068, "extra": 202_353})
    return Table(("train", "test", "extra"), [row], [origin])


OMNIGLOT_SMALL = "Balinese Early_Aramaic Greek Japanese_(katakana) Korean Latin Sanskrit Tagalog"  # by blanks
OMNIGLOT_EVALUATION = (
    "Angelic Atemayar_Qelisayer Atlantean Aurek-Besh Avesta Ge_ez Glagolitic Gurmukhi Kannada Keble "
    "Malayalam Manipuri Mongolian Old_Church_Slavonic_(Cyrillic) Oriya Sylheti Syriac_(Serto) Tengwar "
    "Tibetan ULOG"
)


def omniglot(facts: Path) -> Table:
    path = facts / "omniglot/characters_vinyals_split.tsv"
    splits = ("background-small", "background-other", "evaluation")
    small, evaluation = OMNIGLOT_SMALL.split(), OMNIGLOT_EVALUATION.split()
    rows = []
    for r in sorted(records(path), key=lambda r: (r["alphabet"], r["character"])):
        own_split = splits[2 if r["alphabet"] in evaluation else r["alphabet"] not in small]
        name = f"{r['alphabet']}/{r['character']}"
        rows.append(Row(name, name, r["alphabet"], {s: 20 * (s == own_split) for s in splits}))
    origin = [
        *sources(path),
        "publisher: Lake et al. 2015; 20 drawings of each character; background-small is the 8 alphabets of"
        " images_background_small1 and _small2, background-other the other 22 of images_background",
    ]
    return Table(splits, rows, origin)


def dtd(facts: Path) -> Table:
    classes, files = facts / "dtd/classes.txt", facts / "dtd/files.txt"
    counts_of = Counter(line.split("/")[0] for line in body(files))
    rows = [Row(name, name, counts={"all": counts_of[name]}) for name in body(classes)]
    return Table(("all",), rows, sources(classes, files))


def digits(facts: Path) -> Table:
    counts = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
    rows = [Row(str(d), DIGITS[d], counts={"all": counts[d]}) for d in range(10)]
    origin = ["publisher: scikit-learn load_digits, the test set of UCI's optical recognition of digits"]
    return Table(("all",), rows, origin)


def noise(kind: str) -> Callable[[Path], Table]:
    origin = ["generated by wordnet_splits.noise: as many images as a recipe asks for, so no counts"]
    return lambda facts: Table(("all",), [Row("all", f"{kind} noise")], origin)


IMGLISTS = "openood/benchmark_imglist"


def openood_copy(publisher: Callable[[Path], Table], like: str, *lists: str) -> Callable[[Path], Table]:
    """Return the converter of OpenOOD's copy of a dataset: its classes, counted in lists of whole splits."""

    def convert(facts: Path) -> Table:
        paths = [facts / IMGLISTS / f"{name}.txt.gz" for name in lists]
        counts_of = Counter(openood_file(line.split(" ")[0])[:2] for path in paths for line in body(path))
        splits = tuple(s for s in ("train", "test") if any(split == s for split, _ in counts_of))
        rows = [
            Row(r.class_id, r.name, r.superclass, {s: counts_of[s, r.class_id] for s in splits})
            for r in publisher(facts).rows
        ]
        return Table(splits, rows, sources(*paths), like=like)

    return convert


def openood_tin597(facts: Path) -> Table:
    path = facts / "openood/tin597_classes.tsv"
    rows = [Row(r["wnid"], first_word(r["name"]), counts={"test": int(r["count"])}) for r in records(path)]
    return Table(("test",), sorted(rows, key=lambda r: r.class_id), sources(path), own_wnids=True)


CONVERTERS: dict[str, Callable[[Path], Table]] = {
    "caltech256": caltech256,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "digits": digits,
    "dtd": dtd,
    "fashion-mnist": fashion_mnist,
    "food101": food101,
    "gaussian": noise("gaussian"),
    "imagenet1k": imagenet1k,
    "lsun": lsun,
    "mnist": mnist,
    "openood-cifar10": openood_copy(cifar10, "cifar10", "cifar10/train_cifar10", "cifar10/test_cifar10_full"),
    "openood-cifar100": openood_copy(
        cifar100, "cifar100", "cifar100/train_cifar100", "cifar10/test_cifar100_full"
    ),
    "openood-mnist": openood_copy(svhn, "svhn", "cifar10/test_mnist"),
    "openood-svhn": openood_copy(svhn, "svhn", "cifar10/test_svhn"),
    "openood-tin597": openood_tin597,
    "omniglot": omniglot,
    "places365": places365,
    "sun397": sun397,
    "svhn": svhn,
    "svhn-full": svhn_full,
    "tiny-imagenet": tiny_imagenet,
    "uniform": noise("uniform"),
    **IMAGENET_KIN,
}

HandMap = dict[str, tuple[str, str, str]]  # class_id -> wnids, mapped, why


def hand_map(source: str, table: Table) -> HandMap:
    """Return the hand columns of a catalog, or of the source whose classes it shares."""
    return shipped_map(CATALOGS / f"{table.like or source}.tsv")


def shipped_map(path: Path) -> HandMap:
    """Return the hand columns of a shipped catalog."""
    if not path.exists():
        return {}
    return {r["class_id"]: (r["wnids"], r["mapped"], r["why"]) for r in records(path)}


def render(table: Table, hand: HandMap) -> str:
    """Return the text of a catalog TSV."""
    lines = [f"# {line}" for line in table.origin]
    lines.append("\t".join((*FIXED_COLUMNS, *(f"count_{s}" for s in table.splits), "count_group")))
    for index, row in enumerate(table.rows):
        synset = (row.class_id, "exact", "") if table.own_wnids else hand[row.class_id]
        counts = (str(row.counts.get(s, "")) for s in table.splits)
        cells = (row.class_id, str(index), row.name, row.superclass, *synset, *counts, row.count_group)
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"


def main(facts: Path) -> None:
    """Rewrite every catalog."""
    for source, convert in CONVERTERS.items():
        table = convert(facts)
        text = render(table, hand_map(source, table))
        (CATALOGS / f"{source}.tsv").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
