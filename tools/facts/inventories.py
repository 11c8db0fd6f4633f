"""Make the shipped inventories, lists and digits from the published facts and the real pixels.

``python -m tools.facts.inventories --facts DIR --data DIR --out DIR`` writes ``inventories/``, ``lists/`` and
``digits/`` under ``--out`` (``wordnet_splits/data`` to ship them). ``--data`` holds the datasets as their
publishers lay them out; digests come from there.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import lzma
import pickle
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from tools.facts.imagenet_kin_images import IMAGENET_KIN_INVENTORIES
from tools.facts.images import Inventory, stem, unique
from tools.facts.lists import write_lists
from tools.facts.openood import openood_file
from tools.facts.published import Published
from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.parquet import write_table
from wordnet_splits.datasets.catalog.inventory import INVENTORY_SCHEMA
from wordnet_splits.datasets.sources.built_in import RAW_SHA256, load_digits_pixels

CIFAR_FILES = {  # publisher's split -> pickles
    ("cifar100", "train"): ("cifar-100-python/train",),
    ("cifar100", "test"): ("cifar-100-python/test",),
    ("cifar10", "test"): ("cifar-10-batches-py/test_batch",),
}


def cifar_digests(data: Path, source: str, split: str, names: list[str]) -> dict[str, bytes]:
    """Return image_id -> digest from the publisher's pickles; ``names`` are the classes in label order."""
    digests = {}
    for file in CIFAR_FILES[source, split]:
        batch = pickle.loads((data / file).read_bytes(), encoding="bytes")
        labels = batch[b"fine_labels"] if b"fine_labels" in batch else batch[b"labels"]
        images = np.asarray(batch[b"data"]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        for file_name, label, image in zip(batch[b"filenames"], labels, images, strict=True):
            image_id = f"{split}/{names[label]}/{stem(file_name.decode())}"
            if image_id in digests:
                raise ValueError(f"{image_id} occurs twice in {file}")
            digests[image_id] = digest_pixels(image)
    return digests


def cifar100(facts: Path, data: Path, split: str) -> Inventory:
    files = Published(facts / "cifar/cifar100_files.tsv.gz")
    classes = unique(
        (f"{split}/{r['fine_class']}/{stem(r['filename'])}", r["fine_class"])
        for r in files.records()
        if r["split"] == split
    )
    names = [r["fine"] for r in Published(facts / "cifar/cifar100_classes.tsv").records()]
    origin = f"{files.origin}; digests of the pixels of the publisher's pickle"
    return Inventory(classes, origin, cifar_digests(data, "cifar100", split, names))


def cifar10(facts: Path, data: Path, split: str) -> Inventory:
    files = Published(facts / "cifar/cifar10_files_original_order.tsv.gz")
    records = [r for r in files.records() if r["split"] == split]
    classes = unique((f"{split}/{r['class']}/{stem(r['filename'])}", r["class"]) for r in records)
    if split != "test":
        return Inventory(classes, files.origin)
    names = [r["class"] for r in Published(facts / "cifar/cifar10_classes.tsv").records()]
    origin = f"{files.origin}; digests of the pixels of the publisher's test_batch"
    return Inventory(classes, origin, cifar_digests(data, "cifar10", split, names))


def imagenet1k(facts: Path, data: Path, split: str) -> Inventory:
    labels = Published(facts / "imagenet/imagenet_val_labels.tsv.gz")
    return Inventory(unique((stem(r["filename"]), r["wnid"]) for r in labels.records()), labels.origin)


def tiny_imagenet(facts: Path, data: Path, split: str) -> Inventory:
    if split == "train":
        boxes = Published(facts / "tiny_imagenet/train_boxes.txt.gz")
        return Inventory(unique((stem(r[0]), r[0].split("_")[0]) for r in boxes.rows()), boxes.origin)
    annotations = Published(facts / "tiny_imagenet/val_annotations.txt")
    classes = unique((stem(r[0]), r[1]) for r in annotations.rows())
    images = data / "tiny-imagenet-200/val/images"
    digests = {path.stem: digest_file(path.read_bytes()) for path in images.glob("*.JPEG")}
    return Inventory(classes, f"{annotations.origin}; digests of the publisher's JPEG files", digests)


def food101(facts: Path, data: Path, split: str) -> Inventory:
    files = Published(facts / f"food101/{split}.txt.gz")
    return Inventory(unique((line, line.split("/")[0]) for line in files.lines()), files.origin)


def caltech256(facts: Path, data: Path, split: str) -> Inventory:
    files = Published(facts / "caltech256/files.txt.gz")
    return Inventory(unique((stem(line), line.split("/")[0]) for line in files.lines()), files.origin)


def places365(facts: Path, data: Path, split: str) -> Inventory:
    categories = {}
    for line in Published(facts / "places365/categories_places365.txt").lines():
        name, index = line.split(" ")
        categories[index] = re.sub("^/[a-z]/", "", name)
    val = Published(facts / "places365/places365_val.txt.gz")
    classes = unique((stem(file), categories[index]) for file, index, _ in val.rows())
    for file, _, folder in val.rows():
        if classes[stem(file)].replace("/", "-") != folder:
            raise ValueError(f"{file}: category {classes[stem(file)]} by index, {folder} by folder")
    return Inventory(classes, val.origin)


def svhn(facts: Path, data: Path, split: str) -> Inventory:
    """OpenOOD's files are named NUMBER_DIGIT; NUMBER is the position in test_32x32.mat, counted from 1."""
    listed = Published(facts / "openood/benchmark_imglist/cifar10/test_svhn.txt.gz")
    names = (Path(line.split()[0]).stem.split("_") for line in listed.lines())
    return Inventory(unique((f"test/{int(number) - 1}", digit) for number, digit in names), listed.origin)


MNIST_FILES = {  # idx files, and the MD5 of each published file after unpacking
    "train": (
        ("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"),
        ("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"),
    ),
    "test": (
        ("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"),
        ("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"),
    ),
}


def mnist(facts: Path, data: Path, split: str) -> Inventory:
    """The position in the publisher's files, counted from 0; files in another order are rejected."""
    files = MNIST_FILES[split]
    unpacked = [gzip.decompress((data / "mnist" / f"{name}.gz").read_bytes()) for name, _ in files]
    for (name, md5), content in zip(files, unpacked, strict=True):
        if hashlib.md5(content).hexdigest() != md5:
            raise ValueError(f"{name} is not the publisher's")
    images = np.frombuffer(unpacked[0], np.uint8, offset=16).reshape(-1, 28, 28)
    ids = [f"{split}/{index}" for index in range(len(images))]
    classes = unique(zip(ids, map(str, unpacked[1][8:]), strict=True))
    digests = {i: digest_pixels(np.dstack([g, g, g])) for i, g in zip(ids, images, strict=True)}
    said = ", ".join(f"{name} of unpacked MD5 {md5}" for name, md5 in files)
    return Inventory(classes, f"the publisher's {said}", digests)


def svhn_full(facts: Path, data: Path, split: str) -> Inventory:
    """The publisher's files are numbered from 1 in each split."""
    files = {"train": 33_402, "test": 13_068, "extra": 202_353}[split]
    origin = f"publisher: Netzer et al. 2011, {split}.tar.gz holds 1.png to {files}.png"
    return Inventory({f"{split}/{number}": "all" for number in range(1, files + 1)}, origin)


def omniglot(facts: Path, data: Path, split: str) -> Inventory:
    """Names and pixels of the publisher's two small archives, which share Greek and Latin."""
    digests: dict[str, bytes] = {}
    said = []
    for name in ("images_background_small1", "images_background_small2"):
        path = data / "omniglot" / f"{name}.zip"
        said.append(f"{name}.zip of MD5 {hashlib.md5(path.read_bytes()).hexdigest()}")
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if entry.endswith(".png"):
                    picture = Image.open(io.BytesIO(archive.read(entry))).convert("RGB")
                    digest = digest_pixels(np.asarray(picture))
                    image_id = stem(entry.removeprefix(f"{name}/"))
                    if digests.setdefault(image_id, digest) != digest:
                        raise ValueError(f"{image_id} differs between the two archives")
    classes = {image_id: image_id.rpartition("/")[0] for image_id in digests}
    return Inventory(classes, f"the publisher's {' and '.join(said)}", digests)


def dtd(facts: Path, data: Path, split: str) -> Inventory:
    files = Published(facts / "dtd/files.txt")
    return Inventory(unique((stem(line), line.split("/")[0]) for line in files.lines()), files.origin)


def digits(facts: Path, data: Path, split: str) -> Inventory:
    images, labels = load_digits_pixels()
    classes = unique((str(i), str(label)) for i, label in enumerate(labels))
    return Inventory(
        classes,
        "scikit-learn load_digits (UCI Optical Recognition of Handwritten Digits, test part)",
        {str(i): digest_pixels(image) for i, image in enumerate(images)},
    )


OPENOOD_WHOLE = {  # the list of OpenOOD that holds a whole split of its copy
    ("openood-cifar10", "train"): "cifar10/train_cifar10",
    ("openood-cifar10", "test"): "cifar10/test_cifar10_full",
    ("openood-cifar100", "train"): "cifar100/train_cifar100",
    ("openood-cifar100", "test"): "cifar10/test_cifar100_full",
    ("openood-mnist", "train"): "cifar10/test_mnist",  # both splits in one list
    ("openood-mnist", "test"): "cifar10/test_mnist",
    ("openood-svhn", "test"): "cifar10/test_svhn",
    ("openood-tin597", "test"): "cifar10/train_tin597",
}


def openood(source: str) -> Callable[[Path, Path, str], Inventory]:
    """Return the converter of a dataset that OpenOOD renumbered, under its own names."""

    def convert(facts: Path, data: Path, split: str) -> Inventory:
        listed = Published(facts / f"openood/benchmark_imglist/{OPENOOD_WHOLE[source, split]}.txt.gz")
        found = (openood_file(line.split(" ")[0]) for line in listed.lines())
        return Inventory(unique((i, c) for s, c, i in found if s == split), listed.origin)

    return convert


INVENTORIES: Mapping[tuple[str, str], tuple[Callable[[Path, Path, str], Inventory], int]] = {
    ("cifar100", "train"): (cifar100, 50_000),
    ("cifar100", "test"): (cifar100, 10_000),
    ("cifar10", "train"): (cifar10, 50_000),
    ("cifar10", "test"): (cifar10, 10_000),
    ("imagenet1k", "val"): (imagenet1k, 50_000),
    ("tiny-imagenet", "train"): (tiny_imagenet, 100_000),
    ("tiny-imagenet", "val"): (tiny_imagenet, 10_000),
    ("food101", "train"): (food101, 75_750),
    ("food101", "test"): (food101, 25_250),
    ("caltech256", "all"): (caltech256, 29_780),
    ("places365", "val"): (places365, 36_500),
    ("svhn", "test"): (svhn, 26_032),
    ("mnist", "train"): (mnist, 60_000),
    ("mnist", "test"): (mnist, 10_000),
    ("omniglot", "background-small"): (omniglot, 4_840),
    ("svhn-full", "train"): (svhn_full, 33_402),
    ("svhn-full", "test"): (svhn_full, 13_068),
    ("svhn-full", "extra"): (svhn_full, 202_353),
    ("dtd", "all"): (dtd, 5_640),
    ("digits", "all"): (digits, 1_797),
    ("openood-cifar10", "train"): (openood("openood-cifar10"), 50_000),
    ("openood-cifar10", "test"): (openood("openood-cifar10"), 10_000),
    ("openood-cifar100", "train"): (openood("openood-cifar100"), 50_000),
    ("openood-cifar100", "test"): (openood("openood-cifar100"), 10_000),
    ("openood-mnist", "train"): (openood("openood-mnist"), 60_000),
    ("openood-mnist", "test"): (openood("openood-mnist"), 10_000),
    ("openood-svhn", "test"): (openood("openood-svhn"), 26_032),
    ("openood-tin597", "test"): (openood("openood-tin597"), 29_850),
    **IMAGENET_KIN_INVENTORIES,
}


def inventory_table(inventory: Inventory, split: str, images: int) -> pa.Table:
    """Return the rows sorted by image_id. Raises ValueError where they are not all the ``images``."""
    if len(inventory.classes) != images:
        raise ValueError(f"{len(inventory.classes)} images, not {images}")
    ids = sorted(inventory.classes)
    if inventory.digests is not None and inventory.digests.keys() != inventory.classes.keys():
        odd = sorted(inventory.digests.keys() ^ inventory.classes.keys())
        raise ValueError(f"{len(odd)} images are in the facts or the pixels alone, the first is {odd[0]}")
    digests = [None] * len(ids) if inventory.digests is None else [inventory.digests[i] for i in ids]
    columns = [ids, [inventory.classes[i] for i in ids], [split] * len(ids), digests]
    return pa.table(columns, schema=INVENTORY_SCHEMA)


def write_inventories(facts: Path, data: Path, out: Path) -> None:
    """Write ``inventories/<source>/<split>.parquet`` under ``out``."""
    for (source, split), (build, images) in INVENTORIES.items():
        inventory = build(facts, data, split)
        path = out / "inventories" / source / f"{split}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(inventory_table(inventory, split, images), path, metadata={"origin": inventory.origin})


def write_digits(out: Path) -> None:
    """Write scikit-learn's digits: 1,797 labels, then 1,797 x 64 grey values of 0..16, a byte each, as xz."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    raw = bunch.target.astype(np.uint8).tobytes() + bunch.images.astype(np.uint8).tobytes()
    if hashlib.sha256(raw).hexdigest() != RAW_SHA256:
        raise ValueError("scikit-learn's digits are not those this package was made from")
    (out / "digits").mkdir(parents=True, exist_ok=True)
    (out / "digits" / "digits.xz").write_bytes(lzma.compress(raw, check=lzma.CHECK_CRC32, preset=9))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name in ("facts", "data", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    write_digits(arguments.out)
    write_inventories(arguments.facts, arguments.data, arguments.out)
    write_lists(arguments.facts, arguments.out)


if __name__ == "__main__":
    main()
