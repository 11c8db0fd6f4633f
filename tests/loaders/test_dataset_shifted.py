"""`UnknownDetectionSet` of shifted ID sets: labels of the ID classes, parts for the full-spectrum setting."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")

from loaders import UnknownDetectionSet
from tests.photographs import jpeg
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog

pytestmark = pytest.mark.usefixtures("no_roots_of_this_machine")

NAME = "openood-imagenet200"
OPENOOD = "images_largescale"


def path_of(group: str, image_id: str, class_id: str) -> str:
    """OpenOOD's path of an image."""
    number = load_catalog("imagenet-v2")[class_id].index if group == "imagenet-v2" else ""
    return {
        "imagenet-v2": f"imagenet_v2/{number}/{image_id}.jpeg",
        "imagenet-c": f"imagenet_c/{image_id}.JPEG",
        "imagenet-r": f"imagenet_r/{image_id}.jpg",
        "ninco": f"ninco/{image_id}.jpg",
        "ssb-hard": f"ssb_hard/{class_id}/{image_id}.JPEG",
        "inaturalist": f"inaturalist/images/{image_id}.jpg",
        "textures": f"../images_classic/texture/{image_id}.jpg",
        "openimage-o": f"openimage_o/images/{image_id}.jpg",
        "imagenet-200": f"imagenet_1k/val/{image_id}.JPEG",
    }[group]


GROUPS = (
    "imagenet-200",
    "imagenet-v2",
    "imagenet-c",
    "imagenet-r",
    "ssb-hard",
    "ninco",
    "inaturalist",
    "textures",
    "openimage-o",
)
HELD = 3


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """OpenOOD's folders, which serve every source, with the first test images of each set."""
    root = tmp_path_factory.mktemp("openood")
    manifest = load_manifest(NAME)
    (root / OPENOOD).mkdir()
    for group in GROUPS:
        table = manifest.images("test", group).slice(0, HELD)
        for number, row in enumerate(table.to_pylist()):
            path = root / OPENOOD / path_of(group, row["image_id"], row["class_id"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpeg(number, (12, 10)))
    return dict.fromkeys({row.source for row in manifest.groups}, root)


def test_parts_are_the_sets_of_the_full_spectrum(roots: dict[str, Path]) -> None:
    parts = UnknownDetectionSet.parts(NAME, roots=roots, allow_missing=True)
    assert tuple(parts) == GROUPS
    assert {name: len(part) for name, part in parts.items()} == dict.fromkeys(GROUPS, HELD)
    for name, part in parts.items():
        image, label = part[HELD - 1]
        assert image.mode == "RGB"
        assert (label >= 0) == (name.startswith("imagenet")), name


def test_shifted_images_have_the_label_of_the_id_class(roots: dict[str, Path]) -> None:
    shifted = UnknownDetectionSet(NAME, role="csid", roots=roots, allow_missing=True)
    known = UnknownDetectionSet(NAME, role="id", roots=roots, allow_missing=True)
    assert shifted.classes == known.classes
    assert len(known.classes) == 200
    assert len(shifted) == 3 * HELD
    wnids = sorted(load_catalog("imagenet-r").column("class_id"))
    for position, row in enumerate(shifted.table.to_pylist()):
        assert shifted[position][1] == row["label"] == wnids.index(row["class_id"])


def test_validation_images_of_an_ood_set_keep_its_role() -> None:
    far = UnknownDetectionSet(NAME, role="far", split="val", roots={}, allow_missing=True)
    assert set(far.missing["group"].to_pylist()) == {"openimage-o"}
    assert len(far.missing) == 1_763
