"""`UnknownDetectionSet` on real CIFAR-100, textures and Tiny ImageNet validation images."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")

from loaders import UnknownDetectionSet
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest

pytestmark = pytest.mark.usefixtures("no_roots_of_this_machine")


def published(real_data):
    """Pixels (32, 32, 3) and class name of each CIFAR-100 test image, by its id."""
    folder = real_data / "cifar-100-python"
    batch = pickle.loads((folder / "test").read_bytes(), encoding="latin1")
    names = pickle.loads((folder / "meta").read_bytes(), encoding="latin1")["fine_label_names"]
    pixels = batch["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    found = {}
    for name, label, image in zip(batch["filenames"], batch["fine_labels"], pixels, strict=True):
        found[f"test/{names[label]}/{name.removesuffix('.png')}"] = (image, names[label])
    return found


def test_cifar_from_its_pickles_and_packed_is_the_published_one(real_data, tmp_path):
    expected = published(real_data)
    roots = {"cifar100": real_data}
    pack(
        load_manifest("unknown-cifar"), tmp_path / "store", roots=roots, groups=["cifar-40"], splits=["test"]
    )
    for place in ({"roots": roots}, {"packed": tmp_path / "store"}):
        data = UnknownDetectionSet("unknown-cifar", role="id", **place)
        images, labels = next(data.batches(4000))
        assert len(data.classes) == 40
        for n, image_id in enumerate(data.table["image_id"].to_pylist()):
            pixels, name = expected[image_id]
            assert np.array_equal(images[n].numpy().transpose(1, 2, 0), pixels)
            assert data.classes[labels[n]].replace(" ", "_") == name


def test_parts_of_what_is_at_hand_report_the_rest(real_data):
    roots = {"cifar100": real_data, "dtd": real_data / "dtd", "tiny-imagenet": real_data}
    parts = UnknownDetectionSet.parts("unknown-cifar-tinyval", roots=roots, allow_missing=True)
    held = {name: (len(part), len(part.missing)) for name, part in parts.items()}
    assert held == {
        "cifar-40": (4000, 0),
        "cifar-60": (6000, 0),
        "svhn": (0, 4000),
        "dtd": (60, 5580),
        "gaussian": (10000, 0),
    }
    texture, label = parts["dtd"][0]
    assert (texture.mode, min(texture.size) > 200, label) == ("RGB", True, -1)
    external = UnknownDetectionSet("unknown-cifar-tinyval", role="external", split="val", roots=roots)
    assert len(external) == 7900
    assert external[0][0].size == (64, 64)
